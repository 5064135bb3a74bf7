"""Gates over SQLite rows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tickwork.model.facts import Fact
from tickwork.store.contract.gates import ORDER_MAX, WAKE_MAX, Ask, GateState, Left, Refusal, Woken
from tickwork.store.gating import Entry, Gating
from tickwork.store.sqlite.connection import Connection
from tickwork.store.sqlite.core import Part, reads, writes
from tickwork.store.sqlite.session import Writer
from tickwork.store.sqlite.workers import keep_pulse
from tickwork.store.unreadable import UNREADABLE

FIRST_WAITING = "SELECT id FROM @gate_waits WHERE name = ? AND place >= ? AND place < ? ORDER BY place, id LIMIT ?"

_encode = msgspec.msgpack.Encoder().encode
_entry = msgspec.msgpack.Decoder(Entry).decode


class Gates(Part):
    def _gating(self) -> Gating:
        now = self.now()
        keep_pulse(self.tx, now)
        return Gating(_Books(self.tx, now), now, self.tx.state.hold_until, self.tx.policy.lease_ttl)

    @writes
    def enter(self, asks: Sequence[Ask]) -> list[Refusal | None]:
        gating = self._gating()
        return [gating.enter(ask) for ask in asks]

    @writes
    def leave(self, left: Sequence[Left]) -> list[Woken]:
        gating, woken = self._gating(), list[Woken]()
        for each in left:
            woken += gating.leave(each, WAKE_MAX - len(woken))
        return woken

    @writes
    def renew(self, inside: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        gating = self._gating()
        for task_id, names in inside:
            gating.renew(task_id, names)

    @writes
    def wake(self, limit: int) -> list[Woken]:
        over = "SELECT name FROM @gates WHERE until IS NOT NULL AND until <= ? LIMIT ?"
        self.tx.run(f"DELETE FROM @gates WHERE name IN ({over})", (self.now(), WAKE_MAX))
        return self._gating().wake(min(limit, WAKE_MAX))

    @writes
    def reset(self, name: str) -> None:
        self._gating().reset(name)

    @reads
    def look(self, names: Sequence[str]) -> list[GateState]:
        return self._look(names)

    def _look(self, names: Sequence[str]) -> list[GateState]:
        now, held = self.now(), self.reader.one("SELECT hold_until FROM @state")[0]
        gating = Gating(_Pages(self.reader), now, held, self._core.policy.lease_ttl)  # type: ignore[arg-type]
        return [gating.look(name) for name in names]

    @reads
    def opened(self) -> list[GateState]:
        return self._look([name for (name,) in self.reader.all("SELECT name FROM @gates WHERE open_until > 0")])

    @reads
    def crowded(self, limit: int) -> list[tuple[str, int]]:
        return self.reader.all(
            "SELECT name, waiting FROM @gate_crowds WHERE waiting > 0 ORDER BY waiting DESC, name LIMIT ?", (limit,)
        )


class _Pages:
    """The books, to read."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, name: str) -> Entry | None:
        row = self._connection.one("SELECT entry FROM @gates WHERE name = ?", (name,))
        try:
            return None if row is None else _entry(row[0])
        except UNREADABLE:
            return None  # of a later version, or damaged: the rule comes with the next question

    def inside(self, name: str) -> dict[str, int]:
        return dict(self._connection.all("SELECT id, until FROM @gate_insides WHERE name = ?", (name,)))

    def waiting(self, name: str) -> int:
        row = self._connection.one("SELECT waiting FROM @gate_crowds WHERE name = ?", (name,))
        return 0 if row is None else int(row[0])


class _Books(_Pages):
    def __init__(self, tx: Writer, now: int) -> None:
        super().__init__(tx)
        self._tx = tx
        self._now = now

    def keep(self, name: str, entry: Entry) -> None:
        row = (name, _encode(entry), entry.until or None, entry.open_until)
        self._tx.run("INSERT OR REPLACE INTO @gates VALUES (?, ?, ?, ?)", row)

    def put_inside(self, name: str, task_id: str, until: int) -> None:
        self._tx.run("INSERT OR REPLACE INTO @gate_insides VALUES (?, ?, ?)", (name, task_id, until))

    def take_out(self, name: str, task_id: str) -> None:
        self._tx.run("DELETE FROM @gate_insides WHERE name = ? AND id = ?", (name, task_id))

    def wait(self, name: str, task_id: str, order: int, timed: bool) -> None:
        place = order + ORDER_MAX if timed else order
        self._tx.run("INSERT INTO @gate_waits VALUES (?, ?, ?)", (name, task_id, place))
        self._tx.run(
            "INSERT INTO @gate_crowds VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET waiting = waiting + 1", (name,)
        )

    def unwait(self, name: str, task_id: str) -> None:
        if self._tx.run("DELETE FROM @gate_waits WHERE name = ? AND id = ?", (name, task_id)).rowcount:
            self._tx.run("UPDATE @gate_crowds SET waiting = waiting - 1 WHERE name = ?", (name,))
            self._tx.run("DELETE FROM @gate_crowds WHERE name = ? AND waiting = 0", (name,))

    def take_waiting(self, name: str, limit: int, timed: bool) -> list[str]:
        first = ORDER_MAX if timed else 0
        taken = [task_id for (task_id,) in self._tx.all(FIRST_WAITING, (name, first, first + ORDER_MAX, limit))]
        for task_id in taken:
            self.unwait(name, task_id)
        return taken

    def look_at(self, name: str, at: int | None) -> None:
        if at is None:
            self._tx.run("DELETE FROM @gate_looks WHERE name = ?", (name,))
        else:
            self._tx.run(
                "INSERT INTO @gate_looks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET at = min(at, excluded.at)",
                (name, at),
            )

    def due(self, now: int, limit: int) -> list[str]:
        rows = self._tx.all("SELECT name FROM @gate_looks WHERE at <= ? ORDER BY at, name LIMIT ?", (now, limit))
        return [name for (name,) in rows]

    def mark_open(self, name: str, until: int) -> None:
        """`keep` writes it."""

    def tell(self, fact: Fact, name: str, detail: str) -> None:
        self._tx.tell(self._now, fact, name, detail)
