"""Where changed tasks go in a SQLite file, and what their end brings with it. Homes are indexes over the status."""

from __future__ import annotations

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.tasks import ENDS, Place, Record, Spec, Status
from tickwork.store.hints import OUTBOX
from tickwork.store.rules import Overflow, holds_key
from tickwork.store.sqlite.fairness import Fairness
from tickwork.store.sqlite.rows import Rows
from tickwork.store.sqlite.schema import IN_ENDS
from tickwork.store.sqlite.session import Writer

NO_END = 2**62  # a time that never comes


class Homes:
    def __init__(self, tx: Writer) -> None:
        self.tx = tx
        self.rows = Rows(tx)
        self.fairness = Fairness(tx)
        self._overflow = Overflow()

    def now(self) -> int:
        return self.tx.clock.now()

    def place(self, record: Record) -> None:
        """Lanes and ends are kept in the order of coming, fair lanes in that of virtual time; every other
        home is an index that follows the status."""
        status = record.status
        if status is Status.READY and record.place is Place.FAIR:
            record.position = self.fairness.turn(record)
        elif (
            status is Status.READY
            or status in ENDS
            # Virtual time is no order among tasks of several lanes.
            or (status is Status.ASSIGNED and record.place is Place.FAIR)
        ):
            self.tx.state.position += 1
            record.position = self.tx.state.position

    def enter(self, record: Record, now: int, fact: Fact, detail: str = "", save: bool = True) -> None:
        """Put a changed record into the home of its status. What an end of a task brings with it happens here."""
        self.place(record)
        if save:
            self.rows.save((record,))
        self.tx.tell_task(now, fact, record, detail)
        if record.status in ENDS:
            self._ended(record, now)

    def _ended(self, record: Record, now: int) -> None:
        self.tx.state.ends += 1
        if record.spec.schedule_id is not None or self._has_dependants(record.id):
            self.to_outbox(record)
        spec = record.spec
        if record.status is Status.CANCELLED:
            self.tx.run("DELETE FROM @waits WHERE dependant = ?", (record.id,))
            self.forget_deadlines([record.seq])
            self.free_dedup(record)
        elif spec.unique is not None:
            self.free_dedup(record)
        if spec.retention is not None:
            over = (record.finished_at or 0) + spec.retention
            self.tx.run("INSERT OR REPLACE INTO @kept VALUES (?, ?, ?)", (record.seq, over, record.position))
        self.tx.ended(record.id)
        if record.status is Status.DEAD:
            self._bound_dead(now)

    def dedup_holder(self, spec: Spec, now: int) -> str | None:
        if spec.dedup_key is None or not self.tx.policy.dedup:
            return None
        row = self.tx.one("SELECT id, held FROM @dedup WHERE key = ? AND until > ?", (spec.dedup_key, now))
        if row is None:
            return None
        holder, held = row
        return str(holder) if held is None or self._is_unique(holder, held) else None

    def _is_unique(self, holder: str, held: str) -> bool:
        row = self.tx.one("SELECT status FROM @tasks WHERE id = ?", (holder,))
        return row is not None and holds_key(Status(row[0]), held)

    def hold_dedup(self, spec: Spec, now: int) -> None:
        if spec.dedup_key is not None and self.tx.policy.dedup:
            until = now + spec.dedup_ttl if spec.unique is None else NO_END
            held = (spec.dedup_key, spec.id, until, spec.unique)
            self.tx.run("INSERT OR REPLACE INTO @dedup VALUES (?, ?, ?, ?)", held)

    def free_dedup(self, record: Record) -> None:
        """Its own key only: one of an earlier task of this id lives on."""
        if record.spec.dedup_key is not None:
            self.tx.run("DELETE FROM @dedup WHERE key = ? AND id = ?", (record.spec.dedup_key, record.id))

    def _has_dependants(self, task_id: str) -> bool:
        return self.tx.waits and self.tx.one("SELECT 1 FROM @waits WHERE upstream = ?", (task_id,)) is not None

    def to_outbox(self, record: Record) -> None:
        self.tx.run(
            "INSERT INTO @outbox (id, status, schedule_id) VALUES (?, ?, ?) ON CONFLICT (id) "
            "DO UPDATE SET status = excluded.status, schedule_id = excluded.schedule_id",  # it keeps its turn
            (record.id, record.status.value, record.spec.schedule_id),
        )
        self.tx.notify(OUTBOX)

    def _bound_dead(self, now: int) -> None:
        letters, limit, position = self.tx.dead_letters, self.tx.policy.dlq_max, self.tx.state.position
        letters.change(+1)
        if not letters.may_exceed(limit, position):
            return
        if not letters.exact:
            dead = self.tx.one(f"SELECT count(*) FROM @tasks WHERE {IN_ENDS} AND status = 'dead'")[0]
            letters.counted(dead, position)
        excess = letters.count - limit
        if excess > 0:
            for oldest in self.rows.where(f"{IN_ENDS} AND status = 'dead' ORDER BY position LIMIT ?", (excess,)):
                self.tx.state.dropped += 1
                self.tx.tell_task(now, Fact.TASK_DROPPED, oldest, "the dead-letter queue is full")
                self._overflow.add(self.tx.contact.log, oldest.id, oldest.spec.type)
                self.forget(oldest)

    def forget(self, record: Record) -> None:
        self.uncount(record)
        self.rows.delete([record.seq])

    def add_deadline(self, record: Record) -> None:
        if (deadline := transitions.deadline(record)) is not None:
            self.tx.run("INSERT INTO @deadlines VALUES (?, ?)", (record.seq, deadline))

    def forget_deadlines(self, numbers: list[int]) -> None:
        if numbers:
            self.tx.many("DELETE FROM @deadlines WHERE seq = ?", [(seq,) for seq in numbers])

    def uncount(self, record: Record) -> None:
        """It is no longer among those that have ended. One of a status that nobody knows never was."""
        if not record.unreadable or self.tx.one(f"SELECT 1 FROM @tasks WHERE {IN_ENDS} AND seq = ?", (record.seq,)):
            self.tx.state.ends -= 1
            if record.status is Status.DEAD:
                self.tx.dead_letters.change(-1)
