"""The transition table that every store must follow: tests and documentation are made from it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tickwork.model.tasks import Status


class Op(StrEnum):
    """What can happen to a task."""

    SUBMIT = "submit"
    RESOLVE = "resolve"  # a task it depends on has ended
    PROMOTE = "promote"  # its time has come
    RUN_NOW = "run_now"
    RESCHEDULE = "reschedule"
    ASSIGN = "assign"  # to the inbox of one worker
    UNASSIGN = "unassign"  # its worker did not take it in time, or takes no more tasks
    CLAIM = "claim"
    SUCCEED = "succeed"
    FAIL = "fail"  # with a retry to come
    ABORT = "abort"  # no (more) retries
    SNOOZE = "snooze"
    HOLD = "hold"  # a limit, breaker or switch did not let it run
    RELEASE = "release"  # given back unfinished at shutdown
    STOP = "stop"  # the handler ended because it was cancelled
    OVERDUE = "overdue"  # it has not started by its deadline
    EXPIRE = "expire"  # the lease ran out, or its worker is known to be gone
    CANCEL = "cancel"
    FORCE_CANCEL = "force_cancel"
    RETRY = "retry"
    DELETE = "delete"
    PRUNE = "prune"  # retention is over


class Rule(NamedTuple):
    """From this status, this operation leads to one of these (None: the task is not there)."""

    source: Status | None
    op: Op
    targets: tuple[Status | None, ...]


def _rules() -> tuple[Rule, ...]:
    s, o = Status, Op
    waiting = (s.BLOCKED, s.PENDING, s.RETRYING, s.READY, s.ASSIGNED)
    ends = (s.SUCCESS, s.FAILED, s.DEAD, s.CANCELLED)
    # A task that was cancelled by force while it ran becomes `cancelled` by every exit but success.
    return (
        Rule(None, o.SUBMIT, (s.BLOCKED, s.PENDING, s.READY)),
        Rule(s.BLOCKED, o.RESOLVE, (s.BLOCKED, s.PENDING, s.READY, s.CANCELLED)),
        *(Rule(source, o.PROMOTE, (s.READY,)) for source in (s.PENDING, s.RETRYING)),
        *(Rule(source, o.RUN_NOW, (s.READY,)) for source in (s.PENDING, s.RETRYING)),
        *(Rule(source, o.RESCHEDULE, (source,)) for source in (s.PENDING, s.RETRYING)),
        *(Rule(source, o.RESCHEDULE, (s.PENDING,)) for source in (s.READY, s.ASSIGNED)),
        Rule(s.READY, o.ASSIGN, (s.ASSIGNED,)),
        Rule(s.ASSIGNED, o.UNASSIGN, (s.READY,)),
        *(Rule(source, o.CLAIM, (s.RUNNING,)) for source in (s.READY, s.ASSIGNED)),
        Rule(s.RUNNING, o.SUCCEED, (s.SUCCESS,)),
        Rule(s.RUNNING, o.FAIL, (s.RETRYING, s.CANCELLED)),
        Rule(s.RUNNING, o.ABORT, (s.DEAD, s.FAILED, s.CANCELLED)),
        Rule(s.RUNNING, o.SNOOZE, (s.PENDING, s.CANCELLED)),
        Rule(s.RUNNING, o.HOLD, (s.PENDING, s.CANCELLED)),
        Rule(s.RUNNING, o.RELEASE, (s.READY, s.CANCELLED)),
        Rule(s.RUNNING, o.STOP, (s.CANCELLED,)),
        Rule(s.RUNNING, o.EXPIRE, (s.READY, s.DEAD, s.FAILED, s.CANCELLED)),
        Rule(s.RUNNING, o.FORCE_CANCEL, (s.RUNNING,)),
        *(Rule(source, op, (s.CANCELLED,)) for source in waiting for op in (o.CANCEL, o.FORCE_CANCEL)),
        *(Rule(source, o.OVERDUE, (s.CANCELLED,)) for source in (s.BLOCKED, s.PENDING, s.READY, s.ASSIGNED)),
        *(Rule(source, o.RETRY, (s.READY, s.BLOCKED, s.PENDING)) for source in ends),
        *(Rule(source, op, (None,)) for source in ends for op in (o.DELETE, o.PRUNE)),
    )


TABLE = _rules()
