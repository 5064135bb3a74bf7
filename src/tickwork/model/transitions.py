"""The transitions as pure changes of a `Record`: what `table.py` says, in code.

Memory and SQLite both move their records through these functions; they differ only in where a status has its home.
Each function returns the fact to append to the log. None of them looks at a clock or an index.
"""

from __future__ import annotations

from collections.abc import Callable

from tickwork.model.facts import Fact
from tickwork.model.outcomes import Aborted, Failed, Held, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import WAITING, Attempt, Place, Record, Spec, Status

EXPIRED = "it did not start in time"  # the message of a task that has expired


def submit(spec: Spec, seq: int, now: int, waiting: list[str]) -> Record:
    due_at = spec.at if spec.at is not None else now + spec.delay
    record = Record(spec=spec, seq=seq, submitted_at=now, due_at=due_at, waiting=waiting)
    if spec.fair:
        record.place = Place.FAIR
    record.status = Status.BLOCKED if waiting else _pending_or_ready(record, now)
    return record


def _lane_of(spec: Spec) -> Place:
    """Where it waits for a worker, in its turn."""
    return Place.FAIR if spec.fair else Place.MAIN


def _pending_or_ready(record: Record, now: int) -> Status:
    return Status.PENDING if record.due_at > now else Status.READY


def resolve(record: Record, upstream: str, ok: bool, now: int) -> Fact:
    """A dependency has ended. The caller has checked that the record waits for it."""
    record.waiting = [other for other in record.waiting if other != upstream]
    if not ok and record.spec.run_after == "success":
        return cancel(record, now, because_of(upstream))
    if not record.waiting:
        record.status = _pending_or_ready(record, now)
        record.place = _lane_of(record.spec)
    return Fact.TASK_RESOLVED


def met(upstream: Record, spec: Spec) -> bool:
    """Whether a task on which another depends has ended as that one needs it."""
    return upstream.status is Status.SUCCESS or (spec.run_after == "end" and upstream.status.ended)


def waits_again(record: Record, look: Callable[[str], Record | None]) -> tuple[list[str], str]:
    """The tasks that a retried one has to wait for, and one that will never let it run, if there is such a one.
    That one has ended badly, or is gone; but what is gone was met if the task has run since."""
    spec = record.spec
    waiting: list[str] = []
    for upstream_id in dict.fromkeys(spec.depends_on):
        upstream = look(upstream_id)
        if upstream is None:
            if record.started_at is None and spec.run_after == "success":
                return [], upstream_id
        elif not met(upstream, spec):
            if upstream.status.ended:
                return [], upstream_id
            waiting.append(upstream_id)
    return waiting, ""


def because_of(upstream: str) -> str:
    """Why a task was cancelled with another one: its message, by which it is found again."""
    return f"task {upstream}, on which it depends, did not succeed"


def promote(record: Record) -> Fact:
    """To the end of its lane; one that was held goes to the front, as it has been at the head once."""
    record.status = Status.READY
    record.place = _lane_of(record.spec) if record.parked is None else Place.FRONT
    record.parked = None
    return Fact.TASK_DUE


def run_now(record: Record) -> Fact:
    promote(record)
    return Fact.TASK_HASTENED


def reschedule(record: Record, at: int) -> Fact:
    """To another due time. One that waits for a worker waits for its time again."""
    if record.status in WAITING or record.parked is not None:
        _let_go(record)
        record.status = Status.PENDING
        record.place = Place.MAIN
        record.parked = None
    record.due_at = at
    return Fact.TASK_RESCHEDULED


def assign(record: Record, worker_id: str, hold: int, now: int) -> Fact:
    """To the inbox of a worker, for a time. Until then no other worker gets it."""
    record.status = Status.ASSIGNED
    record.parked = None
    record.worker_id = worker_id
    record.lease_until = now + hold
    return Fact.TASK_ASSIGNED


def unassign(record: Record) -> Fact:
    _let_go(record)
    return _to_front(record, Fact.TASK_UNASSIGNED)


def _let_go(record: Record) -> None:
    if record.status is Status.ASSIGNED:
        record.worker_id = None
        record.lease_until = 0


def start(record: Record, worker_id: str, nonce: str, lease_ttl: int, now: int) -> Fact:
    record.status = Status.RUNNING
    record.parked = None
    record.attempt += 1
    record.fence = max(record.fence + 1, now * 1000)
    record.nonce = nonce
    record.worker_id = worker_id
    record.lease_until = now + lease_ttl
    record.started_at = now
    record.finished_at = None
    return Fact.TASK_CLAIMED


def finish(record: Record, outcome: Outcome, now: int, policy: Policy) -> Fact:
    """End a run. The caller has checked the lease."""
    record.lease_until = 0
    if isinstance(outcome, Succeeded):
        record.execution_time = outcome.duration
        record.code, record.message, record.result = outcome.code, outcome.message, outcome.result
        return _end(record, Status.SUCCESS, now, Fact.TASK_SUCCEEDED)
    if isinstance(outcome, Failed | Aborted | Stopped):
        record.execution_time = outcome.duration
    if isinstance(outcome, Failed | Aborted) or (isinstance(outcome, Snoozed) and outcome.error):
        record.last_error = outcome.error
    if isinstance(outcome, Stopped) and outcome.message:
        return cancel(record, now, outcome.message)
    if record.cancel or isinstance(outcome, Stopped):
        return cancel(record, now, record.message)
    if not isinstance(outcome, Aborted):
        record.progress, record.progress_note = None, ""
    match outcome:
        case Failed():
            record.status = Status.RETRYING
            record.due_at = now + outcome.retry_in
            return Fact.TASK_RETRYING
        case Aborted():
            return _die(record, now, policy)
        case Snoozed():
            record.attempt -= 1
            record.status = Status.PENDING
            record.due_at = outcome.at if outcome.at is not None else now + outcome.delay
            return Fact.TASK_SNOOZED
        case Held():
            record.attempt -= 1
            record.status = Status.PENDING
            record.place, record.parked = Place.SIDE, outcome.why
            record.due_at = now + outcome.delay
            return Fact.TASK_HELD
        case Released():
            record.attempt -= 1
            return _to_front(record, Fact.TASK_RELEASED)


