"""How coroutine methods become methods that block, and `app.sync.dlq` and its like, which are made of such methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from tickwork.client.breakers import Breakers
from tickwork.client.bulk import Progress
from tickwork.client.dead_letters import DeadLetters
from tickwork.client.events import Events, Subscription
from tickwork.client.limits import Limits
from tickwork.client.queues import Queues
from tickwork.client.schedules import Schedules
from tickwork.client.switches import Switches
from tickwork.model.bulk import BulkResult, TaskFilter
from tickwork.model.info import Event, Steered

if TYPE_CHECKING:
    from tickwork.client.sync import Sync

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


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
        return iterate(self._sync, subscription)

    return call


class _Source(Protocol[T_co]):
    """A subscription, or an asynchronous generator."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...
    def aclose(self) -> Coroutine[Any, Any, None]: ...


def iterate(sync: Sync, source: _Source[T]) -> Generator[T, None, None]:
    """Each step waits for one of the source, on the background thread. Who stops early closes the source too."""
    steps = aiter(source)

    async def step() -> T | None:
        return await anext(steps, None)

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


class SyncLimits(_Part):
    """`app.sync.limits`."""

    list = blocking(Limits.list)
    set = blocking(Limits.set)
    remove = blocking(Limits.remove)


class SyncBreakers(_Part):
    """`app.sync.breakers`."""

    list = blocking(Breakers.list)
    get = blocking(Breakers.get)
    open = blocking(Breakers.open)
    close = blocking(Breakers.close)


class SyncSwitches(_Part):
    """`app.sync.switches`."""

    list = blocking(Switches.list)
    off = blocking(Switches.off)
    on = blocking(Switches.on)


class SyncEvents(_Part):
    """`app.sync.events`."""

    read = blocking(Events.read)
    last = blocking(Events.last)
    subscribe = following(Events.subscribe)
