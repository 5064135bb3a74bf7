"""`app.sync`: the same calls for programs without an event loop (Flask, Django, scripts, threads)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Generator, Iterable
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from tickwork.client.client import Client
from tickwork.client.functions import TaskFunction, type_of
from tickwork.client.handle import Handle
from tickwork.client.lock import Lock
from tickwork.client.submitting import blocking_tasks, handle_of, submit_spec
from tickwork.client.sync_parts import (
    SyncBreakers,
    SyncDeadLetters,
    SyncEvents,
    SyncLimits,
    SyncQueues,
    SyncSchedules,
    SyncSwitches,
    SyncTasks,
    blocking,
    iterate,
)
from tickwork.errors import TickworkError
from tickwork.forks import keep, tell_of_forks
from tickwork.handlers.options import CallOptions, Options, wanted_durability
from tickwork.handlers.periodic import Runnable
from tickwork.model.health import Health
from tickwork.model.info import SchedulerStatus, Task, TaskInfo, TaskUpdate
from tickwork.payload.parameters import MISSING

if TYPE_CHECKING:
    from tickwork.client.task_types import Returned
    from tickwork.scheduler import Scheduler

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

END_WAIT = 2.0  # for the background thread, which may be inside of a blocking call


class SyncHandle(Generic[R_co]):
    """A submitted task, for blocking code. `R` is what its handler returns."""

    def __init__(self, sync: Sync, handle: Handle[R_co]) -> None:
        self._sync = sync
        self._handle = handle
        self.id = handle.id
        self.created = handle.created

    def result(self, timeout: float | timedelta | None = None) -> R_co:
        self._sync.refuse_to_deadlock()
        return self._sync.run(self._handle.result(timeout))

    def info(self) -> TaskInfo:
        return self._sync.run(self._handle.info())

    def follow(self) -> Generator[TaskUpdate, None, None]:
        """How it moves on, from now until it has ended: `for update in handle.follow(): ...`. Each step waits."""
        self._sync.refuse_to_deadlock("updates", "async for update in handle.follow()")
        return iterate(self._sync, self._handle.follow())

    def cancel(self, force: bool = False) -> None:
        self._sync.run(self._handle.cancel(force))

    def reschedule(self, *, at: datetime | None = None, delay: float | timedelta | None = None) -> None:
        self._sync.run(self._handle.reschedule(at=at, delay=delay))

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
            return self._sync.run(self._lock.acquire(timeout))
        except Exception:
            raise
        except BaseException:  # this thread is to stop: what it may have got meanwhile, nobody else would give back
            self._sync.run(self._lock.release())
            raise

    def release(self) -> bool:
        return self._sync.run(self._lock.release())

    def __enter__(self) -> SyncLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sync.run(self._lock.__aexit__(kind, error, trace))

    def __repr__(self) -> str:
        return f"<SyncLock {self.name}{' held' if self.held else ''}>"


class Sync:
    """Runs the scheduler's coroutines on a background thread with a loop of its own. Safe from several threads.

    Every coroutine method of the scheduler, and of its parts such as `dlq`, `schedules` and `queues`, is there under
    its name and with its arguments; `events.subscribe()` is an iterator that blocks. What does not wait is called on
    the scheduler itself.
    """

    def __init__(self, app: Scheduler) -> None:
        self._sync = self
        self._origin = self._app = app
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread
        self.tasks = SyncTasks(self, app.tasks)
        self.dlq = SyncDeadLetters(self, app.dlq)
        self.schedules = SyncSchedules(self, app.schedules)
        self.queues = SyncQueues(self, app.queues)
        self.limits = SyncLimits(self, app.limits)
        self.breakers = SyncBreakers(self, app.breakers)
        self.switches = SyncSwitches(self, app.switches)
        self.events = SyncEvents(self, app.events)
        tell_of_forks(self)

    def after_fork(self) -> None:
        keep(self._loop)
        self._lock = threading.Lock()
        self._loop = None

    # --- submitting

    def submit(
        self, type: str | TaskFunction[..., Returned], payload: Any = MISSING, **options: Unpack[Options]
    ) -> SyncHandle[Returned]:
        kind, options = type_of(type, options)
        return self.submit_one(kind, payload, options)

    def submit_one(self, type: str, payload: Any, options: Options) -> SyncHandle[Any]:
        """In this thread, over a connection of the store for threads without an event loop. If it has none, or that
        does not work now, then on the background thread."""
        app, tasks = self._app, blocking_tasks(self._app)
        if tasks is None or options.get("cron") is not None:
            return self.handle_of(self.run(app.submit(type, payload, **options)))
        self._refuse_background()
        durability = wanted_durability(options)
        spec = app._access.spec(type, payload, options)
        app._access.check_that_tasks_can_run()
        limit = app._access.blocking_limit
        began = None if limit is None else time.monotonic()
        receipt = tasks.submit_blocking(spec, durability, limit) if spec.target is None else None
        if receipt is None:
            receipt = self.run(submit_spec(app, spec, durability, began))
        return self.handle_of(handle_of(app, receipt, spec, options))

    def call(
        self,
        type: str | TaskFunction[..., Returned],
        payload: Any = MISSING,
        *,
        timeout: float | timedelta | None = None,
        **options: Unpack[CallOptions],
    ) -> Returned:
        self.refuse_to_deadlock(instead="await app.call()")
        return self.run(self._app.call(type, payload, timeout=timeout, **options))

    def submit_many(
        self, type: str | TaskFunction[..., Returned], payloads: Iterable[Any], **options: Unpack[Options]
    ) -> list[SyncHandle[Returned]]:
        return [self.handle_of(each) for each in self.run(self._app.submit_many(type, payloads, **options))]

    def submit_task(self, task: Task) -> SyncHandle[Any]:
        return self.handle_of(self.run(self._app.submit_task(task)))

    def submit_tasks(self, tasks: Iterable[Task]) -> list[SyncHandle[Any] | TickworkError]:
        answers = self.run(self._app.submit_tasks(tasks))
        return [self.handle_of(each) if isinstance(each, Handle) else each for each in answers]

    def schedule(self, job: Runnable, run_at: datetime) -> SyncHandle[Any]:
        return self.handle_of(self.run(self._app.schedule(job, run_at)))

    def schedule_after(self, job: Runnable, delay: float | timedelta) -> SyncHandle[Any]:
        return self.handle_of(self.run(self._app.schedule_after(job, delay)))

    def handle(self, task_id: str) -> SyncHandle[Any]:
        """A handle on a task that was submitted elsewhere, or before."""
        return self.handle_of(self._app.handle(task_id))

    def handle_of(self, handle: Handle[R]) -> SyncHandle[R]:
        return SyncHandle(self, handle)

    # --- asking and steering

    get_task = blocking(Client.get_task)
    list_tasks = blocking(Client.list_tasks)
    dependants = blocking(Client.dependants)
    index_tasks = blocking(Client.index_tasks)
    explain = blocking(Client.explain)
    queue_stats = blocking(Client.queue_stats)
    report = blocking(Client.report)
    failures = blocking(Client.failures)
    alerts = blocking(Client.alerts)
    silence_alert = blocking(Client.silence_alert)
    unsilence_alert = blocking(Client.unsilence_alert)
    audit = blocking(Client.audit)
    cancel = blocking(Client.cancel)
    retry = blocking(Client.retry)
    run_now = blocking(Client.run_now)
    reschedule = blocking(Client.reschedule)
    delete = blocking(Client.delete)
    update_task_status = blocking(Client.update_task_status)
    register_worker = blocking(Client.register_worker)
    unregister_worker = blocking(Client.unregister_worker)
    list_workers = blocking(Client.list_workers)
    get_worker = blocking(Client.get_worker)
    drain_worker = blocking(Client.drain_worker)
    resume_worker = blocking(Client.resume_worker)
    set_worker = blocking(Client.set_worker)
    reset_worker = blocking(Client.reset_worker)

    def lock(self, name: str, ttl: float | timedelta | None = None) -> SyncLock:
        return SyncLock(self, self._app.lock(name, ttl))

    # --- life

    def status(self) -> SchedulerStatus:
        return self.run(self._app.status())

    def health(self) -> Health:
        return self.run(self._app.health())

    def start(self, *, work: bool = True, lead: bool = True) -> None:
        self.run(self._app.start(work=work, lead=lead))

    def shutdown(self, timeout: float | timedelta | None = None) -> None:
        self.run(self._app.shutdown(timeout))

    stop = shutdown

    def wait_stopped(self) -> None:
        self.run(self._app.wait_stopped())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run any coroutine on the background loop and wait for it."""
        loop = self._background()
        try:
            self._refuse_background()
        except RuntimeError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # if the wait was cut short, nobody wants it any more
            raise

    def _refuse_background(self) -> None:
        if self._loop is not None and running_loop() is self._loop:
            raise RuntimeError("app.sync was called from its own background thread; use await there")

    def refuse_to_deadlock(self, what: str = "a result", instead: str = "await handle.result()") -> None:
        loop = running_loop()
        if loop is not None and loop is self._app._node_loop:
            raise RuntimeError(
                f"waiting for {what} here would stop the very event loop that runs the worker; use `{instead}`"
            )

    def close(self) -> None:
        """Close the store and end the background thread. A started scheduler is shut down by its own loop instead."""
        if self._loop is not None and self._app._node_loop is None:
            self.run(self._app._close_store())
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