def expire(record: Record, now: int, policy: Policy, why: str, alive: bool = False) -> Fact:
    """Its worker is gone. The attempt is given back; the fence moves on, so that a late finish is refused. A worker
    that is alive and has let go of the task was cut off: no loss, since nothing has died of it."""
    record.attempt -= 1
    record.losses += 0 if alive else 1
    record.lease_until = 0
    record.fence += 1
    record.nonce = ""
    if record.cancel:
        return cancel(record, now, record.message)
    fate = "was cut off" if alive else "was lost"
    record.last_error = f"worker {record.worker_id} {fate} ({why})"
    if not alive and record.losses >= policy.max_losses:
        record.last_error += f"; not run again after {record.losses} lost workers"
        return _die(record, now, policy)
    record.progress, record.progress_note = None, ""
    return _to_front(record, Fact.TASK_LOST)


def cancel(record: Record, now: int, reason: str) -> Fact:
    _let_go(record)
    record.message = reason
    record.waiting = []
    record.parked = None
    return _end(record, Status.CANCELLED, now, Fact.TASK_CANCELLED)


def deadline(record: Record) -> int | None:
    """When it ends without a run. A task that has started once, or was retried by hand, is never late."""
    return None if record.fence else record.spec.deadline(record.due_at)


def lapse(record: Record, now: int) -> Fact:
    """It has not started by its deadline."""
    cancel(record, now, EXPIRED)
    return Fact.TASK_EXPIRED


def run_before(record: Record, outcome: Outcome, now: int) -> Attempt | None:
    """The run that an outcome ends, for the history, if its task goes on. To be asked before `finish`."""
    if record.cancel:
        return None
    match outcome:
        case Failed():
            return _attempt(record, record.attempt, now, "failed", outcome.duration, outcome.error)
        case Snoozed():
            return _attempt(record, record.attempt, now, "snoozed", None, outcome.error or None)
    return None


def run_lost(record: Record, now: int) -> Attempt:
    """The run whose worker is gone, for the history, also if the task has ended with it. To be asked after `expire`."""
    error = None if record.status is Status.CANCELLED else record.last_error
    return _attempt(record, record.attempt + 1, now, "lost", None, error)


def run_ended(record: Record, kept: Attempt | None) -> Attempt | None:
    """The last run of a task that is retried by hand, for the history. None if it never ran, or if that run is the last
    one that is kept: then the task ended while it waited. To be asked before `retry`."""
    if record.started_at is None or record.attempt < 1 or (kept is not None and kept.started_at == record.started_at):
        return None
    error = record.last_error if record.status in (Status.DEAD, Status.FAILED) else None
    finished_at = record.finished_at or 0
    return _attempt(record, record.attempt, finished_at, record.status.value, record.execution_time, error)


def _attempt(record: Record, number: int, now: int, end: str, duration: float | None, error: str | None) -> Attempt:
    return Attempt(number, record.started_at or 0, now, record.worker_id or "", end, duration, error)


def ask_cancel(record: Record, reason: str) -> Fact:
    record.cancel = True
    record.message = reason
    return Fact.TASK_CANCEL_ASKED


def retry(record: Record, waiting: list[str], now: int) -> Fact:
    """From an end, by hand: all counters start again, but the fence only grows. `waiting` names the tasks on which it
    depends and that have not ended. One that depends on others and never ran keeps its time."""
    before_its_time = bool(record.spec.depends_on) and record.started_at is None and record.due_at > now
    record.attempt = record.losses = 0
    record.fence += 1
    record.nonce = ""
    record.cancel = False
    record.code, record.message, record.result = 0, "", None
    record.started_at = record.finished_at = record.execution_time = None
    record.progress, record.progress_note = None, ""
    if waiting:
        record.waiting, record.status = waiting, Status.BLOCKED
        return Fact.TASK_RETRIED
    if before_its_time:
        record.status = Status.PENDING
        return Fact.TASK_RETRIED
    return _to_front(record, Fact.TASK_RETRIED)


def note(record: Record, progress: float | None, text: str) -> None:
    if progress is not None:
        record.progress, record.progress_note = progress, text


def _to_front(record: Record, fact: Fact) -> Fact:
    record.status = Status.READY
    record.place = Place.FRONT
    return fact


def _die(record: Record, now: int, policy: Policy) -> Fact:
    if policy.dlq:
        return _end(record, Status.DEAD, now, Fact.TASK_DIED)
    return _end(record, Status.FAILED, now, Fact.TASK_FAILED)


def _end(record: Record, status: Status, now: int, fact: Fact) -> Fact:
    record.status = status
    record.finished_at = now
    record.cancel = False
    return fact
