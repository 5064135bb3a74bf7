"""Every error that Tickwork raises.

    TickworkError
    ├── ConfigError             an option, a cron line, a zone or a URL that cannot be used
    │   └── CronError           names the field and what is allowed in it
    ├── PayloadError            a payload that does not fit its handler, or is too large
    ├── HandlerNotFound         no handler of that type here
    ├── DuplicateTask           its dedup key is taken (`existing_id`)
    ├── TaskExists              its id is taken
    ├── TaskNotFound            no such task, or its retention is over
    ├── ScheduleNotFound        no such schedule
    ├── WorkerNotFound          no such worker
    ├── NotCancellable          the task has ended, or runs and `force` was not given
    ├── NotRetryable            the task cannot run again, or now: it has (not) ended, or depends on another
    ├── NotReschedulable        the task waits for no time: it runs, has ended, or waits for other tasks
    ├── RateLimited             try again after `retry_after` seconds
    ├── LeaseLost               the caller no longer holds the task, or the lock
    ├── ExecutorError           a task failed where its executor ran it; for executors to raise
    ├── StoreError              the store refused; trying again will not help
    │   └── StoreUnavailable    the store cannot be reached now; trying again may help
    │       └── StoreFull       it has no room for new tasks; those that run can still end
    └── ResultError             `result()` has no value to give
        ├── TaskFailed          it failed for good (`info` has the whole record)
        ├── TaskCancelled       it was cancelled
        └── ResultTimeout       it has not ended yet

A handler may raise these to say how its attempt ended; they are not errors:

    Retry(after)                try again after that many seconds
    Abort(reason)               fail for good now, no more retries
    Snooze(until)               run me later; this attempt does not count
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tickwork.texts import shown

# A century, in seconds. A longer wait would overflow the calendar only once it is waited, so it is refused before.
LONGEST_WAIT = 100 * 365 * 86_400
TOO_LATE = datetime(3000, 1, 1, tzinfo=UTC)  # whoever means "never" must not get a date that no calendar can show


def _rebuild(kind: type[_Portable], args: tuple[Any, ...], state: dict[str, Any]) -> _Portable:
    error = kind.__new__(kind)
    error.args = args
    vars(error).update(state)
    return error


class _Portable(Exception):
    """Can be copied and sent to another process, though `__init__` takes other arguments than `args` holds."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, vars(self))


class TickworkError(_Portable):
    """The root of the tree: catch it to catch all that Tickwork raises.

    `submitted` has the handles of the tasks that `submit_many` had created before it was refused.
    """

    submitted: Sequence[Any] = ()


class ConfigError(TickworkError, ValueError):
    """An option, a zone, a URL or a file that cannot be used."""


class CronError(ConfigError):
    """A cron line that cannot be read, or that never comes."""


class PayloadError(TickworkError, ValueError):
    """A payload that does not fit its handler, is not encodable, or is too large."""


class HandlerNotFound(TickworkError, LookupError):
    """No handler of that type is registered in this process."""


class ExecutorError(TickworkError):
    """Raised by an executor: the task failed where it ran it. `report` is kept with the task as it is, without a
    traceback of this process, which would say nothing about the failure."""

    def __init__(self, text: str, report: str = "") -> None:
        super().__init__(text)
        self.report = report or text


class DuplicateTask(TickworkError):
    """Another task holds the dedup key; `existing_id` names it."""

    def __init__(self, dedup_key: str, existing_id: str) -> None:
        super().__init__(f"dedup key {shown(dedup_key)} is held by task {shown(existing_id)}")
        self.dedup_key = dedup_key
        self.existing_id = existing_id


class TaskExists(TickworkError):
    """A task of that id was submitted before; it is never overwritten."""

    def __init__(self, task_id: str, what: str = "task") -> None:
        super().__init__(f"{what} {shown(task_id)} exists already; choose another id, or leave it out")
        self.task_id = task_id


