"""`app.sync`: the same calls for programs without an event loop (Flask, Django, scripts, threads)."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Coroutine, Generator, Iterable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from tickwork.client.dead_letters import DeadLetters
from tickwork.client.events import Events, Subscription
from tickwork.client.handle import Handle
from tickwork.client.lock import Lock
from tickwork.client.queues import Queues
from tickwork.client.schedules import Schedules
from tickwork.errors import TickworkError
from tickwork.forks import keep, tell_of_forks
from tickwork.handlers.options import Options
from tickwork.model.info import Event, Task, TaskInfo
from tickwork.payload.parameters import MISSING

if TYPE_CHECKING:
    from tickwork.scheduler import Scheduler

T = TypeVar("T")

END_WAIT = 2.0  # for the background thread, which may be inside of a blocking call


class SyncHandle:
    """A submitted task, for blocking code."""

    def __init__(self, sync: Sync, handle: Handle[Any]) -> None:
        self._sync = sync
        self._handle = handle
        self.id = handle.id

    def result(self, timeout: float | timedelta | None = None) -> Any:
        self._sync.refuse_to_deadlock()
        return self._sync.call(self._handle.result(timeout))

    def info(self) -> TaskInfo:
        return self._sync.call(self._handle.info())

    def cancel(self, force: bool = False) -> None:
        self._sync.call(self._handle.cancel(force))

    def __repr__(self) -> str:
        return f"<SyncHandle {self.id}>"


class SyncLock:
    """A lock for blocking code, renewed on the background thread."""

    def __init__(self, sync: Sync, lock: Lock) -> None:
        self._sync = sync
        self._lock = lock
        self.name = lock.name

    @property
    def held(self) -> bool:
        return self._lock.held

    @property
    def fence(self) -> int:
        return self._lock.fence

    def check(self) -> None:
        self._lock.check()

    def acquire(self, timeout: float | timedelta | None = None) -> bool:
        if timeout is None or timeout:
            self._sync.refuse_to_deadlock("a lock", "async with app.lock(...)")
        try:
            return self._sync.call(self._lock.acquire(timeout))
        except Exception:
            raise
        except BaseException:  # this thread is to stop: what it may have got meanwhile, nobody else would give back
            self._sync.call(self._lock.release())
            raise

    def release(self) -> bool:
        return self._sync.call(self._lock.release())

    def __enter__(self) -> SyncLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sync.call(self._lock.__aexit__(kind, error, trace))

    def __repr__(self) -> str:
        return f"<SyncLock {self.name}{' held' if self.held else ''}>"


class Sync:
    """Runs the scheduler's coroutines on a background thread with a loop of its own. Safe from several threads.

    Every coroutine method of the scheduler, and of `dlq`, `schedules`, `queues` and `events`, is there under its name;
    `events.subscribe()` is an iterator that blocks. Everything else is as it is there.
    """

    def __init__(self, app: Scheduler) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread
        tell_of_forks(self)

    def after_fork(self) -> None:
        keep(self._loop)
        self._lock = threading.Lock()
        self._loop = None

    def submit(self, type: Any, payload: Any = MISSING, **options: Unpack[Options]) -> SyncHandle:
        return SyncHandle(self, self.call(self._app.submit(type, payload, **options)))

    def submit_many(self, type: Any, payloads: Iterable[Any], **options: Unpack[Options]) -> list[SyncHandle]:
        return [SyncHandle(self, h) for h in self.call(self._app.submit_many(type, payloads, **options))]

    def submit_tasks(self, tasks: Iterable[Task]) -> list[SyncHandle | TickworkError]:
        answers = self.call(self._app.submit_tasks(tasks))
        return [SyncHandle(self, each) if isinstance(each, Handle) else each for each in answers]

    def handle(self, task_id: str) -> SyncHandle:
        """A handle on a task that was submitted elsewhere, or before."""
        return SyncHandle(self, self._app.handle(task_id))

    def lock(self, name: str, ttl: float | timedelta | None = None) -> SyncLock:
        return SyncLock(self, self._app.lock(name, ttl))

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run any coroutine on the background loop and wait for it."""
        loop = self._background()
        if running_loop() is loop:
            work.close()
            raise RuntimeError("app.sync was called from its own background thread; use await there")
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # if the wait was cut short, nobody wants it any more
            raise

    def refuse_to_deadlock(self, what: str = "a result", instead: str = "await handle.result()") -> None:
        loop = running_loop()
        if loop is not None and loop is self._app._node_loop:
            raise RuntimeError(
                f"waiting for {what} here would stop the very event loop that runs the worker; use `{instead}`"
            )

    def close(self) -> None:
        """Close the store and end the background thread. A started scheduler is shut down by its own loop instead."""
        if self._loop is not None and self._app._node_loop is None:
            self.call(self._app._close_store())
        self.end_thread()

    async def end_elsewhere(self) -> None:
        """End the background thread and wait for it, unless it is the one that asks."""
        if self._loop not in (None, asyncio.get_running_loop()):
            thread = self._thread
            self.end_thread()
            await asyncio.to_thread(thread.join, END_WAIT)

    def end_thread(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _background(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="tickwork-sync", daemon=True)
                self._thread.start()
            return self._loop

    def __getattr__(self, name: str) -> Any:
        return _blocking(self, getattr(self._app, name))


class _Part:
    """`app.sync.dlq` and its like."""

    def __init__(self, sync: Sync, part: Any) -> None:
        self._sync = sync
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return _blocking(self._sync, getattr(self._part, name))


class _Events(_Part):
    """`app.sync.events`."""

    def subscribe(self, **filters: Any) -> Generator[Event, None, None]:
        """Follow the log from now (or from number `after`); it begins with this call."""
        subscription: Subscription = self._part.subscribe(**filters)
        self._sync.refuse_to_deadlock("events", "async for")
        self._sync.call(subscription.__aenter__())
        return _iterate(self._sync, subscription)


def _blocking(sync: Sync, what: Any) -> Any:
    if inspect.iscoroutinefunction(what):

        def call(*args: Any, **kwargs: Any) -> Any:
            found = sync.call(what(*args, **kwargs))
            return SyncHandle(sync, found) if isinstance(found, Handle) else found

        return call
    if isinstance(what, Events):
        return _Events(sync, what)
    return _Part(sync, what) if isinstance(what, DeadLetters | Schedules | Queues) else what


def _iterate(sync: Sync, source: Subscription) -> Generator[Event, None, None]:
    async def step() -> Event | None:
        return await anext(source, None)

    try:
        while (item := sync.call(step())) is not None:
            yield item
    finally:
        sync.call(source.aclose())


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:  # or those who wait for them would wait for ever
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    finally:
        loop.close()
