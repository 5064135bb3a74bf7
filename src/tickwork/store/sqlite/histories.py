"""What is kept of a task beside its row: the runs before its last one, and its log lines."""

from __future__ import annotations

import msgspec

from tickwork.model.tasks import Attempt, History, Record
from tickwork.store.sqlite.connection import Connection
from tickwork.store.sqlite.session import Writer
from tickwork.store.unreadable import UNREADABLE

_encode = msgspec.msgpack.Encoder().encode
_attempt = msgspec.msgpack.Decoder(Attempt).decode
_NEXT = "SELECT coalesce(max(n), 0) + 1 FROM {} WHERE seq = ?"


class Histories:
    def __init__(self, tx: Writer) -> None:
        self.tx = tx

    def keep_run(self, record: Record, run: Attempt | None) -> None:
        if run is not None and self.tx.policy.attempts_max:
            self._add("@attempts", record.seq, [_encode(run)], self.tx.policy.attempts_max)

    def keep_lines(self, record: Record, lines: list[str]) -> None:
        if lines and self.tx.policy.log_lines_max:
            self._add("@lines", record.seq, lines, self.tx.policy.log_lines_max)

    def _add(self, table: str, seq: int, items: list[bytes] | list[str], most: int) -> None:
        first = self.tx.one(_NEXT.format(table), (seq,))[0]
        newest = first + len(items) - 1
        rows = [(seq, n, item) for n, item in enumerate(items, first) if n > newest - most]
        self.tx.many(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
        self.tx.run(f"DELETE FROM {table} WHERE seq = ? AND n <= ?", (seq, newest - most))

    def last_kept(self, record: Record) -> Attempt | None:
        kept = read_history(self.tx, record.id).attempts
        return kept[-1] if kept else None


def read_history(connection: Connection, task_id: str) -> History:
    numbers = "SELECT seq FROM @tasks WHERE id = ?"
    runs = connection.all(f"SELECT run FROM @attempts WHERE seq = ({numbers}) ORDER BY n", (task_id,))
    lines = connection.all(f"SELECT line FROM @lines WHERE seq = ({numbers}) ORDER BY n", (task_id,))
    attempts = [attempt for (run,) in runs if (attempt := _read(run)) is not None]
    return History(attempts, [str(line) for (line,) in lines])


def _read(run: bytes) -> Attempt | None:
    """None for one that this version cannot read."""
    try:
        return _attempt(run)
    except UNREADABLE:
        return None
