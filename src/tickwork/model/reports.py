"""What users are shown of statistics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct


class Percentiles(Struct, frozen=True):
    """Seconds that a half, 95 % and 99 % of all did not exceed, within 2 %."""

    p50: float
    p95: float
    p99: float


class ReportRow(Struct, frozen=True, kw_only=True):
    """The tasks of a type, a queue or a time. `name` is the type, the queue or the beginning of that time. A task
    that was retried by hand ends more than once."""

    name: str
    at: datetime | None = None  # the beginning of the span
    submitted: int = 0
    started: int = 0  # attempts that have begun
    success: int = 0
    failed: int = 0
    dead: int = 0
    cancelled: int = 0  # expired ones too
    retries: int = 0  # attempts that have failed and were followed by another
    losses: int = 0  # attempts whose worker was lost
    snoozes: int = 0
    failure_rate: float | None = None  # failed and dead ones of those that ended otherwise than by cancelling
    wait: Percentiles | None = None  # from ready to started
    run: Percentiles | None = None  # of one attempt
    missed: int = 0  # facts that left the log uncounted; of types and queues it is not known

    @property
    def ended(self) -> int:
        return self.success + self.failed + self.dead + self.cancelled


class Report(Struct, frozen=True, kw_only=True):
    """What happened from `since` to `until`: those that were asked for, or the nearest that statistics are kept for.
    `through` is up to when the log has been counted; None: there are no statistics."""

    since: datetime
    until: datetime
    by: str
    rows: list[ReportRow]
    total: ReportRow
    through: datetime | None = None

    def __iter__(self) -> Iterator[ReportRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class FailureGroup(Struct, frozen=True, kw_only=True):
    """Failed attempts that have the type of the error, the place in the program, and the message in common. In the
    message quoted parts and words with digits are left out."""

    id: str
    error: str  # empty for what is no exception
    message: str
    place: str
    types: tuple[str, ...]  # of the tasks, some
    first_seen: datetime
    last_seen: datetime
    total: int  # attempts
    dead: int  # tasks that ended by it
    hours: tuple[int, ...]  # attempts in each of the last 24 hours, the current one at the end
    tasks: tuple[str, ...]  # ids of the last ones, the latest first


class ScheduleRun(Struct, frozen=True, kw_only=True):
    """A run of a schedule that has ended, or ticks that were left out."""

    at: datetime  # its tick; when ticks were left out, the time of that
    outcome: str  # success, failed, dead or cancelled; skipped, as the run before had not ended; missed
    task_id: str | None = None
    late: float | None = None  # seconds from the tick to its task
    duration: float | None = None  # seconds, of the last attempt
    count: int = 1  # ticks that were missed
