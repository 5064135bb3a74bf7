"""Named periodic tasks as objects, and in-process jobs."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Literal, Protocol, runtime_checkable

from tickwork.backoff import Backoff, Wait
from tickwork.handlers.context import TaskContext
from tickwork.model.schedules import Misfire, Overlap


class PeriodicTask(ABC):
    """A task with a schedule of its own: subclass it, or make a simple one with `PeriodicTask.of`.

    `name` is unique, `spec` a cron line (which may come from configuration), `timeout` in seconds or a timedelta,
    `timezone` the line's (the scheduler's own if not given). The other options of schedules and tasks may be set on the
    class or the object too; None leaves them as they are by default. A failed run is not retried, unless `max_retry` is
    set, and does not stop the next.
    """

    name: str
    spec: str
    timeout: float | timedelta = 300.0
    timezone: str | None = None
    queue: str | None = None
    priority: int | None = None
    max_retry: int | None = None
    retry: Backoff | Wait | None = None
    retry_on: type[BaseException] | tuple[type[BaseException], ...] | None = None
    abort_on: type[BaseException] | tuple[type[BaseException], ...] | None = None
    rate: str | float | None = None
    burst: int | None = None
    per: Literal["type", "key"] | None = None
    concurrency: int | None = None
    breaker: tuple[int, float] | None = None
    submit_rate: str | float | None = None
    key: str | None = None
    tags: Mapping[str, str] | None = None
    context: Mapping[str, Any] | None = None
    requires: Mapping[str, str] | None = None
    overlap: Overlap | Literal["skip", "queue", "allow"] | None = None
    misfire: Misfire | Literal["latest", "skip", "all"] | None = None
    misfire_grace: float | timedelta | None = None
    misfire_cap: int | None = None
    dst: Literal["once", "instant"] | None = None
    on_exhausted: Literal["stop", "continue"] | None = None
    enabled: bool | None = None
    dedup_key: str | None = None
    dedup_ttl: float | timedelta | None = None
    unique: Literal["queued", "unfinished"] | None = None
    retention: float | timedelta | None = None

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
