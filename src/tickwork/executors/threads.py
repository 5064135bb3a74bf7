"""A pool of threads for handlers that are plain functions. A thread whose handler does not stop is abandoned."""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar, cast

T = TypeVar("T")

STOP_GRACE = 1.0  # seconds for work that can be asked to stop, before an exception is raised in its thread
END_STEP, END_STEPS = 0.002, 25  # seconds between two looks whether a thread has ended, and how often that is looked at
# Until Python 3.12 all threads share one flag of the interpreter: an exception is pending for some thread.
SHARED_FLAG = sys.version_info < (3, 13)


class ThreadStop(BaseException):
    """Raised in the thread of abandoned work. Not an Exception, so that `except Exception` in a handler does not catch
    it."""


_THREAD_STOP = ctypes.py_object(ThreadStop)
_set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc


@dataclass(slots=True, eq=False)
class _Work:
    fn: Callable[[], Any]
    context: Context
    done: asyncio.Future[None]
    thread: _Thread | None = None
    value: Any = None
    error: BaseException | None = None
    # These locks are never released. Either the thread or the canceller acquires `decided`, and so decides how the work
    # ends. Whichever acquires `ending` decides whether an exception is raised in the thread.
    decided: threading.Lock = field(default_factory=threading.Lock)
    ending: threading.Lock = field(default_factory=threading.Lock)
    interrupted: bool = False  # the canceller has raised its exception in the thread

    def end(self, error: BaseException | None) -> None:
        if not self.done.done():  # it may have been cancelled between its end and its delivery
            self.error = error
            self.done.set_result(None)


class _Thread(threading.Thread):
    def __init__(self, name: str, deliver: Callable[[_Work], None]) -> None:
        super().__init__(name=name, daemon=True)  # a stuck handler must not keep the interpreter from exiting
        self.inbox: SimpleQueue[_Work | None] = SimpleQueue()
        self.entered = False  # it is inside of `run`, where the exception may be raised
        self._deliver = deliver
        self.start()

    def run(self) -> None:
        # The exception may be raised at any line below, so the state of the pool never depends on what an abandoned
        # thread does: it only has to end. It is raised once at most, so that nothing happens after the last `except`.
        try:
            self.entered = True
            while (work := self.inbox.get()) is not None:
                if work.decided.locked():  # the work was cancelled before it began
                    return _await_interrupt(work)
                try:
                    work.value = work.context.run(work.fn)
                except BaseException as error:
                    work.error = error
                if not work.decided.acquire(blocking=False):
                    return _await_interrupt(work)
                self._deliver(work)
                del work  # or an idle thread would keep its last result in memory
        except (ThreadStop, RuntimeError):  # RuntimeError: the loop is closed, so nothing waits for the result
            return None


def _await_interrupt(work: _Work) -> None:
    """Wait for an exception that is about to be raised in this thread. It must not end before, or the exception could
    be raised in a new thread of the same id."""
    if work.ending.acquire(blocking=False):  # no exception will be raised any more
        return
    while not work.interrupted:
        time.sleep(0.001)
    for _ in range(3):  # a pending exception is raised here, unless the work has received it already
        time.sleep(0)


def _end_thread(work: _Work) -> None:
    """Raise ThreadStop in the thread of this work, at its next line of Python. It cannot be undone: clearing the
    exception would leave the interpreter's flag set, and no thread would reset it."""
    assert work.thread is not None
    if not work.thread.entered:  # the thread finds `decided` locked when it begins
        return
    if not work.ending.acquire(blocking=False):  # the work has ended
        return
    target = ctypes.c_ulong(work.thread.ident or 0)
    if SHARED_FLAG:
        try:
            threading.Thread(target=_interrupt_both, args=(target, work), name="tickwork-stop", daemon=True).start()
            return
        except RuntimeError:  # the system has no more threads to give
            pass
    _set_exception(target, _THREAD_STOP)
    work.interrupted = True


def _interrupt_both(target: ctypes.c_ulong, work: _Work) -> None:
    """Raise the exception in the target thread, then in this one.

    The shared flag stays set while the target is blocked in C. Every call in every thread is slower then, and on 3.11 a
    traced call (debugger, coverage) does not return. A thread that receives an exception resets the flag, so this
    helper thread receives one too; the blocked thread sets the flag again when it goes on. No Python function may be
    called between the two, since that call could be traced. It is not the main thread, where signal handlers would be
    interrupted too.
    """
    own = ctypes.c_ulong(threading.get_ident())
    try:
        _set_exception(target, _THREAD_STOP)
        work.interrupted = True
        _set_exception(own, _THREAD_STOP)
        while True:
            time.sleep(0)
    except ThreadStop:
        return


