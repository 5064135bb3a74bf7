"""The schedules that a program declares in its code, written to the store when the program starts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from tickwork.backoff import RetryPolicy
from tickwork.client.schedules import Schedules
from tickwork.errors import ConfigError
from tickwork.handlers.context import TaskContext
from tickwork.handlers.options import HANDLER_ONLY, HandlerOptions, PeriodicOptions, ScheduleOptions
from tickwork.handlers.periodic import PeriodicTask
from tickwork.handlers.registry import Entry
from tickwork.observe.loggers import Log
from tickwork.payload.parameters import MISSING

OF_OBJECTS = PeriodicOptions.__annotations__.keys() - {"name", "serializer", "executor", "target"}
# A key is a path into the payload where a handler says it, and the key itself where a schedule does.
OF_HANDLERS = HandlerOptions.__annotations__.keys() - {"key"}


class Declared(NamedTuple):
    """A schedule in code: what it runs, with which payload, and when."""

    entry: Entry
    payload: Any
    cron: str
    options: Mapping[str, Any]  # of `ScheduleOptions`


class Periodic:
    """By the id of the schedule: what `@app.periodic` and `app.register` have declared."""

    def __init__(self, schedules: Schedules) -> None:
        self._schedules = schedules
        self._declared: dict[str, Declared] = {}

    def add(self, id: str, declared: Declared, log: Log) -> None:
        entry, payload, cron, options = declared
        if payload is MISSING and (needed := entry.parameters.required):
            raise ConfigError(
                f"periodic function {entry.type!r} has parameters ({', '.join(needed)}) and no payload for its runs; "
                "give one: app.periodic(cron, payload=...)"
            )
        # A mistake is refused here, where it was made.
        self._schedules.build(id, entry.type, payload, cron, cast("ScheduleOptions", options))
        known = self._declared.get(id)
        if known is not None and known.entry.type == entry.type and known.entry is not entry:
            known = None  # the function was defined anew
        if known not in (None, declared):
            raise ConfigError(
                f"schedule {id!r} is declared already, for {known.entry.type!r} by {known.cron!r}; give this one an id "
                "of its own: app.periodic(cron, id=...)"
            )
        self._declared[id] = declared
        log.line(logging.INFO, "Task registered", name=id, spec=cron)

    async def write(self) -> None:
        for schedule_id, declared in list(self._declared.items()):  # more may be registered meanwhile
            entry, payload, cron, options = declared
            await self._schedules._declare(schedule_id, entry.type, payload, cron, cast("ScheduleOptions", options))

    @property
    def names(self) -> list[str]:
        return sorted(self._declared)


def not_retried(options: Mapping[str, Any]) -> dict[str, Any]:
    """The runs of a function that is only there for its schedule are not retried, unless it says so."""
    said = options.get("max_retry") is not None or isinstance(options.get("retry"), RetryPolicy)
    if not said and (options.get("retry_on") is not None or callable(options.get("retry"))):
        what = "retry_on" if options.get("retry_on") is not None else "a retry function"
        raise ConfigError(f"{what} is for retries, and periodic functions have none by themselves; give max_retry too")
    return {**options} if said else {**options, "max_retry": 0}


def of_handler(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that hold for a run by hand too."""
    return {name: value for name, value in options.items() if name in OF_HANDLERS}


def of_schedule(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are stored with the schedule."""
    return {name: value for name, value in options.items() if not _is_only_for_handlers(name, value)}


def check_of_runs(task: str, options: Mapping[str, Any]) -> None:
    """Refuse, beside a handler that was declared before, what only a handler can have."""
    for name, value in options.items():
        if _is_only_for_handlers(name, value):
            what = "a retry function" if name == "retry" else name
            raise ConfigError(f"{what} of task {task!r} is said with app.task, not here")


def _is_only_for_handlers(name: str, value: Any) -> bool:
    return name in HANDLER_ONLY or (name == "retry" and callable(value))


def of_object(task: PeriodicTask) -> dict[str, Any]:
    """What a periodic task object, or its class, says of its schedule and its runs."""
    if isinstance(task, type):
        raise ConfigError(f"app.register takes an object of {task.__name__}, not the class itself: {task.__name__}()")
    for needed in ("name", "spec"):
        if not isinstance(getattr(task, needed, None), str):
            raise ConfigError(f"periodic task {type(task).__name__} has no {needed}; set it on the class or the object")
    return not_retried({name: value for name in OF_OBJECTS if (value := getattr(task, name)) is not None})


def handler_of(task: PeriodicTask) -> Callable[[TaskContext], Any]:
    """What runs a periodic task object."""

    async def run_async(ctx: TaskContext) -> Any:
        return await task.run(ctx)

    def run_sync(ctx: TaskContext) -> Any:
        return task.run(ctx)

    return run_async if task.is_async else run_sync
