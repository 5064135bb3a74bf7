"""The outbox of the memory store: who waits for the end of a task is told of it, however often that takes."""

from __future__ import annotations

from itertools import islice

from msgspec.structs import replace

from tickwork.model import transitions
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Status
from tickwork.store.contract import OutboxEntry
from tickwork.store.hints import WORK
from tickwork.store.memory.members import atomic
from tickwork.store.memory.operators import Operators
from tickwork.store.rules import fence_of_end, moved_on


class Outbox(Operators):
    @atomic
    def outbox(self, limit: int) -> list[OutboxEntry]:
        return [
            OutboxEntry(
                task_id, status, self._waiting_for(task_id), schedule_id, fence_of_end(self._tasks.get(task_id))
            )
            for task_id, (status, schedule_id) in islice(self._outbox.items(), limit)
        ]

    @atomic
    def dependants(self, task_id: str, limit: int) -> list[str]:
        return list(self._waiting_for(task_id)[:limit])

    @atomic
    def clear_outbox(self, told: list[OutboxEntry]) -> None:
        for entry in told:
            if not self._waiting_for(entry.id) and not moved_on(self._tasks.get(entry.id), entry.fence):
                self._outbox.pop(entry.id, None)

    @atomic
    def report_run(self, schedule_id: str, task_id: str, status: Status, fence: int | None = None) -> Schedule | None:
        if moved_on(self._tasks.get(task_id), fence):
            return None
        schedule = self._schedules.get(schedule_id)
        if schedule is not None and schedule.last_task_id == task_id:
            schedule = self._schedules[schedule_id] = replace(schedule, last_status=status.value)
        return schedule

    @atomic
    def resolve(self, task_id: str, upstream: str, ok: bool, fence: int | None = None) -> bool:
        record = self._tasks.get(task_id)
        if moved_on(self._tasks.get(upstream), fence):
            return False
        if record is None or record.status is not Status.BLOCKED or upstream not in record.waiting:
            return False
        now = self.now()
        self._leave(record)
        self._settle(record, now, transitions.resolve(record, upstream, ok, now), upstream)
        self.hints.notify(WORK)
        return True
