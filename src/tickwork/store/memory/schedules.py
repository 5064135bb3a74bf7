"""Schedules of the memory store."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tickwork.model.facts import Fact
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec, Status
from tickwork.store.contract import Advance, Receipt
from tickwork.store.hints import SCHEDULES, WORK
from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.log import FactLog
from tickwork.store.rules import advance_facts, advanced, changed, moved_on, redefined, same_definition, taken

Submit = Callable[[Spec, int, bool], Receipt]  # the task, the time, and whether a dependency may be missing


class Schedules(Part):
    def __init__(self, core: Core, log: FactLog, homes: Homes, submit: Submit) -> None:
        super().__init__(core)
        self._log = log
        self._homes = homes
        self._submit = submit
        self._schedules: dict[str, Schedule] = {}

    @atomic
    def put(self, schedule: Schedule, if_changed: bool = False, create: bool = False) -> Schedule | None:
        now, old = self._core.now(), self._schedules.get(schedule.id)
        if old is not None and create:
            return None
        if old is not None and if_changed and same_definition(old, schedule):
            return old
        new = redefined(old, schedule, now)
        self._schedules[schedule.id] = new
        self._log.add(now, Fact.SCHEDULE_PUT, schedule.id, schedule.cron or "")
        self._core.hints.notify(SCHEDULES)
        return new

    @atomic
    def drop(self, schedule_id: str) -> bool:
        if self._schedules.pop(schedule_id, None) is None:
            return False
        self._log.add(self._core.now(), Fact.SCHEDULE_DROPPED, schedule_id)
        return True

    @atomic
    def get(self, schedule_id: str) -> Schedule | None:
        return self._schedules.get(schedule_id)

    @atomic
    def all(self) -> list[Schedule]:
        return sorted(self._schedules.values(), key=lambda schedule: schedule.id)

    @atomic
    def due(self, limit: int) -> tuple[list[Schedule], int | None]:
        now = self._core.now()
        waiting = [(s.next_at, s.id, s) for s in self._schedules.values() if s.active and s.next_at is not None]
        waiting.sort()
        due = [schedule for at, _, schedule in waiting if at <= now]
        later = next((at - now for at, _, _ in waiting if at > now), None)
        return due[:limit], 0 if len(due) > limit else later

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
        self._schedules[schedule_id] = changed(schedule, now, paused, next_at, stopped)
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
        self._schedules[schedule_id] = advanced(schedule, step)
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
            schedule = self._schedules[schedule_id] = replace(schedule, last_status=status.value)
        return schedule
