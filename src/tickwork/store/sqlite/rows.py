"""Records to rows and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tickwork.model import Place, Record, Spec, Status
from tickwork.store.sqlite.session import Connection

# In the order of the columns, so that a row is a prefix of constructor arguments.
CHANGING = (
    "status", "due_at", "place", "position", "attempt", "losses", "fence", "nonce", "worker_id", "lease_until",
    "started_at", "finished_at", "cancel", "last_error", "code", "message", "result", "execution_time",
    "progress", "progress_note", "log",
)  # fmt: skip
COLUMNS = ", ".join(("seq", "id", "submitted_at", *CHANGING))
INSERT = (
    f"INSERT INTO @tasks (seq, id, nonce0, type, queue, band, schedule_id, submitted_at, {', '.join(CHANGING)}) "
    f"VALUES ({', '.join('?' * (8 + len(CHANGING)))}) ON CONFLICT (id) DO NOTHING"
)
# Indexes follow every column that is set, so the two hot transitions set no more than they change.
START = (
    "UPDATE @tasks SET status = 'running', attempt = ?, fence = ?, nonce = ?, worker_id = ?, lease_until = ?, "
    "started_at = ?, finished_at = NULL WHERE seq = ?"
)
SUCCEED = (
    "UPDATE @tasks SET status = 'success', position = ?, lease_until = 0, finished_at = ?, cancel = 0, code = ?, "
    "message = ?, result = ?, execution_time = ? WHERE seq = ?"
)
UPDATE = f"UPDATE @tasks SET {', '.join(f'{name} = ?' for name in CHANGING)} WHERE seq = ?"

_STATUS = {status.value: status for status in Status}
_encode = msgspec.msgpack.Encoder().encode
_decode_spec = msgspec.msgpack.Decoder(Spec).decode
_decode_log = msgspec.msgpack.Decoder(list[str]).decode


class Rows:
    """Loads and saves records over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._specs = connection.specs
        self._running = connection.running

    def insert(self, record: Record) -> bool:
        """False when there is a task of that id."""
        spec = record.spec
        cursor = self._connection.run(
            INSERT,
            (record.seq, spec.id, spec.nonce, spec.type, spec.queue, int(spec.band), spec.schedule_id,
             record.submitted_at, *_changing(record)),
        )  # fmt: skip
        if cursor.rowcount == 0:
            return False
        encoded = _encode(spec)
        self._connection.run("INSERT INTO @specs (seq, spec) VALUES (?, ?)", (record.seq, encoded))
        if self._connection.claims:  # else it is for another process
            self._specs.add(record.seq, spec, len(encoded))
        return True

    def save_started(self, records: list[Record]) -> None:
        self._connection.many(
            START,
            [(r.attempt, r.fence, r.nonce, r.worker_id, r.lease_until, r.started_at, r.seq) for r in records],
        )
        self._running.update((record.spec.id, record) for record in records)

    def save_extended(self, records: list[Record]) -> None:
        self._connection.many(
            "UPDATE @tasks SET lease_until = ? WHERE seq = ?", [(r.lease_until, r.seq) for r in records]
        )

    def save_succeeded(self, records: list[Record]) -> None:
        self._connection.many(
            SUCCEED,
            [(r.position, r.finished_at, r.code, r.message, r.result, r.execution_time, r.seq) for r in records],
        )
        for record in records:
            self._running.pop(record.spec.id, None)

    def save(self, records: Sequence[Record]) -> None:
        self._connection.many(UPDATE, [(*_changing(record), record.seq) for record in records])
        for record in records:
            if record.status is Status.RUNNING:
                self._running[record.spec.id] = record
            else:
                self._running.pop(record.spec.id, None)

    def delete(self, numbers: list[int]) -> None:
        self._connection.many("DELETE FROM @tasks WHERE seq = ?", [(seq,) for seq in numbers])
        self._connection.many("DELETE FROM @specs WHERE seq = ?", [(seq,) for seq in numbers])
        for seq in numbers:
            self._specs.discard(seq)

    def get(self, task_id: str) -> Record | None:
        found = self.where("id = ?", (task_id,))
        return found[0] if found else None

    def by_ids(self, ids: list[str]) -> dict[str, Record]:
        found = {task_id: record for task_id in ids if (record := self._running.get(task_id)) is not None}
        unknown = [task_id for task_id in ids if task_id not in found]
        if unknown:
            marks = ",".join("?" * len(unknown))
            found.update((record.id, record) for record in self.where(f"id IN ({marks})", unknown))
        return found

    def where(self, condition: str, params: Any = ()) -> list[Record]:
        """Records by a condition, which may end in ORDER BY and LIMIT."""
        return [
            self._record(row) for row in self._connection.all(f"SELECT {COLUMNS} FROM @tasks WHERE {condition}", params)
        ]

    def _record(self, row: Any) -> Record:
        status = _STATUS[row[3]]
        return Record(
            spec=self._spec(row[0]), seq=row[0], submitted_at=row[2], status=status, due_at=row[4],
            place=Place(row[5]), position=row[6], attempt=row[7], losses=row[8], fence=row[9], nonce=row[10],
            worker_id=row[11], lease_until=row[12], started_at=row[13], finished_at=row[14], cancel=bool(row[15]),
            last_error=row[16], code=row[17], message=row[18], result=row[19], execution_time=row[20],
            progress=row[21], progress_note=row[22], log=_decode_log(row[23]) if row[23] else [],
            waiting=self._waiting(row[1]) if status is Status.BLOCKED else [],
        )  # fmt: skip

    def _waiting(self, task_id: str) -> list[str]:
        return [row[0] for row in self._connection.all("SELECT upstream FROM @waits WHERE dependant = ?", (task_id,))]

    def _spec(self, seq: int) -> Spec:
        spec = self._specs.get(seq)
        if spec is None:
            encoded = self._connection.one("SELECT spec FROM @specs WHERE seq = ?", (seq,))[0]
            spec = _decode_spec(encoded)
            self._specs.add(seq, spec, len(encoded))
        return spec


def _changing(record: Record) -> tuple[Any, ...]:
    return (
        record.status.value, record.due_at, int(record.place), record.position, record.attempt, record.losses,
        record.fence, record.nonce, record.worker_id, record.lease_until, record.started_at, record.finished_at,
        record.cancel, record.last_error, record.code, record.message, record.result, record.execution_time,
        record.progress, record.progress_note, _encode(record.log) if record.log else None,
    )  # fmt: skip
