"""The facts that the log holds. A store appends them inside the transition they tell of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct


class Fact(StrEnum):
    """What happened, in the past tense. The part before the dot says what `Event.id` names."""

    TASK_SUBMITTED = "task.submitted"
    TASK_RESOLVED = "task.resolved"  # a dependency ended; detail says which
    TASK_DUE = "task.due"
    TASK_HASTENED = "task.hastened"  # run now, by hand
    TASK_RESCHEDULED = "task.rescheduled"  # moved to another time, by hand; detail says which
    TASK_PARKED = "task.parked"  # passed over: no claimer may start its type
    TASK_ASSIGNED = "task.assigned"  # to the inbox of a worker
    TASK_UNASSIGNED = "task.unassigned"  # its worker did not take it in time, or takes no more tasks
    TASK_CLAIMED = "task.claimed"
    TASK_SUCCEEDED = "task.succeeded"
    TASK_RETRYING = "task.retrying"
    TASK_FAILED = "task.failed"
    TASK_DIED = "task.died"  # into the dead-letter queue
    TASK_SNOOZED = "task.snoozed"
    TASK_HELD = "task.held"  # a limit, breaker or switch did not let it run; detail says which
    TASK_RELEASED = "task.released"
    TASK_LOST = "task.lost"  # its worker vanished; it is ready again
    TASK_CANCEL_ASKED = "task.cancel_asked"
    TASK_CANCELLED = "task.cancelled"
    TASK_EXPIRED = "task.expired"  # cancelled, since it had not started in time
    TASK_RETRIED = "task.retried"  # by hand, from an end
    TASK_DELETED = "task.deleted"
    TASK_DROPPED = "task.dropped"  # the dead-letter queue was full
    WORKER_JOINED = "worker.joined"
    WORKER_LEFT = "worker.left"
    WORKER_LOST = "worker.lost"
    WORKER_ORDERED = "worker.ordered"
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
    LIMIT_SET = "limit.set"  # by hand; `id` says of what, detail who, and how much
    LIMIT_REMOVED = "limit.removed"
    SWITCH_OFF = "switch.off"  # tasks of a type, key or tag are stopped; detail says who, and why
    SWITCH_ON = "switch.on"
    BREAKER_OPENED = "breaker.opened"  # nothing is let through
    BREAKER_PROBED = "breaker.probed"  # one task is let through to try; detail says which
    BREAKER_CLOSED = "breaker.closed"
    ALERT_FIRED = "alert.fired"  # `id` is the name of its rule
    ALERT_RESOLVED = "alert.resolved"
    ALERT_FIRED_SILENTLY = "alert.fired_silently"  # while its rule is silenced
    ALERT_RESOLVED_SILENTLY = "alert.resolved_silently"
    LOG_MISSED = "log.missed"  # told to a slow subscriber: `detail` says how many it missed
    LOG_UNREADABLE = "log.unreadable"  # told to readers: there are facts here that this version cannot read


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """One fact as stores keep it: `at` is in milliseconds, `kind` whatever was written. Users are shown the `Event` of
    `model.info`."""

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


class Facts(Struct, frozen=True, gc=False):
    """Facts in a row that differ only in their numbers, in what they are about, and in their durations: a worker claims
    and ends many tasks at a time. Who reads very many facts takes them so, without an `Event` for each."""

    numbers: Sequence[int]
    at: int
    kind: str
    type: str
    queue: str
    worker_id: str
    attempt: int
    detail: str
    ids: Sequence[str]
    durations: Sequence[float]

    def events(self) -> list[Event]:
        at, kind, of_type, queue = self.at, self.kind, self.type, self.queue
        worker_id, attempt, detail = self.worker_id, self.attempt, self.detail
        return [
            Event(number, at, kind, subject, of_type, queue, worker_id, attempt, duration, detail)
            for number, subject, duration in zip(self.numbers, self.ids, self.durations, strict=True)
        ]


def grouped(events: Iterable[Event]) -> list[Facts]:
    """The same facts in the same order, together where they fit."""
    found: list[Facts] = []
    one = None
    for event in events:
        if (
            one is None
            or event.kind != one.kind
            or event.at != one.at
            or event.type != one.type
            or event.queue != one.queue
            or event.worker_id != one.worker_id
            or event.attempt != one.attempt
            or event.detail != one.detail
        ):
            numbers: list[int] = []
            ids: list[str] = []
            durations: list[float] = []
            one = Facts(
                numbers, event.at, event.kind, event.type, event.queue, event.worker_id, event.attempt, event.detail,
                ids, durations,
            )  # fmt: skip
            found.append(one)
        numbers.append(event.seq)
        ids.append(event.id)
        durations.append(event.duration)
    return found


class NewFact(Struct, frozen=True):
    """A fact that a caller asks a store to append; the store adds the number and the time."""

    kind: Fact
    id: str
    detail: str = ""
