"""The facts that the log holds. A store appends them inside the transition they tell of."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from tickwork.observe.loggers import Log


class Fact(StrEnum):
    """What happened, in the past tense. The part before the dot says what `Event.id` names."""

    TASK_SUBMITTED = "task.submitted"
    TASK_RESOLVED = "task.resolved"  # a dependency ended; detail says which
    TASK_DUE = "task.due"
    TASK_HASTENED = "task.hastened"  # run now, by hand
    TASK_PARKED = "task.parked"  # passed over: no claimer may start its type
    TASK_CLAIMED = "task.claimed"
    TASK_SUCCEEDED = "task.succeeded"
    TASK_RETRYING = "task.retrying"
    TASK_FAILED = "task.failed"
    TASK_DIED = "task.died"  # into the dead-letter queue
    TASK_SNOOZED = "task.snoozed"
    TASK_RELEASED = "task.released"
    TASK_LOST = "task.lost"  # its worker vanished; it is ready again
    TASK_CANCEL_ASKED = "task.cancel_asked"
    TASK_CANCELLED = "task.cancelled"
    TASK_RETRIED = "task.retried"  # by hand, from an end
    TASK_DELETED = "task.deleted"
    TASK_DROPPED = "task.dropped"  # the dead-letter queue was full
    WORKER_JOINED = "worker.joined"
    WORKER_LEFT = "worker.left"
    WORKER_LOST = "worker.lost"
    LEADER_ELECTED = "leader.elected"
    LEADER_RESIGNED = "leader.resigned"
    SCHEDULE_PUT = "schedule.put"
    SCHEDULE_FIRED = "schedule.fired"
    SCHEDULE_SKIPPED = "schedule.skipped"  # the last run had not ended
    SCHEDULE_MISSED = "schedule.missed"
    SCHEDULE_STOPPED = "schedule.stopped"  # by itself: its retries were spent
    SCHEDULE_DROPPED = "schedule.dropped"
    QUEUE_PAUSED = "queue.paused"
    QUEUE_RESUMED = "queue.resumed"
    TYPE_PAUSED = "type.paused"
    TYPE_RESUMED = "type.resumed"
    LOG_MISSED = "log.missed"  # told to a slow subscriber: `detail` says how many it missed
    LOG_UNREADABLE = "log.unreadable"  # told to readers: there are facts here that this version cannot read


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """One fact. `id` is the task's, or that of the worker, leader, schedule, queue or type it is about."""

    seq: int
    at: int
    kind: str
    id: str
    type: str = ""
    queue: str = ""
    worker_id: str = ""
    attempt: int = 0
    duration: float = 0.0
    detail: str = ""


class News(NamedTuple):
    """A fact of this process as it happens, with what the log has no place for."""

    event: Event
    error: BaseException | None = None  # what the handler raised
    retry_in: float | None = None  # seconds until the next attempt


Listener = Callable[[News], None]


def _always(fact: Fact) -> bool:
    return True


class Bus:
    """The facts of this process as they happen, for logs and metrics. Nobody listening costs one look-up. A listener
    that raises harms neither who publishes nor the other listeners."""

    def __init__(self, log: Log | None = None) -> None:
        self._log = log or Log.of(None, "events")
        self._listeners: dict[str, tuple[tuple[Listener, Callable[[Fact], bool]], ...]] = {}
        self._broken: set[Listener] = set()

    def subscribe(
        self, listener: Listener, facts: Collection[Fact] = tuple(Fact), wanted: Callable[[Fact], bool] = _always
    ) -> None:
        """`wanted` is asked each time whether a fact is of interest just now."""
        for fact in facts:
            self._listeners[fact] = (*self._listeners.get(fact, ()), (listener, wanted))

    def wants(self, fact: Fact) -> bool:
        for _, wanted in self._listeners.get(fact, ()):  # noqa: SIM110 - `any` takes three times as long
            if wanted(fact):
                return True
        return False

    def publish(self, event: Event, error: BaseException | None = None, retry_in: float | None = None) -> None:
        news = News(event, error, retry_in)
        for listener, _ in self._listeners.get(event.kind, ()):
            try:
                listener(news)
            except Exception as broken:  # a bug in a log filter or a metric must not end a worker
                self._report(listener, broken)

    def _report(self, listener: Listener, broken: Exception) -> None:
        if listener in self._broken:
            return
        self._broken.add(listener)
        self._log.error("a listener to events failed; further errors of it are not told", exc_info=broken)
