"""A forked process and its parent, and what they tell each other.

    parent -> child     one byte an order: STOP or HURRY; the end of the pipe means that the parent is gone
    child -> parent     a word a line: READY, OVER

Orders do not go by signals, since a Ctrl-C or a service manager signals parent and children alike, and nobody could
tell one signal that came twice from a second one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable

STOP, HURRY = b"1", b"2"  # finish what runs, then end; give it back and end
READY, OVER = "ready", "over"  # it works; it ends by itself, so another may take its place
PROCESS = "process-"  # and a number: the name of a forked process
HANG_UP: int | None = getattr(signal, "SIGHUP", None)  # Windows has none
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([HANG_UP] if HANG_UP is not None else []))


def stop_signals() -> tuple[int, ...]:
    """Those that ask this process to stop. What it was started to ignore stays so: SIGHUP with nohup, SIGINT in what a
    script starts with `&`, which a Ctrl-C for the script reaches too."""
    return tuple(each for each in STOP_SIGNALS if signal.getsignal(each) is not signal.SIG_IGN)


class Upward:
    """The child's side."""

    def __init__(self, number: int, orders: int, words: int) -> None:
        self.number = number
        self.parent = os.getppid()
        self._orders, self._words = orders, words
        self._level = 0

    def tell(self, word: str) -> None:
        with contextlib.suppress(OSError):  # the parent is gone, which the end of its orders says as well
            os.write(self._words, f"{word}\n".encode())

    def listen(self, call: Callable[[int], None]) -> None:
        """Call `call` on the running event loop with 1 when it is to stop, and with 2 when it is to hurry. Signals only
        ever mean the first."""
        loop = asyncio.get_running_loop()

        def rise(level: int) -> None:
            while self._level < level:
                self._level += 1
                call(self._level)

        def read() -> None:
            orders = os.read(self._orders, 64)
            if not orders:
                loop.remove_reader(self._orders)
            rise(2 if HURRY in orders else 1)

        loop.add_reader(self._orders, read)
        for number in stop_signals():
            loop.add_signal_handler(number, rise, 1)


class Forked:
    """The parent's side of one child."""

    def __init__(self, number: int, pid: int, orders: int, words: int) -> None:
        self.number, self.pid = number, pid
        self.began = time.monotonic()  # when it was forked, or ready
        self.ready = False
        self.fds = (orders, words)
        self.silent = False  # it has closed its end of the pipe
        self._unread = b""

    def order(self, order: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended
            os.write(self.fds[0], order)

    def words(self) -> list[str]:
        """What it has told since the last time."""
        try:
            found = b"" if self.silent else os.read(self.fds[1], 65536)
        except BlockingIOError:
            return []
        self.silent = not found
        self._unread += found
        *lines, self._unread = self._unread.split(b"\n")
        return [line.decode() for line in lines]

    def status(self) -> int | None:
        """Its exit status, negative if a signal has killed it; None while it runs. Not to be asked again after that."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        for number in self.fds:
            os.close(number)
        return os.waitstatus_to_exitcode(status)


class Signals:
    """Signals that a parent without an event loop waits for."""

    def __init__(self) -> None:
        self.stops = 0  # how many times it was asked to stop
        self._bell, self._button = os.pipe()
        for end in (self._bell, self._button):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._button, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # so that it rings the bell
        for number in stop_signals():
            signal.signal(number, self._count)

    def _count(self, number: int, _: object) -> None:
        if number != HANG_UP or not self.stops:  # a terminal that is closed sends it more than once
            self.stops += 1

    def wait(self, children: Iterable[Forked], timeout: float | None) -> None:
        """Until a signal, a word of a child, or the time."""
        select.select([self._bell, *(child.fds[1] for child in children if not child.silent)], [], [], timeout)
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell, 4096)

    def fork(self, number: int, others: Iterable[Forked]) -> Forked | Upward:
        """Fork. What belongs to the parent alone is closed in the child: a copy of the other end of a pipe would keep
        the end of the parent from being noticed."""
        theirs, orders = os.pipe()
        words, ours = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        held = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        pid = os.fork()
        if pid:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
            os.close(theirs)
            os.close(ours)
            os.set_blocking(words, False)
            return Forked(number, pid, orders, words)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in stop_signals():
            signal.signal(each, lambda *_: None)  # until its event loop listens; orders are not lost meanwhile
        for end in (orders, words, self._bell, self._button, *(fd for other in others for fd in other.fds)):
            os.close(end)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        return Upward(number, theirs, ours)
