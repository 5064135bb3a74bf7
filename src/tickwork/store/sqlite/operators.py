"""What operators may do with tasks, queues and types in a SQLite file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.tasks import DELAYED, ENDS, Status
from tickwork.store.contract import Retried
from tickwork.store.hints import CONTROL, WORK
from tickwork.store.rules import ENDED_KEPT, LOST_WORKER_KEPT, for_each
from tickwork.store.sqlite.core import Core, Part, writes
from tickwork.store.sqlite.homes import Homes
from tickwork.store.sqlite.locks import prune_locks
from tickwork.store.sqlite.schema import IN_ENDS
from tickwork.store.sqlite.workers import forget_worker

Audit = Callable[[], Awaitable[list[str]]]


class Operators(Part):
    def __init__(self, core: Core, homes: Homes, audit: Audit) -> None:
        super().__init__(core)
        self._homes = homes
        self._rows = homes.rows
        self._audit = audit

    @writes
    def cancel(self, ids: Sequence[str], force: bool, reason: str = "") -> list[Status | None]:
        return for_each(ids, lambda task_id: self._cancel(task_id, force, reason))

    def _cancel(self, task_id: str, force: bool, reason: str) -> Status | None:
        record = self._rows.get(task_id)
        if record is None:
            return None
        found, now = record.status, self.now()
        if found is Status.RUNNING and force:
            self.tx.tell_task(now, transitions.ask_cancel(record, reason), record, reason)
            self._rows.save((record,))
            self.tx.notify(CONTROL)
        elif found is not Status.RUNNING and not found.ended:
            self._homes.enter(record, now, transitions.cancel(record, now, reason), reason)
        return found

    @writes
    def run_now(self, ids: Sequence[str]) -> list[Status | None]:
        return for_each(ids, self._run_now)

    def _run_now(self, task_id: str) -> Status | None:
        record = self._rows.get(task_id)
        if record is None:
            return None
        found = record.status
        if found in DELAYED:
            self._homes.enter(record, self.now(), transitions.run_now(record))
            self.tx.notify(WORK)
        return found

    @writes
    def retry(self, ids: Sequence[str], only: Status | None = None) -> list[Retried]:
        return for_each(ids, lambda task_id: self._retry(task_id, only))

    def _retry(self, task_id: str, only: Status | None) -> Retried:
        record = self._rows.get(task_id)
        if record is None:
            return Retried(None)
        found = record.status
        if not found.ended or only not in (None, found):
            return Retried(found)
        waiting, never = transitions.waits_again(record, self._rows.get)
        if not never:
            self._homes.uncount(record)
            self.tx.run("DELETE FROM @outbox WHERE id = ?", (task_id,))
            if waiting:
                self.tx.add_waits(task_id, waiting)
            now = self.now()
            if record.spec.dedup_ttl and self._homes.dedup_holder(record.spec, now) in (None, task_id):
                self._homes.hold_dedup(record.spec, now)
            self._homes.enter(record, now, transitions.retry(record, waiting, now))
            self.tx.notify(WORK)
        return Retried(found, never)

    @writes
    def delete(self, ids: Sequence[str], only: Status | None = None) -> list[Status | None]:
        return for_each(ids, lambda task_id: self._delete(task_id, only))

    def _delete(self, task_id: str, only: Status | None) -> Status | None:
        record = self._rows.get(task_id)
        if record is None:
            return None
        if record.status.ended and only in (None, record.status):
            self.tx.tell_task(self.now(), Fact.TASK_DELETED, record)
            self._homes.free_dedup(record)
            self._homes.forget(record)
        return record.status

    @writes
    def prune(self, limit: int) -> int:
        now, policy = self.now(), self.tx.policy
        over = "SELECT key FROM @dedup WHERE until <= ? LIMIT ?"
        self.tx.run(f"DELETE FROM @dedup WHERE key IN ({over})", (now - ENDED_KEPT, limit))
        prune_locks(self.tx, now, limit)
        excess = self.tx.state.ends - policy.retention_max
        oldest = sorted(end for status in ENDS for end in self._oldest(status, limit))[:limit]
        pruned: list[int] = []
        for _, finished_at, seq in oldest:
            if finished_at > now - policy.retention and len(pruned) >= excess:
                break
            pruned.append(seq)
        self.tx.state.ends -= len(pruned)
        if pruned:
            self.tx.dead_letters.forget()
        self._rows.delete(pruned)
        self._prune_workers(now)
        return len(pruned)

    @writes
    def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        now = self.now()
        self.tx.run("INSERT OR REPLACE INTO @pauses VALUES (?, ?, ?, ?)", (kind, name, now, note))
        self.tx.tell(now, Fact.QUEUE_PAUSED if kind == "queue" else Fact.TYPE_PAUSED, name, note)

    @writes
    def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        if self.tx.run("DELETE FROM @pauses WHERE kind = ? AND name = ?", (kind, name)).rowcount == 0:
            return False
        self.tx.tell(self.now(), Fact.QUEUE_RESUMED if kind == "queue" else Fact.TYPE_RESUMED, name)
        self.tx.notify(WORK)
        return True

    async def mend(self) -> list[str]:
        """Homes are indexes that SQLite itself keeps, so there is nothing to repair."""
        return await self._audit()

    def _oldest(self, status: Status, limit: int) -> list[tuple[int, int, int]]:
        """Position, end and number of those that nobody waits to be told of."""
        return self.tx.all(
            f"SELECT position, iif(typeof(finished_at) = 'integer', finished_at, 0), seq FROM @tasks WHERE {IN_ENDS} "
            f"AND status = ? AND position < {2**62} AND id NOT IN (SELECT id FROM @outbox) ORDER BY position LIMIT ?",
            (status.value, limit),
        )

    def _prune_workers(self, now: int) -> None:
        for (worker_id,) in self.tx.all("SELECT id FROM @workers WHERE lost_at <= ?", (now - LOST_WORKER_KEPT,)):
            forget_worker(self.tx, worker_id)
