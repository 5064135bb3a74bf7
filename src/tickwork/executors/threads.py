"""Threads for handlers that are plain functions: grown on demand, reused while warm, given up when stuck."""

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

STOP_GRACE = 1.0  # for work that can be asked to stop, before its thread is struck
# Until 3.12 all threads of the interpreter share one flag that says: an exception is pending for some thread.
SHARED_FLAG = sys.version_info < (3, 13)


class ThreadStop(BaseException):
    """Raised inside abandoned work; not an Exception, so `except Exception` in a handler lets it through."""


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
    # Neither is ever released. Whoever acquires the first, the thread or the canceller, has decided how the work ends;
    # whoever acquires the second has decided whether its thread is struck.
    settled: threading.Lock = field(default_factory=threading.Lock)
    ending: threading.Lock = field(default_factory=threading.Lock)
    struck: bool = False  # the canceller has injected its exception

    def end(self, error: BaseException | None) -> None:
        if not self.done.done():  # else it was cancelled between its end and its delivery
            self.error = error
            self.done.set_result(None)


class _Thread(threading.Thread):
    def __init__(self, name: str, deliver: Callable[[_Work], None]) -> None:
        super().__init__(name=name, daemon=True)  # a stuck handler must not hold the interpreter's exit
        self.inbox: SimpleQueue[_Work | None] = SimpleQueue()
        self.entered = False  # the code in which it may be struck
        self._deliver = deliver
        self.start()

    def run(self) -> None:
        # A stop may strike at any line below, so the pool's books never depend on what an abandoned thread
        # does: it only has to end. It is struck once in its life, hence past the last `except` it is safe.
        try:
            self.entered = True
            while (work := self.inbox.get()) is not None:
                if work.settled.locked():  # it was cancelled before it began
                    return _await_blow(work)
                try:
                    work.value = work.context.run(work.fn)
                except BaseException as error:
                    work.error = error
                if not work.settled.acquire(blocking=False):
                    return _await_blow(work)
                self._deliver(work)
                del work  # or an idle thread would keep its last result alive
        except (ThreadStop, RuntimeError):  # RuntimeError: the loop is closed, nobody waits for the outcome
            return None


def _await_blow(work: _Work) -> None:
    """Its thread must not end with an exception still on its way, which could hit a new thread of the same id."""
    if work.ending.acquire(blocking=False):  # nobody strikes any more
        return
    while not work.struck:
        time.sleep(0.001)
    for _ in range(3):  # a pending exception is raised by the first of these; none comes if the work met it already
        time.sleep(0)


def _end_thread(work: _Work) -> None:
    """Raise ThreadStop in its thread at the next line of Python. That cannot be taken back: an exception of NULL would
    leave the interpreter's flag up, with nobody to lower it."""
    assert work.thread is not None
    if not work.thread.entered:  # it will see for itself
        return
    if not work.ending.acquire(blocking=False):  # it has ended
        return
    target = ctypes.c_ulong(work.thread.ident or 0)
    if SHARED_FLAG:
        try:
            threading.Thread(target=_strike_both, args=(target, work), name="tickwork-stop", daemon=True).start()
            return
        except RuntimeError:  # the system has no more threads to give
            pass
    _set_exception(target, _THREAD_STOP)
    work.struck = True


def _strike_both(target: ctypes.c_ulong, work: _Work) -> None:
    """Strike that thread, then this one. The shared flag stays up while the other is blocked in C: every call in every
    thread costs more then, and on 3.11 a traced call (debugger, coverage) does not return. Whoever meets an exception
    lowers the flag, and the blocked thread raises it again when it goes on. No function of Python may be called between
    the two blows, as that call could be a traced one; and this is not the main thread, whose signal handlers would be
    struck too."""
    own = ctypes.c_ulong(threading.get_ident())
    try:
        _set_exception(target, _THREAD_STOP)
        work.struck = True
        _set_exception(own, _THREAD_STOP)
        while True:
            time.sleep(0)
    except ThreadStop:
        return


class ThreadPool:
    """At most `limit` threads work at once, more work waits. It belongs to the loop it first runs on."""

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
        """How many abandoned threads run right now; one that obeys its stop is gone within milliseconds."""
        return sum(thread.is_alive() for thread in self._abandoned)  # asked from other threads too: changes nothing

    async def run(
        self, fn: Callable[[], T], *, context: Context | None = None, stop: Callable[[], None] | None = None
    ) -> T:
        """`fn()` in a thread, in `context` or a copy of the caller's; cancelling this abandons the thread. `stop` asks
        work that waits in C to end by itself, and is called from the loop."""
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
            if work.thread is not None and work.settled.acquire(blocking=False):  # the wait was cut short
                self._threads.discard(work.thread)
                self._abandoned = [thread for thread in (*self._abandoned, work.thread) if thread.is_alive()]
                if stop is None:
                    _end_thread(work)
                else:
                    stop()
                    loop.call_later(STOP_GRACE, _end_thread, work)
                self._dispatch()
            del work  # an error's traceback holds this frame, and the frame would hold the error

    def close(self) -> None:
        """Idle threads end now, busy ones after their work, which is delivered; what has no thread fails."""
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
        # In a thread: append, then look; in the loop: reset, then count. So work that wakes nobody is always
        # counted by a wake-up on its way, and no lock is needed. Two wake-ups instead of one are harmless.
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
        self._dispatch()
