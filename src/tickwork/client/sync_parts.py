"""How coroutine methods become methods that block, and `app.sync.dlq` and its like, which are made of such methods."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from tickwork.client.bulk import Progress
from tickwork.client.dead_letters import DeadLetters
from tickwork.client.events import Events, Subscription
from tickwork.client.queues import Queues
from tickwork.client.schedules import Schedules
from tickwork.model.bulk import BulkResult, TaskFilter
from tickwork.model.info import Event, Steered

if TYPE_CHECKING:
    from tickwork.client.sync import Sync

P = ParamSpec("P")
T = TypeVar("T")


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """A coroutine method as one that blocks, with the same arguments; for classes with `_sync` and `_origin`."""
    name = method.__name__

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        answer: T = self._sync.run(getattr(self._origin, name)(*args, **kwargs))
        return answer

    return call


def following(
    method: Callable[Concatenate[Any, P], Subscription],
) -> Callable[Concatenate[Any, P], Generator[Event, None, None]]:
    """`events.subscribe` for blocking code: it begins with the call, and each step of the iterator waits."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Generator[Event, None, None]:
        subscription = method(self._origin, *args, **kwargs)
        self._sync.refuse_to_deadlock("events", "async for")
        self._sync.run(subscription.__aenter__())
        return _iterate(self._sync, subscription)

    return call


def _iterate(sync: Sync, source: Subscription) -> Generator[Event, None, None]:
    async def step() -> Event | None:
        return await anext(source, None)

    try:
        while (item := sync.run(step())) is not None:
            yield item
    finally:
        sync.run(source.aclose())


class _Part:
    def __init__(self, sync: Sync, origin: Any) -> None:
        self._sync = sync
        self._origin = origin


class SyncDeadLetters(_Part):
    """`app.sync.dlq`."""

    list = blocking(DeadLetters.list)
    get = blocking(DeadLetters.get)
    retry = blocking(DeadLetters.retry)
    remove = blocking(DeadLetters.remove)
    retry_all = blocking(DeadLetters.retry_all)
    clear = blocking(DeadLetters.clear)


class SyncTasks(_Part):
    """`app.sync.tasks`: written out, as `blocking` knows one form of a method only."""

    @overload
    def cancel(self, tasks: Iterable[str], *, force: bool = False) -> list[Steered]: ...
    @overload
    def cancel(
        self, tasks: TaskFilter, *, force: bool = False, dry_run: bool = False, progress: Progress | None = None
    ) -> BulkResult: ...
    def cancel(self, tasks: Any, **options: Any) -> Any:
        return self._sync.run(self._origin.cancel(tasks, **options))

    @overload
    def retry(self, tasks: Iterable[str], *, cascade: bool = False) -> list[Steered]: ...
    @overload
    def retry(
        self, tasks: TaskFilter, *, cascade: bool = False, dry_run: bool = False, progress: Progress | None = None
    ) -> BulkResult: ...
    def retry(self, tasks: Any, **options: Any) -> Any:
        return self._sync.run(self._origin.retry(tasks, **options))

    @overload
    def run_now(self, tasks: Iterable[str]) -> list[Steered]: ...
    @overload
    def run_now(self, tasks: TaskFilter, *, dry_run: bool = False, progress: Progress | None = None) -> BulkResult: ...
    def run_now(self, tasks: Any, **options: Any) -> Any:
        return self._sync.run(self._origin.run_now(tasks, **options))

    @overload
    def delete(self, tasks: Iterable[str]) -> list[Steered]: ...
    @overload
    def delete(self, tasks: TaskFilter, *, dry_run: bool = False, progress: Progress | None = None) -> BulkResult: ...
    def delete(self, tasks: Any, **options: Any) -> Any:
        return self._sync.run(self._origin.delete(tasks, **options))


class SyncSchedules(_Part):
    """`app.sync.schedules`."""

    put = blocking(Schedules.put)
    edit = blocking(Schedules.edit)
    list = blocking(Schedules.list)
    get = blocking(Schedules.get)
    pause = blocking(Schedules.pause)
    resume = blocking(Schedules.resume)
    trigger = blocking(Schedules.trigger)
    next_runs = blocking(Schedules.next_runs)
    runs = blocking(Schedules.runs)
    delete = blocking(Schedules.delete)


class SyncQueues(_Part):
    """`app.sync.queues`."""

    list = blocking(Queues.list)
    pause = blocking(Queues.pause)
    resume = blocking(Queues.resume)
    pause_type = blocking(Queues.pause_type)
    resume_type = blocking(Queues.resume_type)


class SyncEvents(_Part):
    """`app.sync.events`."""

    read = blocking(Events.read)
    last = blocking(Events.last)
    subscribe = following(Events.subscribe)
