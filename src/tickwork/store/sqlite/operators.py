"""What operators may do with tasks, queues and types in a SQLite file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.tasks import DELAYED, Status
from tickwork.store.contract import Retried
from tickwork.store.hints import CONTROL, WORK
from tickwork.store.rules import ENDED_KEPT, LOST_WORKER_KEPT, due_text, for_each, moves_to
from tickwork.store.sqlite.core import Core, Part, reads, writes
from tickwork.store.sqlite.histories import Histories
from tickwork.store.sqlite.homes import Homes
from tickwork.store.sqlite.lists import missing_lists
from tickwork.store.sqlite.locks import prune_locks
from tickwork.store.sqlite.pruning import prune_ends
from tickwork.store.sqlite.schema import LISTS
from tickwork.store.sqlite.workers import forget_worker

Audit = Callable[[], Awaitable[list[str]]]


class Operators(Part):
    def __init__(self, core: Core, homes: Homes, audit: Audit) -> None:
        super().__init__(core)
        self._homes = homes
        self._rows = homes.rows
        self._audit = audit
        self._histories = Histories(core.writer)

    @writes
    def cancel(
        self, ids: Sequence[str], force: bool, reason: str = "", only: Status | None = None
    ) -> list[Status | None]:
        return for_each(ids, lambda task_id: self._cancel(task_id, force, reason, only))

    def _cancel(self, task_id: str, force: bool, reason: str, only: Status | None) -> Status | None:
        record = self._rows.get(task_id)
        if record is None:
            return None
        found, now = record.status, self.now()
        if only not in (None, found):
            return found
        if found is Status.RUNNING and force:
            self.tx.tell_task(now, transitions.ask_cancel(record, reason), record, reason)
            self._rows.save((record,))
            self.tx.notify(CONTROL)
        elif found is not Status.RUNNING and not found.ended:
            self._homes.enter(record, now, transitions.cancel(record, now, reason), reason)
        return found

    @writes
    def run_now(self, ids: Sequence[str], only: Status | None = None, held: bool = False) -> list[Status | None]:
        return for_each(ids, lambda task_id: self._run_now(task_id, only, held))

    def _run_now(self, task_id: str, only: Status | None, held: bool) -> Status | None:
        record = self._rows.get(task_id)
        if record is None:
            return None
        found = record.status
        if found in DELAYED and only in (None, found) and (record.parked is not None or not held):
            self._homes.enter(record, self.now(), transitions.run_now(record))
            self.tx.notify(WORK)
        return found

    @writes
    def reschedule(self, ids: Sequence[str], at: int) -> list[Status | None]:
        return for_each(ids, lambda task_id: self._reschedule(task_id, at))

    def _reschedule(self, task_id: str, at: int) -> Status | None:
        record = self._rows.get(task_id)
        if record is None:
            return None
        found = record.status
        if moves_to(record, at):
            self._homes.enter(record, self.now(), transitions.reschedule(record, at), due_text(at))
            self._homes.forget_deadlines([record.seq])
            self._homes.add_deadline(record)
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
            self.tx.run("DELETE FROM @kept WHERE seq = ?", (record.seq,))
            self.tx.run("DELETE FROM @outbox WHERE id = ?", (task_id,))
            if waiting:
                self.tx.add_waits(task_id, waiting)
            now, spec = self.now(), record.spec
            self._histories.keep_run(record, transitions.run_ended(record, self._histories.last_kept(record)))
            if (spec.dedup_ttl or spec.unique) and self._homes.dedup_holder(spec, now) in (None, task_id):
                self._homes.hold_dedup(spec, now)
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
        now = self.now()
        over = "SELECT key FROM @dedup WHERE until <= ? LIMIT ?"
        self.tx.run(f"DELETE FROM @dedup WHERE key IN ({over})", (now - ENDED_KEPT, limit))
        prune_locks(self.tx, now, limit)
        pruned = prune_ends(self._rows, self.tx, now, limit)
        self._homes.fairness.prune(limit)
        self._prune_workers(now)
        return pruned

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

    async def index(self, on: bool, report: Callable[[int], None] | None = None) -> bool:
        """Each index is made in a transaction of its own, so that others have their turn in between."""
        missing = await self._missing_lists()
        for done, column in enumerate(LISTS, 1):
            if on and column in missing:
                count = await self._make_list(column)
                if report is not None:
                    report(count * done // len(LISTS))
        if on:
            return bool(missing)
        await self._drop_lists()
        return len(missing) < len(LISTS)

    @reads
    def _missing_lists(self) -> list[str]:
        return missing_lists(self.reader)

    @writes
    def _make_list(self, column: str) -> int:
        self.tx.run(f"CREATE INDEX IF NOT EXISTS #by_{column} ON @tasks {LISTS[column]}")
        count: int = self.tx.one("SELECT count(*) FROM @specs")[0]
        return count

    @writes
    def _drop_lists(self) -> None:
        for column in LISTS:
            self.tx.run(f"DROP INDEX IF EXISTS #by_{column}")

    async def mend(self) -> list[str]:
        """Homes are indexes that SQLite itself keeps, so there is nothing to repair."""
        return await self._audit()

    def _prune_workers(self, now: int) -> None:
        for (worker_id,) in self.tx.all("SELECT id FROM @workers WHERE lost_at <= ?", (now - LOST_WORKER_KEPT,)):
            forget_worker(self.tx, worker_id)
