"""What the parts of the memory store share: a lock, a clock, a policy and hints."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from tickwork.clock import Clock, SystemClock
from tickwork.forks import hold_during_forks, tell_of_forks
from tickwork.model.policy import Policy
from tickwork.observe.loggers import Log
from tickwork.store.contact import Contact
from tickwork.store.hints import Hints
from tickwork.store.rules import pulse

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Part")


class Core:
    def __init__(self, policy: Policy | None = None, clock: Clock | None = None) -> None:
        self.policy = policy or Policy()
        self.hints = Hints()
        self.contact = Contact(Log.of(None, "store"))
        self.lock = threading.Lock()
        self.on_set_back: list[Callable[[int], None]] = []  # parts that move the ends of time which they keep
        self._clock = clock or SystemClock()
        self._clock.on_change(self.hints.notify_all)
        self._pulse_at = self.now()
        self.hold_until = 0  # until then no lease has run out
        hold_during_forks(self.lock)
        tell_of_forks(self)

    def after_fork(self) -> None:
        """The child goes on with its own copy of everything."""
        self.hints.forget()
        self.contact.reset()

    def now(self) -> int:
        return self._clock.now()

    def pulse(self, now: int) -> None:
        """Called with every sign of life, to notice a clock that was set back and a process that was stopped."""
        self._pulse_at, self.hold_until, back = pulse(self._pulse_at, self.hold_until, now, self.policy)
        if back:
            for set_back in self.on_set_back:
                set_back(back)


class Part:
    def __init__(self, core: Core) -> None:
        self._core = core


def atomic(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """A method that runs whole under the lock, offered as a coroutine that never yields."""

    @wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._core.lock:
            return method(self, *args, **kwargs)

    return call
