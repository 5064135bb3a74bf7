"""The schedules that a program declares in its code, written to the store when the program starts."""

from __future__ import annotations

import logging
from typing import Any

from tickwork.client.schedules import Schedules
from tickwork.errors import ConfigError
from tickwork.handlers.context import TaskContext
from tickwork.handlers.options import ScheduleOptions
from tickwork.handlers.periodic import PeriodicTask
from tickwork.observe.loggers import Log
from tickwork.payload.parameters import MISSING


class Periodic:
    """By name: what `@app.periodic` and `app.register` have declared."""

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules
        self._declared: dict[str, tuple[str, ScheduleOptions]] = {}

    def add(self, name: str, cron: str, options: ScheduleOptions, log: Log) -> None:
        given: ScheduleOptions = {"max_retry": 0, **options}
        self._schedules.build(name, name, MISSING, cron, given)  # refused here, where the mistake is
        self._declared[name] = (cron, given)
        log.line(logging.INFO, "Task registered", name=name, spec=cron)

    async def write(self) -> None:
        for name, (cron, options) in list(self._declared.items()):  # more may be registered meanwhile
            await self._schedules.put(name, name, cron=cron, if_changed=True, **options)

    @property
    def names(self) -> list[str]:
        return sorted(self._declared)


def handler_of(task: PeriodicTask) -> Any:
    """What runs a periodic task object."""
    for needed in ("name", "spec"):
        if not isinstance(getattr(task, needed, None), str):
            raise ConfigError(f"periodic task {type(task).__name__} has no {needed}; set it on the class or the object")

    async def run_async(ctx: TaskContext) -> Any:
        return await task.run(ctx)

    def run_sync(ctx: TaskContext) -> Any:
        return task.run(ctx)

    return run_async if task.is_async else run_sync
