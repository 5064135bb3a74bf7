"""Schedules of the memory store."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable

from msgspec.structs import replace

from tickwork.model.facts import Fact
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec, Status
from tickwork.store.contract import SCHEDULES_PAGE, Advance, Receipt
from tickwork.store.hints import SCHEDULES, WORK
from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.lanes import TimeIndex
from tickwork.store.memory.log import FactLog
from tickwork.store.rules import (
    advance_facts,
    advanced,
    changed,
    moved_on,
    put_refused,
    redefined,
    same_definition,
    taken,
)

Submit = Callable[[Spec, int, bool], Receipt]  # the task, the time, and whether a dependency may be missing


class Schedules(Part):
    def __init__(self, core: Core, log: FactLog, homes: Homes, submit: Submit) -> None:
        super().__init__(core)
        self._log = log
        self._homes = homes
        self._submit = submit
        self._schedules: dict[str, Schedule] = {}
        self._ids: list[str] = []  # sorted
        self._next = TimeIndex()  # active ones, by their next tick

    def _save(self, schedule: Schedule) -> Schedule:
        if schedule.id not in self._schedules:
            insort(self._ids, schedule.id)
        self._schedules[schedule.id] = schedule
        if schedule.active and schedule.next_at is not None:
            self._next.put(schedule.id, schedule.next_at)
        else:
            self._next.remove(schedule.id)
        return schedule

    @atomic
    def put(
        self, schedule: Schedule, if_changed: bool = False, create: bool = False, seen: Schedule | None = None
    ) -> Schedule | None:
        now, old = self._core.now(), self._schedules.get(schedule.id)
        if put_refused(old, create, seen):
            return None
        if old is not None and if_changed and same_definition(old, schedule):
            return old
        new = self._save(redefined(old, schedule, now))
        self._log.add(now, Fact.SCHEDULE_PUT, schedule.id, schedule.cron or "")
        self._core.hints.notify(SCHEDULES)
        return new

    @atomic
    def drop(self, schedule_id: str) -> bool:
        if self._schedules.pop(schedule_id, None) is None:
            return False
        del self._ids[bisect_left(self._ids, schedule_id)]
        self._next.remove(schedule_id)
        self._log.add(self._core.now(), Fact.SCHEDULE_DROPPED, schedule_id)
        return True

    @atomic
    def get(self, schedule_id: str) -> Schedule | None:
        return self._schedules.get(schedule_id)

    @atomic
    def page(self, cursor: str | None = None) -> tuple[list[Schedule], str | None]:
        start = 0 if cursor is None else bisect_right(self._ids, cursor)
        ids = self._ids[start : start + SCHEDULES_PAGE]
        more = start + SCHEDULES_PAGE < len(self._ids)
        return [self._schedules[schedule_id] for schedule_id in ids], ids[-1] if more else None

    @atomic
    def due(self, limit: int, after: str | None = None) -> tuple[list[Schedule], int | None]:
        now, behind = self._core.now(), (-1, "")
        if after is not None and after in self._next:
            behind = self._next.at(after), after
        found: list[Schedule] = []
        for schedule_id in self._next.after(behind[0] - 1, 0):
            at = self._next.at(schedule_id)
            if at > now:
                return found, at - now
            if (at, schedule_id) > behind:
                if len(found) == limit:
                    return found, 0
                found.append(self._schedules[schedule_id])
        return found, None

    @atomic
    def change(
        self,
        schedule_id: str,
        *,
        paused: bool | None = None,
        next_at: int | None = None,
        stopped: str | None = None,
    ) -> bool:
        schedule = self._schedules.get(schedule_id)
        if schedule is None:
            return False
        now = self._core.now()
        self._save(changed(schedule, now, paused, next_at, stopped))
        self._log.add(now, Fact.SCHEDULE_STOPPED if stopped else Fact.SCHEDULE_PUT, schedule_id, stopped or "")
        self._core.hints.notify(SCHEDULES)
        return True

    @atomic
    def advance(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...] = ()
    ) -> Advance | None:
        schedule = self._schedules.get(schedule_id)
        if schedule is None or schedule.next_at != seen:
            return None
        now = self._core.now()
        step = taken(step, ticks, [self._submit(spec, now, True) for spec in ticks], self._core.policy)
        self._save(advanced(schedule, step))
        for fact, detail in advance_facts(step):
            self._log.add(now, fact, schedule_id, detail)
        if ticks:
            self._core.hints.notify(WORK)
        return step

    @atomic
    def report_run(self, schedule_id: str, task_id: str, status: Status, fence: int | None = None) -> Schedule | None:
        if moved_on(self._homes.tasks.get(task_id), fence):
            return None
        schedule = self._schedules.get(schedule_id)
        if schedule is not None and schedule.last_task_id == task_id:
            schedule = self._save(replace(schedule, last_status=status.value))
        return schedule
