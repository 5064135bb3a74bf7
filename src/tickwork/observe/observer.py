"""Observers: listeners of a program's own, which can neither fail nor delay what they observe."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from tickwork.errors import ConfigError
from tickwork.observe.bus import Bus
from tickwork.observe.observations import TOPICS, Observation
from tickwork.texts import shown

WAITING_MAX = 10_000  # observations that wait for a listener, before further ones are dropped
GATHER = 0.005  # seconds between two deliveries: a thread that woke for each one would slow down the event loop
END_TIME = 1.0  # seconds that the end of a scheduler waits for a listener


class Observer:
    """A listener and the observations that wait for it. They are delivered one at a time and in order, by a thread of
    its own, so that a slow listener delays only itself. `dropped` counts what it was too slow for, `errors` the
    observations that it failed on; the first error of a listener is logged."""

    def __init__(self, bus: Bus, listener: Callable[[Any], None], kinds: tuple[type[Observation], ...]) -> None:
        self.dropped = 0
        self.errors = 0
        self._bus = bus
        self._listener = listener
        self._reset()
        self._subscriptions = [bus.subscribe(self._put, TOPICS[kind]) for kind in kinds]

    def close(self) -> None:
        """Hear no more. What was heard before is still delivered."""
        for subscription in self._subscriptions:
            subscription.cancel()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._delivering = threading.Lock()
        self._waiting: deque[object] = deque()
        self._wake = threading.Event()
        self._woken = False
        self._thread: threading.Thread | None = None
        self._ending: threading.Event | None = None  # set to end the thread

    def _put(self, what: object) -> None:
        """May be called from any thread."""
        if len(self._waiting) >= WAITING_MAX:
            with self._lock:
                self.dropped += 1
            return
        self._waiting.append(what)
        if not self._woken:  # two that wake it at the same time do no harm
            self._woken = True
            self._wake.set()
            if self._thread is None:
                self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._ending = ending = threading.Event()
                self._thread = threading.Thread(
                    target=self._deliver, args=(ending,), name="tickwork-observer", daemon=True
                )
                self._thread.start()

    def _deliver(self, ending: threading.Event) -> None:
        while True:
            self._wake.wait()
            if not ending.wait(GATHER):
                self._wake.clear()
                self._woken = False  # before looking, so that what is put after the last look wakes it again
            with self._delivering:  # not beside a thread that was ended while its listener was slow
                while self._waiting:
                    try:
                        self._listener(self._waiting.popleft())
                    except BaseException as error:  # nothing that a listener does may end this thread
                        self._report(error)
            if ending.is_set():
                return

    def _report(self, error: BaseException) -> None:
        self.errors += 1
        if self.errors == 1:
            self._bus.log.error("an observer failed; further errors of it are only counted", exc_info=error)

    def end(self) -> None:
        """Deliver what waits, for a second at most, and end the thread. The next observation starts another one."""
        thread, ending = self._thread, self._ending
        if thread is not None and ending is not None:
            ending.set()
            self._wake.set()
            thread.join(END_TIME)
            self._thread = None
            self._woken = False  # so that the next observation starts another thread

    def after_fork(self) -> None:
        """What waits in the parent is delivered there."""
        self._reset()


class Observers:
    """Those of one scheduler."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._all: list[Observer] = []

    def add(self, listener: Callable[[Any], None], kinds: tuple[type[Observation], ...]) -> Observer:
        """A listener to these kinds of observations, or to all kinds if none are named."""
        if not callable(listener) or inspect.iscoroutinefunction(listener):
            raise ConfigError(f"an observer is a plain function of one observation, not {shown(listener)}")
        for kind in kinds:
            if kind not in TOPICS:
                known = ", ".join(each.__name__ for each in TOPICS)
                raise ConfigError(f"{shown(kind)} cannot be observed; known are {known} of tickwork.observe")
        observer = Observer(self._bus, listener, kinds or tuple(TOPICS))
        self._all.append(observer)
        return observer

    async def end(self) -> None:
        """Deliver what still waits, for a second at most."""
        if self._all:
            await asyncio.gather(*(asyncio.to_thread(observer.end) for observer in self._all))

    def after_fork(self) -> None:
        for observer in self._all:
            observer.after_fork()
