"""A pool of child processes. Each call has a child to itself, so that it can be killed without harm to others."""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import os
import signal
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from msgspec import msgpack

from tickwork.errors import ExecutorError
from tickwork.executors.child import PARENT_SIGNALS, Done, Failed, Note, main
from tickwork.executors.child import Call as Call
from tickwork.executors.threads import ThreadPool

START_TIMEOUT = 60.0  # seconds; a main module that hangs at import must not keep its slot for ever
GRACE = 2.0  # seconds for a child that was asked to end, and its exit functions, before it is killed
REAP_TIMEOUT = 5.0  # seconds for a killed child to end
DIRECT = 32 * 1024  # bytes that always fit the empty pipe of an idle child, so that sending cannot block
TRIES = 3  # to send a call, if the child has died before it read it
BACKLOG = 1000  # messages of a child that the loop has not handled yet, before the child has to wait


class ChildError(ExecutorError):
    """The call raised an exception in the child, which goes on. `verdict` is that of `invoke`, if it has one."""

    def __init__(self, type_name: str, text: str, traceback: str, verdict: bytes | None) -> None:
        super().__init__(f"{type_name}: {text}", report=traceback)
        self.add_note(traceback)  # shown with this exception, for instance in a log
        self.type_name, self.text, self.traceback, self.verdict = type_name, text, traceback, verdict


class ChildDied(ExecutorError):
    """The child ended in the middle of the call."""

    def __init__(self, exitcode: int | None, signal_name: str | None) -> None:
        how = f"ended without a result (exit status {'unknown' if exitcode is None else exitcode})"
        if exitcode:
            how = f"was killed by {signal_name}" if signal_name else f"called exit with status {exitcode}"
        super().__init__(f"the process {how}")
        self.exitcode, self.signal_name = exitcode, signal_name


class StartFailed(Exception):
    """No child could be started; nothing of the call was run."""


class _Child:
    """One process, and the thread that starts it, reads from it and reaps it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pipe: Connection[Any, Any]
        self.process: SpawnProcess | None = None
        self.started: asyncio.Future[StartFailed | None] = loop.create_future()
        self.start_error = ""
        self.result: asyncio.Future[bytes | ChildError | ChildDied] | None = None
        self.on_note: Callable[[bytes], None] | None = None
        self.doomed = self.gone = self.unread = self.reaped = False
        self.posted = self.handled = self.calls = 0
        self.timer = loop.call_later(START_TIMEOUT, self.kill, f"it was not ready in {START_TIMEOUT:g} s")
        self.owner = os.getpid()
        _everyone.add(self)

    def kill(self, why: str = "") -> None:
        self.start_error = self.start_error or why
        # Set before `process` is read; `_start` does it in the other order, so that neither misses the other.
        self.doomed = True
        if self.process is not None and self.owner == os.getpid():
            self._kill(self.process)

    def _kill(self, process: SpawnProcess) -> None:
        """Kill the child and the processes that its handler has started. The pid of a dead child stays its own until it
        is reaped."""
        if not self.reaped and process.pid is not None and hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):  # it has no group yet, or is dead
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()

    def keep(self, name: str, invoke: str, post: Callable[[_Child, Note | Done | Failed | ChildDied], Any]) -> None:
        decoder = msgpack.Decoder(Note | Done | Failed)
        try:
            self._start(name, invoke)
            while True:
                message = decoder.decode(self.pipe.recv_bytes())
                self.posted += 1
                post(self, message)
                while self.posted - self.handled > BACKLOG and not self.doomed:
                    time.sleep(0.001)
        except (EOFError, ConnectionError) as end:
            if sys.platform == "linux" and isinstance(end, ConnectionResetError):
                self.unread = True  # a socket ends like this if the other side has not read all: the call was not read
        except Exception as error:  # the child could not be started, or the loop is closed
            self.kill(f"{type(error).__name__}: {error}")
        # The pipe stays open: another thread may be writing to it, and a new file could get the same descriptor.
        with suppress(RuntimeError):
            post(self, self._reap())

    def _start(self, name: str, invoke: str) -> None:
        if hasattr(signal, "pthread_sigmask"):
            resource_tracker.ensure_running()  # now, since starting it later would unblock the signals again
            signal.pthread_sigmask(signal.SIG_BLOCK, PARENT_SIGNALS)  # the child inherits the signal mask
        spawn = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawn.Pipe()
        with theirs:
            process = spawn.Process(target=main, args=(theirs, invoke), name=name)
            process.start()
        self.process = process
        if self.doomed:
            self._kill(process)

    def _reap(self) -> ChildDied:
        code = None
        for patience in (GRACE, REAP_TIMEOUT):
            deadline = time.monotonic() + patience
            while self.process is not None and code is None and time.monotonic() < deadline:
                time.sleep(0.0005)  # polling, since `join(timeout)` also waits for processes that the child has forked
                code = self.process.exitcode
            self.reaped = code is not None
            if code is None:
                self.kill()
            elif self.process is not None:
                self.process.join()  # so that multiprocessing removes it from its list
        if code is None or code >= 0:
            return ChildDied(code, None)
        names = {known.value: known.name for known in signal.Signals}  # real-time signals have no name
        return ChildDied(code, names.get(-code, f"signal {-code}"))


_everyone: weakref.WeakSet[_Child] = weakref.WeakSet()


@atexit.register  # runs before the exit function of multiprocessing, which would wait for children that were not closed
def _kill_everyone() -> None:
    for child in list(_everyone):
        child.kill()


class _Slots:
    """A semaphore whose size can change. Who holds a slot keeps it, also when there are too many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def resize(self, limit: int) -> None:
        self._limit = limit
        self._wake()

    async def __aenter__(self) -> None:
        if self._taken < self._limit and not self._waiting:
            self._taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif not turn.cancelled():  # it was given a slot in the same moment
                self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        self._taken -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._taken < self._limit:
            turn = self._waiting.popleft()
            if not turn.done():  # or it was cancelled, and is about to leave
                self._taken += 1
                turn.set_result(None)