class TaskNotFound(TickworkError, LookupError):
    """No such task: never submitted, deleted, or past its retention."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"no task {shown(task_id)} (never submitted, deleted, or past its retention)")
        self.task_id = task_id


class ScheduleNotFound(TickworkError, LookupError):
    """No such schedule."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(f"no schedule {shown(schedule_id)}")
        self.schedule_id = schedule_id


class WorkerNotFound(TickworkError, LookupError):
    """No such worker: never registered, or gone for good."""

    def __init__(self, worker_id: str) -> None:
        super().__init__(f"no worker {shown(worker_id)} is known to the store; list_workers() has those that are")
        self.worker_id = worker_id


class NotCancellable(TickworkError):
    """The task has ended, or is running and `force=True` was not given."""


class NotRetryable(TickworkError):
    """The task cannot be run again, or cannot be run now.

    `retry` raises it for a task that has not ended, or that depends on one that ended badly or is gone, which is named
    by `upstream`; `run_now` for one that has ended, or that waits for other tasks.
    """

    upstream: str = ""


class NotReschedulable(TickworkError):
    """The task cannot be moved to another time: it runs, has ended, or waits for other tasks."""


class RateLimited(TickworkError):
    """Too many submissions; `retry_after` says when to come back, `type` whether the limit is that of one type."""

    def __init__(self, retry_after: float, type: str | None = None) -> None:
        of = "submits" if type is None else f"submits of type {type}"
        super().__init__(f"rate limit of {of} reached; retry after {retry_after:.3f} s")
        self.retry_after = retry_after
        self.type = type


class LeaseLost(TickworkError):
    """The caller does not hold the task (then nothing was changed) or the lock any more."""


class StoreError(TickworkError):
    """The store refused the call; sending it again will not help."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or is busy; sending the same call again is safe and may help."""


class StoreFull(StoreUnavailable):
    """The store has no room for new tasks. Those that run can still end, which makes room."""


class ResultError(TickworkError):
    """`result()` has no value to give."""

    def __init__(self, message: str, info: Any = None) -> None:
        super().__init__(message)
        self.info = info


class TaskFailed(ResultError):
    """The task failed for good; `info` is its record."""


class TaskCancelled(ResultError):
    """The task was cancelled; `info` is its record."""


class ResultTimeout(ResultError, TimeoutError):
    """The task did not end in time; it goes on."""


def _wait(what: str, value: float | timedelta) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(seconds, int | float) or not seconds < LONGEST_WAIT:
        raise ValueError(f"{what} must be a number of seconds below a century, or a timedelta, not {shown(value)}")
    return max(float(seconds), 0.0)


class _Verdict(_Portable):
    """What a handler raises to say how its attempt ended."""


class Retry(_Verdict):
    """Try again after `after` seconds (by the task's own strategy if not given); counts as a retry."""

    after: float | None = None  # of a subclass that does not call this __init__

    def __init__(self, after: float | timedelta | None = None, reason: str = "") -> None:
        super().__init__(reason or "the handler asked for a retry")
        self.after = None if after is None else _wait("Retry(after)", after)


class Abort(_Verdict):
    """Fail for good, without any further retry."""

    reason: str = "aborted by the handler"  # of a subclass that does not call this __init__

    def __init__(self, reason: str = "aborted by the handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Snooze(_Verdict):
    """Run again at `until` (an aware datetime) or after `until` seconds; the attempt is given back."""

    until: datetime | float = 0.0  # of a subclass that does not call this __init__

    def __init__(self, until: datetime | float | timedelta) -> None:
        if isinstance(until, datetime):
            if until.utcoffset() is None:
                raise ValueError("Snooze(until) needs an aware datetime, such as datetime.now(UTC) + ...")
            if until >= TOO_LATE:
                raise ValueError(f"Snooze(until) must be before the year {TOO_LATE.year}, not {until}")
        super().__init__(f"snoozed until {until}")
        self.until = until if isinstance(until, datetime) else _wait("Snooze(until)", until)
