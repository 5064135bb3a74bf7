"""Wake-ups. A hint says "look again"; losing one costs latency, never a task."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from types import TracebackType

# Task ids are topics too (raised when the task ends); a star cannot occur in an id.
WORK = "*work"
ASSIGN = "*assign"  # for whoever assigns tasks to workers: raised with WORK and OUTBOX, and by workers with free slots
CONTROL = "*control"
EVENTS = "*events"
OUTBOX = "*outbox"
SCHEDULES = "*schedules"
RESET = "*reset"  # the store has lost all it held

TOLERANCE = 0.001  # seconds by which a wait may end early: clocks of event loops are no finer


class Hint:
    """A flag that any thread may raise and one coroutine waits for. Raised while nobody waits, it is kept."""

    __slots__ = (
        "_hints", "_loop", "_raised", "_thread", "_timer", "_timer_at", "_topic", "_until", "_waiter", "announced",
        "idle", "news",
    )  # fmt: skip

    def __init__(self, hints: Hints, topic: str) -> None:
        self._hints = hints
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._raised = False
        self._waiter: asyncio.Future[None] | None = None
        self._until = 0.0  # the end of the wait
        self._timer: asyncio.TimerHandle | None = None  # kept over waits, since most are over long before their end
        self._timer_at = 0.0
        self.idle = False  # waits, and would take what comes
        self.announced = False  # whoever raises it has been told that somebody waits
        self.news = b""  # what came with it

    def set(self) -> None:
        if self._raised:
            return
        self._raised = True
        if self._thread == threading.get_ident():
            self._wake()
        elif not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop was closed in between: nobody waits any more
                return

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self, timeout: float, idle: bool = True) -> bool:
        """True when it was raised, False when time ran out. Lowers the flag. One who is not `idle` could do nothing
        with a wake-up that is meant for one of many."""
        if not self._raised and timeout > 0:
            self._waiter = self._loop.create_future()
            self._until = self._loop.time() + timeout
            if self._timer is None or self._timer_at > self._until:
                self._set_timer()
            self.idle = idle
            try:
                if idle and self._hints.on_idle is not None:
                    self._hints.on_idle(self._topic)
                if not self._raised:  # may have been raised by another thread before `_waiter` was there
                    await self._waiter
            finally:
                self._waiter = None
                self.idle = False
        if not self._raised:
            return False
        self._raised = False  # only what was seen is lowered: another thread may raise it at any moment
        return True

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._until
        self._timer = self._loop.call_at(self._timer_at, self._on_timer)

    def _on_timer(self) -> None:
        """A timer that was set for an earlier wait may be too early for this one."""
        self._timer = None
        if self._waiter is not None and self._until - self._loop.time() > TOLERANCE:
            self._set_timer()
        else:
            self._wake()

    def __enter__(self) -> Hint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._hints.remove(self._topic, self)


class Hints:
    """All who wait on one store object, by topic."""

    def __init__(self) -> None:
        self.on_idle: Callable[[str], None] | None = None  # called when somebody begins to wait on a topic
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[Hint, ...]] = {}

    def add(self, topic: str) -> Hint:
        hint = Hint(self, topic)
        with self._lock:
            self._waiting[topic] = (*self._waiting.get(topic, ()), hint)
        return hint

    def remove(self, topic: str, hint: Hint) -> None:
        with self._lock:
            found = self._waiting.get(topic, ())
            if len(found) > 1 and hint in found:
                self._waiting[topic] = tuple(other for other in found if other is not hint)
            elif hint in found:
                del self._waiting[topic]

    def notify(self, topic: str, news: bytes = b"") -> bool:
        """Whether anybody waits for it."""
        waiting = self._waiting.get(topic, ())
        for hint in waiting:
            hint.news = news
            hint.set()
        if topic in (WORK, OUTBOX) and ASSIGN in self._waiting:
            self.notify(ASSIGN)
        return bool(waiting)

    def notify_ended(self, ids: Iterable[str]) -> None:
        for task_id in ids:
            if task_id in self._waiting:
                self.notify(task_id)

    def idles(self, topic: str) -> bool:
        return any(hint.idle for hint in self._waiting.get(topic, ()))

    def notify_tasks(self) -> bool:
        """Some task has ended, in another process: who waits for one looks again. Whether there is anybody."""
        waiting = [topic for topic in list(self._waiting) if not topic.startswith("*")]
        for topic in waiting:
            self.notify(topic)
        return bool(waiting)

    def notify_all(self) -> None:
        for topic in list(self._waiting):
            self.notify(topic)

    def forget(self) -> None:
        """After a fork: those who wait are in the parent."""
        self._lock = threading.Lock()
        self._waiting = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)