class ProcessPool:
    """At most `limit` children work at once; further calls wait. The pool belongs to the event loop that first uses
    it."""

    leaked = 0  # a process can always be killed

    def __init__(self, limit: int, name: str, invoke: str, *, max_calls: int = 0) -> None:
        self.limit, self.name, self.invoke, self.max_calls = limit, name, invoke, max_calls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = _Slots(limit)
        self._senders = ThreadPool(limit, f"{name}-send")
        self._alive: set[_Child] = set()
        self._idle: list[_Child] = []  # may include children that are still starting
        self._spawned = 0
        self._closed = False

    async def run(self, call: Call, *, on_note: Callable[[bytes], None]) -> bytes:
        """Run a call in a child and return what `invoke` returned. Raises ChildError, ChildDied or StartFailed.
        Cancelling this kills the child."""
        data = msgpack.encode(call)
        async with self._slots:
            for left in reversed(range(TRIES)):
                child = await self._take()
                child.on_note, child.result = on_note, child.started.get_loop().create_future()
                try:
                    await self._send(child, data)
                    outcome = await child.result
                finally:
                    self._put_back(child, child.result)
                # The child may have died while it was idle, which is not the fault of this call. A large call is not
                # sent again, since its size may have killed the child.
                if not (child.unread and left and len(data) <= DIRECT):
                    break
        if isinstance(outcome, bytes):
            return outcome
        raise outcome

    def resize(self, limit: int) -> None:
        """Let at most `limit` children work from now on. Those that are too many end when they are idle."""
        self.limit = limit
        self._slots.resize(limit)
        self._senders.resize(limit)
        for child in [child for child in self._idle if child.started.done()]:
            if not self._has_too_many:
                break
            self._idle.remove(child)
            self._retire(child)

    @property
    def _has_too_many(self) -> bool:
        return sum(not child.doomed for child in self._alive) > self.limit

    async def warm(self, n: int) -> None:
        """Have `n` children (or `limit`, if that is less) started and ready; StartFailed if one cannot be."""
        loop = self._bind()
        missing = min(n, self.limit) - sum(not child.doomed for child in self._alive)
        fresh = [self._spawn(loop) for _ in range(missing)]
        self._idle[:0] = fresh
        for child in fresh:
            await asyncio.wait([child.started])
            if error := child.started.result():
                raise error

    async def close(self) -> None:
        """End idle children, kill busy ones, and reap all, within GRACE + REAP_TIMEOUT at most."""
        self._closed = True
        for child in list(self._alive):
            if child in self._idle and child.started.done():
                self._retire(child)
            elif not child.doomed:
                child.kill("the pool was closed")
        self._idle.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE + REAP_TIMEOUT):
                while self._alive:
                    await asyncio.sleep(0.002)
        self._senders.close()

    async def _take(self) -> _Child:
        loop = self._bind()
        child = self._idle.pop() if self._idle else self._spawn(loop)
        try:
            if not child.started.done():
                await asyncio.wait([child.started])
        except asyncio.CancelledError:
            if not child.gone:  # kept, or calls with a timeout shorter than a start would never get a child
                self._idle.append(child)
            raise
        if error := child.started.result():
            raise error
        return child

    async def _send(self, child: _Child, data: bytes) -> None:
        try:
            if len(data) <= DIRECT:
                child.pipe.send_bytes(data)
            else:
                await self._senders.run(partial(child.pipe.send_bytes, data))
        except OSError:
            child.unread = True  # the child is dead; the result says how it ended

    def _put_back(self, child: _Child, result: asyncio.Future[bytes | ChildError | ChildDied]) -> None:
        child.on_note = child.result = None
        if not result.done() or result.cancelled():
            child.kill()
        elif child.gone:
            pass
        elif (self.max_calls and child.calls >= self.max_calls) or self._has_too_many:
            self._retire(child)
        else:
            self._idle.append(child)

    def _retire(self, child: _Child) -> None:
        child.doomed = True
        child.timer = child.started.get_loop().call_later(GRACE, child.kill)
        with suppress(OSError):
            child.pipe.send_bytes(b"")

    def _spawn(self, loop: asyncio.AbstractEventLoop) -> _Child:
        def post(child: _Child, message: Note | Done | Failed | ChildDied) -> None:
            loop.call_soon_threadsafe(self._receive, child, message)

        self._spawned += 1
        child, name = _Child(loop), f"{self.name}-{self._spawned}"
        threading.Thread(target=child.keep, args=(name, self.invoke, post), name=name, daemon=True).start()
        self._alive.add(child)
        return child

    def _bind(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._closed or self._loop is not loop:
            why = "is closed" if self._closed else "belongs to another event loop"
            raise RuntimeError(f"process pool {self.name!r} {why}")
        return loop

    def _receive(self, child: _Child, message: Note | Done | Failed | ChildDied) -> None:
        child.handled += 1
        match message:
            case Note() if child.on_note is not None:
                child.on_note(message.body)  # an exception goes to the event loop's exception handler
            case ChildDied():
                self._remove(child, message)
            case Done() if not child.started.done():
                child.timer.cancel()
                child.started.set_result(None)
            case Failed() if not child.started.done():
                child.start_error = message.text
            case Done():
                self._set_result(child, message.body)
            case Failed(kind, text, traceback, verdict):
                self._set_result(child, ChildError(kind, text, traceback, verdict))

    def _set_result(self, child: _Child, outcome: bytes | ChildError | ChildDied) -> None:
        child.calls += 1
        if child.result is not None and not child.result.done():
            child.result.set_result(outcome)

    def _remove(self, child: _Child, died: ChildDied) -> None:
        child.gone = True
        child.timer.cancel()
        self._alive.discard(child)
        if child in self._idle:
            self._idle.remove(child)
        if child.started.done():
            self._set_result(child, died)
        else:
            why = child.start_error or f"{died} while it started, its error output says why"
            child.started.set_result(StartFailed(f"no process for pool {self.name!r}: {why}"))
