"""Threads for handlers that are plain functions: grown on demand, reused while warm, given up when stuck."""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar, cast

T = TypeVar("T")


class ThreadStop(BaseException):
    """Raised inside abandoned work; not an Exception, so `except Exception` in a handler lets it through."""


@dataclass(slots=True, eq=False)
class _Work:
    fn: Callable[[], Any]
    context: Context
    done: asyncio.Future[None]
    thread: _Thread | None = None
    value: Any = None
    error: BaseException | None = None
    # Never released: whoever acquires it, the thread or the canceller, has decided how the work ends.
    settled: threading.Lock = field(default_factory=threading.Lock)
    struck: bool = False  # the canceller has injected its exception

    def end(self, error: BaseException | None) -> None:
        if not self.done.done():  # else it was cancelled between its end and its delivery
            self.error = error
            self.done.set_result(None)


class _Thread(threading.Thread):
    def __init__(self, name: str, deliver: Callable[[_Work], None]) -> None:
        super().__init__(name=name, daemon=True)  # a stuck handler must not hold the interpreter's exit
        self.inbox: SimpleQueue[_Work | None] = SimpleQueue()
        self._deliver = deliver
        self.start()

    def run(self) -> None:
        # A stop may strike at any line below, so the pool's books never depend on what an abandoned thread
        # does: it only has to end. It is struck once in its life, hence past the last `except` it is safe.
        try:
            while (work := self.inbox.get()) is not None:
                try:
                    work.value = work.context.run(work.fn)
                except BaseException as error:
                    work.error = error
                if not work.settled.acquire(blocking=False):
                    while not work.struck:  # were it to end first, the blow could hit a new thread of its id
                        time.sleep(0.001)
                    return self.strike(None)
                self._deliver(work)
                del work  # or an idle thread would keep its last result alive
        except (ThreadStop, RuntimeError):  # RuntimeError: the loop is closed, nobody waits for the outcome
            return None

    def strike(self, exception: type[BaseException] | None) -> None:
        """Raise it in this thread at its next line of Python; None takes back what has not struck yet."""
        target = None if exception is None else ctypes.py_object(exception)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident or 0), target)


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

    async def run(self, fn: Callable[[], T], *, context: Context | None = None) -> T:
        """`fn()` in a thread, in `context` or a copy of the caller's; cancelling this abandons the thread."""
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
                work.thread.strike(ThreadStop)
                work.struck = True
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
