"""The facts that the log holds. A store appends them inside the transition they tell of."""

from __future__ import annotations

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
    ALERT_FIRED = "alert.fired"  # `id` is the name of its rule
    ALERT_RESOLVED = "alert.resolved"
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


class NewFact(Struct, frozen=True):
    """A fact that a caller asks a store to append; the store adds the number and the time."""

    kind: Fact
    id: str
    detail: str = ""
