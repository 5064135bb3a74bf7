"""The calls that wait for a thread. It sleeps until one comes, or until another process gives a sign."""

from __future__ import annotations

import os
import queue
import select
import time
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[T] = queue.SimpleQueue()
        self.get_nowait = self._queue.get_nowait  # raises queue.Empty
        self._bell = -1
        self._asleep = False
        self._deaf_until = 0.0

    def watch(self, signs: int) -> None:
        """From now on sleep until this descriptor can be read, too."""
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._calls, self._calls_and_signs = select.poll(), select.poll()
        for poller in (self._calls, self._calls_and_signs):
            poller.register(self._bell, select.POLLIN)
        self._calls_and_signs.register(signs, select.POLLIN)

    def close(self) -> None:
        """Also in the child of a fork, where this is its copy."""
        if self._bell >= 0:
            os.close(self._bell)
            self._bell = -1

    def put(self, call: T) -> None:
        self._queue.put(call)
        if self._asleep:
            self._asleep = False  # one ring is enough
            os.eventfd_write(self._bell, 1)

    def ignore_signs(self, seconds: float) -> None:
        self._deaf_until = time.monotonic() + seconds

    def get(self, timeout: float | None) -> T:
        """Raises `queue.Empty` when there was a sign, or nothing for that long."""
        if self._bell < 0:
            return self._queue.get(timeout=timeout)
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            rest = self._deaf_until - time.monotonic()
        if rest <= 0 or not self._sleep(self._calls, rest):
            self._sleep(self._calls_and_signs, timeout)
        return self._queue.get_nowait()

    def _sleep(self, poller: select.poll, seconds: float | None) -> bool:
        """Whether a call has come, as far as the bell can tell."""
        self._asleep = True
        try:
            if not self._queue.empty():  # it came before anybody could see that the bell is to be rung
                return True
            ready = [descriptor for descriptor, _ in poller.poll(None if seconds is None else seconds * 1000)]
        finally:
            self._asleep = False
        if self._bell not in ready:
            return False
        os.eventfd_read(self._bell)
        return True
