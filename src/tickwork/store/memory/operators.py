"""What operators may do with the memory store: steer tasks, pause queues and types, remove what is old."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from heapq import merge
from itertools import islice, takewhile
from operator import attrgetter
from typing import Literal

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.tasks import DELAYED, Record, Status
from tickwork.store.contract import Pause, Retried
from tickwork.store.hints import CONTROL, WORK
from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.locks import Locks
from tickwork.store.memory.log import FactLog
from tickwork.store.memory.members import Members
from tickwork.store.rules import ENDED_KEPT, LOST_WORKER_KEPT, due_text, for_each, moves_to

Audit = Callable[[], Awaitable[list[str]]]


class Operators(Part):
    def __init__(self, core: Core, log: FactLog, homes: Homes, members: Members, locks: Locks, audit: Audit) -> None:
        super().__init__(core)
        self._audit = audit
        self._log = log
        self._homes = homes
        self._members = members
        self._locks = locks

    @atomic
    def cancel(
        self, ids: Sequence[str], force: bool, reason: str = "", only: Status | None = None
    ) -> list[Status | None]:
        return for_each(ids, lambda task_id: self._cancel(task_id, force, reason, only))

    def _cancel(self, task_id: str, force: bool, reason: str, only: Status | None) -> Status | None:
        record = self._homes.tasks.get(task_id)
        if record is None:
            return None
        found, now = record.status, self._core.now()
        if only not in (None, found):
            return found
        if found is Status.RUNNING and force:
            self._log.add_task(now, transitions.ask_cancel(record, reason), record, reason)
            self._core.hints.notify(CONTROL)
        elif found is not Status.RUNNING and not found.ended:
            self._homes.leave(record)
            self._homes.enter(record, now, transitions.cancel(record, now, reason), reason)
        return found

    @atomic
    def run_now(self, ids: Sequence[str], only: Status | None = None, held: bool = False) -> list[Status | None]:
        return for_each(ids, lambda task_id: self._run_now(task_id, only, held))

    def _run_now(self, task_id: str, only: Status | None, held: bool) -> Status | None:
        record = self._homes.tasks.get(task_id)
        if record is None:
            return None
        found = record.status
        if found in DELAYED and only in (None, found) and (record.parked is not None or not held):
            self._homes.leave(record)
            self._homes.enter(record, self._core.now(), transitions.run_now(record))
            self._core.hints.notify(WORK)
        return found

    @atomic
    def reschedule(self, ids: Sequence[str], at: int) -> list[Status | None]:
        return for_each(ids, lambda task_id: self._reschedule(task_id, at))

    def _reschedule(self, task_id: str, at: int) -> Status | None:
        record = self._homes.tasks.get(task_id)
        if record is None:
            return None
        found = record.status
        if moves_to(record, at):
            self._homes.leave(record)
            self._homes.enter(record, self._core.now(), transitions.reschedule(record, at), due_text(at))
            self._core.hints.notify(WORK)
        return found

    @atomic
    def retry(self, ids: Sequence[str], only: Status | None = None) -> list[Retried]:
        return for_each(ids, lambda task_id: self._retry(task_id, only))

    def _retry(self, task_id: str, only: Status | None) -> Retried:
        record = self._homes.tasks.get(task_id)
        if record is None:
            return Retried(None)
        found = record.status
        if not found.ended or only not in (None, found):
            return Retried(found)
        waiting, never = transitions.waits_again(record, self._homes.tasks.get)
        if not never:
            self._homes.leave(record)
            self._homes.outbox.pop(task_id, None)
            now = self._core.now()
            self._homes.keep_run(record, transitions.run_ended(record, self._homes.last_kept(record)))
            spec = record.spec
            if (spec.dedup_ttl or spec.unique) and self._homes.dedup_holder(spec, now) in (None, task_id):
                self._homes.hold_dedup(spec, now)
            self._homes.enter(record, now, transitions.retry(record, waiting, now))
            self._core.hints.notify(WORK)
        return Retried(found, never)

    @atomic
    def delete(self, ids: Sequence[str], only: Status | None = None) -> list[Status | None]:
        return for_each(ids, lambda task_id: self._delete(task_id, only))

    def _delete(self, task_id: str, only: Status | None) -> Status | None:
        record = self._homes.tasks.get(task_id)
        if record is None:
            return None
        if record.status.ended and only in (None, record.status):
            self._log.add_task(self._core.now(), Fact.TASK_DELETED, record)
            self._homes.free_dedup(record)
            self._homes.forget(record)
        return record.status

    @atomic
    def prune(self, limit: int) -> int:
        now = self._core.now()
        for key in self._homes.dedup_ends.take_until(now - ENDED_KEPT, limit):
            del self._homes.dedup[key]
        self._locks.prune(now, limit)
        pruned = self._prune_ends(now, limit)
        for lane in self._homes.lanes.values():
            if lane.fair is not None:
                lane.fair.prune(limit)
        self._members.forget_lost(now - LOST_WORKER_KEPT)
        return pruned

    def _prune_ends(self, now: int, limit: int) -> int:
        excess = sum(map(len, self._homes.ends.values())) - self._core.policy.retention_max
        pruned = list(islice(self._past_their_own(now), limit))
        for record in pruned:
            self._homes.forget(record)
        others = list(islice(self._past_the_policy(now, excess - len(pruned)), limit - len(pruned)))
        for record in others:
            self._homes.forget(record)
        return len(pruned) + len(others)

    def _past_their_own(self, now: int) -> Iterator[Record]:
        """Ended tasks whose own retention is over, in the order of that."""
        kept, outbox = self._homes.kept, self._homes.outbox
        over = takewhile(lambda task_id: kept.at(task_id) <= now, kept.after(-1, 0))
        return (self._homes.tasks[task_id] for task_id in over if task_id not in outbox)

    def _past_the_policy(self, now: int, excess: int) -> Iterator[Record]:
        """Ended tasks in the order of their ends: as many as are too many, then those that the policy lets go."""
        until = now - self._core.policy.retention
        by_end = merge(*(shelf.values() for shelf in self._homes.ends.values()), key=attrgetter("position"))
        for record in by_end:
            if record.id in self._homes.outbox:
                continue
            if excess > 0:
                excess -= 1
            elif record.spec.retention is not None:
                continue
            elif (record.finished_at or 0) > until:
                return
            yield record

    @atomic
    def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        now = self._core.now()
        self._homes.pauses[kind, name] = Pause(kind, name, now, note)
        self._log.add(now, Fact.QUEUE_PAUSED if kind == "queue" else Fact.TYPE_PAUSED, name, note)

    @atomic
    def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        if self._homes.pauses.pop((kind, name), None) is None:
            return False
        self._log.add(self._core.now(), Fact.QUEUE_RESUMED if kind == "queue" else Fact.TYPE_RESUMED, name)
        self._core.hints.notify(WORK)
        return True

    @atomic
    def index(self, on: bool, report: Callable[[int], None] | None = None) -> bool:
        if self._homes.lists.on is on:
            return False
        self._homes.lists.switch(on, self._homes.by_seq.values())
        if on and report is not None:
            report(len(self._homes.tasks))
        return True

    async def mend(self) -> list[str]:
        """Nothing outside of this object can harm it, so there is nothing to repair."""
        return await self._audit()
