"""Named periodic tasks as objects, and in-process jobs."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

from tickwork.handlers.context import TaskContext


class PeriodicTask(ABC):
    """A task with a schedule of its own: subclass it, or make a simple one with `PeriodicTask.of`.

    `name` is unique, `spec` a cron line (which may come from configuration), `timeout` in seconds or a timedelta,
    `timezone` the line's (the scheduler's own if not given). A failed run is not retried and does not stop the next.
    """

    name: str
    spec: str
    timeout: float | timedelta = 300.0
    timezone: str | None = None

    @abstractmethod
    def run(self, ctx: TaskContext) -> Any:
        """The work; may be async."""

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.run)

    @staticmethod
    def of(name: str, spec: str, timeout: float | timedelta, func: Callable[[TaskContext], Any]) -> PeriodicTask:
        return _Simple(name, spec, timeout, func)


class _Simple(PeriodicTask):
    def __init__(self, name: str, spec: str, timeout: float | timedelta, func: Callable[[TaskContext], Any]) -> None:
        self.name, self.spec, self.timeout = name, spec, timeout
        self._func = func

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self._func)

    def run(self, ctx: TaskContext) -> Any:
        return self._func(ctx)


@runtime_checkable
class Job(Protocol):
    """A live object to run later in this very process."""

    id: str

    def run(self, ctx: TaskContext) -> Any: ...


Runnable = Job | Callable[[], Any] | Callable[[], Awaitable[Any]]
