"""`app.sync`: the same calls for programs without an event loop (Flask, Django, scripts, threads)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from tickwork.handle import Handle
from tickwork.handlers import MISSING
from tickwork.model import TaskInfo
from tickwork.submission import Options

if TYPE_CHECKING:
    from tickwork.scheduler import Scheduler

T = TypeVar("T")


class SyncHandle:
    """A submitted task, for blocking code."""

    def __init__(self, sync: Sync, handle: Handle[Any]) -> None:
        self._sync = sync
        self._handle = handle
        self.id = handle.id

    def result(self, timeout: float | None = None) -> Any:
        self._sync.refuse_to_deadlock()
        return self._sync.call(self._handle.result(timeout))

    def info(self) -> TaskInfo:
        return self._sync.call(self._handle.info())

    def cancel(self, force: bool = False) -> None:
        self._sync.call(self._handle.cancel(force))

    def __repr__(self) -> str:
        return f"<SyncHandle {self.id}>"


class Sync:
    """Runs the scheduler's coroutines on a background thread with a loop of its own. Safe from several threads.

    Every coroutine method of the scheduler, and of `dlq`, `schedules`, `queues` and `events`, is there under its name.
    """

    def __init__(self, app: Scheduler) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, type: Any, payload: Any = MISSING, **options: Unpack[Options]) -> SyncHandle:
        return SyncHandle(self, self.call(self._app.submit(type, payload, **options)))

    def submit_many(self, type: Any, payloads: Iterable[Any], **options: Unpack[Options]) -> list[SyncHandle]:
        return [SyncHandle(self, h) for h in self.call(self._app.submit_many(type, payloads, **options))]

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run any coroutine on the background loop and wait for it."""
        loop = self._background()
        if _running_loop() is loop:
            work.close()
            raise RuntimeError("app.sync was called from its own background thread; use await there")
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def refuse_to_deadlock(self) -> None:
        loop = _running_loop()
        if loop is not None and loop is self._app.node_loop:
            raise RuntimeError(
                "waiting for a result here would stop the very event loop that runs the worker; "
                "use `await handle.result()`"
            )

    def close(self) -> None:
        """Close the store and end the background thread. A started scheduler is shut down by its own loop instead."""
        if self._loop is not None and self._app.node_loop is None:
            self.call(self._app.close_store())
        self.end_thread()

    def end_thread(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _background(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="tickwork-sync", daemon=True).start()
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


def _blocking(sync: Sync, what: Any) -> Any:
    if asyncio.iscoroutinefunction(what):

        def call(*args: Any, **kwargs: Any) -> Any:
            found = sync.call(what(*args, **kwargs))
            return SyncHandle(sync, found) if isinstance(found, Handle) else found

        return call
    return what if callable(what) or isinstance(what, str) else _Part(sync, what)


def _running_loop() -> asyncio.AbstractEventLoop | None:
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