async def _ended(thread: _Thread) -> None:
    """Wait a moment for a thread that was asked to end: the caller may tell others that the work can be done again."""
    for _ in range(END_STEPS):
        if not thread.is_alive():
            return
        await asyncio.sleep(END_STEP)


class ThreadPool:
    """At most `limit` threads work at once; more work waits. The pool belongs to the event loop that first uses it."""

    def __init__(self, limit: int, name: str) -> None:
        self.limit, self.name = limit, name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads: set[_Thread] = set()
        self._idle: list[_Thread] = []
        self._abandoned: list[_Thread] = []
        self._waiting: deque[_Work] = deque()
        self._finished: deque[_Work] = deque()
        self._woken = self._closed = False

    @property
    def leaked(self) -> int:
        """How many abandoned threads still run; a thread that is not blocked in C ends within milliseconds."""
        # Read from other threads too, so it must change nothing.
        return sum(thread.is_alive() for thread in self._abandoned) if self._abandoned else 0

    async def run(
        self, fn: Callable[[], T], *, context: Context | None = None, stop: Callable[[], None] | None = None
    ) -> T:
        """Call `fn()` in a thread, in `context` or in a copy of the caller's. Cancelling this abandons the thread.
        `stop` is called from the event loop to ask work that waits in C to end by itself."""
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._closed or self._loop is not loop:
            why = "is closed" if self._closed else "belongs to another event loop"
            raise RuntimeError(f"thread pool {self.name!r} {why}")
        work = _Work(fn, copy_context() if context is None else context, loop.create_future())
        self._waiting.append(work)
        self._dispatch()
        try:
            await work.done
            if work.error is not None:
                raise work.error
            return cast("T", work.value)
        finally:
            if work.thread is not None and work.decided.acquire(blocking=False):  # this coroutine was cancelled
                self._threads.discard(work.thread)
                self._abandoned = [thread for thread in (*self._abandoned, work.thread) if thread.is_alive()]
                if stop is None:
                    _end_thread(work)
                else:
                    stop()
                    loop.call_later(STOP_GRACE, _end_thread, work)
                self._dispatch()
                await _ended(work.thread)
            del work  # the traceback of an error refers to this frame, which must not refer to the error

    def resize(self, limit: int) -> None:
        """Let at most `limit` threads work from now on. Those that are too many end when they are idle."""
        self.limit = limit
        self._end_idle()
        self._dispatch()

    def _end_idle(self) -> None:
        while self._idle and len(self._threads) > self.limit:
            thread = self._idle.pop()
            self._threads.discard(thread)
            thread.inbox.put(None)

    def close(self) -> None:
        """End idle threads now, and busy ones after their work, whose result is delivered. Work without a thread
        fails."""
        self._closed = True
        for thread in self._threads:
            thread.inbox.put(None)
        while self._waiting:
            self._waiting.popleft().end(RuntimeError(f"thread pool {self.name!r} was closed"))

    def _dispatch(self) -> None:
        while self._waiting and (self._idle or len(self._threads) < self.limit):
            work = self._waiting.popleft()
            if work.done.done():  # cancelled while it waited
                continue
            try:
                work.thread = self._idle.pop() if self._idle else _Thread(self.name, self._deliver)
            except RuntimeError as error:  # the system has no more threads to give
                work.end(error)
                continue
            self._threads.add(work.thread)
            work.thread.inbox.put(work)

    def _deliver(self, work: _Work) -> None:
        # A thread appends first and then reads `_woken`; the loop resets `_woken` first and then counts. So work that
        # sends no wake-up is always counted by one that is under way, without a lock. Two wake-ups are harmless.
        self._finished.append(work)
        if not self._woken and self._loop is not None:
            self._woken = True
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._woken = False
        for _ in range(len(self._finished)):
            work = self._finished.popleft()
            work.end(work.error)
            self._idle.append(cast("_Thread", work.thread))
        if len(self._threads) > self.limit:
            self._end_idle()
        self._dispatch()
