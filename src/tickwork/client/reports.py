"""Reports from the statistics in the store: by type, queue and time, failures by group, and the runs of schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from tickwork.client.access import Access
from tickwork.clock import to_datetime, to_millis
from tickwork.errors import ConfigError, ScheduleNotFound, StoreError
from tickwork.handlers.options import aware, choice, count, known_schedule
from tickwork.model import runs
from tickwork.model.failures import FAILURES, HOURS_KEPT, Failures, Group
from tickwork.model.reports import FailureGroup, Percentiles, Report, ReportRow, ScheduleRun
from tickwork.model.sketch import Sketch
from tickwork.model.statistics import (
    COUNTS,
    KEPT,
    OPEN,
    SIZES,
    Bucket,
    Cell,
    Grain,
    Open,
    Unreadable,
    mark_of,
    start_of,
)
from tickwork.store.contract import Store
from tickwork.texts import shown

By = Literal["type", "queue", "day", "hour", "minute"]
BY = ("type", "queue", "day", "hour", "minute")
AGO = timedelta(hours=24)
TOGETHER = 20  # marks that are read at the same time
SHARES = (0.5, 0.95, 0.99)
LIMIT_MAX = 10_000


class Span(NamedTuple):
    grain: Grain
    start: int

    @property
    def end(self) -> int:
        return self.start + SIZES[self.grain]


async def report(
    access: Access,
    since: datetime | timedelta | None,
    until: datetime | timedelta | None,
    by: By,
    type: str | None,
    queue: str | None,
) -> Report:
    choice("by", BY, by)
    store = await access.open_store()
    opened, now = await opened_of(store), store.now()
    # What has happened at this very moment belongs to it.
    begin, end = _moment("since", AGO if since is None else since, now), min(_moment("until", until, now + 1), now + 1)
    if begin >= end:
        raise ConfigError(f"since must be before until: {to_datetime(begin)} is not before {to_datetime(end)}")
    spans = list(_spans(begin, end, by, now))
    buckets = await _buckets(store, opened, spans) if opened is not None else [Bucket(span.start) for span in spans]
    buckets = [_only(bucket, type, queue) for bucket in buckets]
    total = Bucket(0)
    for bucket in buckets:
        total.merge(bucket)
    return Report(
        since=to_datetime(spans[0].start),
        until=to_datetime(min(spans[-1].end, now)),
        by=by,
        rows=_rows_by_name(total, by) if by in ("type", "queue") else [_row_of_time(bucket) for bucket in buckets],
        total=_row("total", _sum(total), missed=total.missed),
        through=None if opened is None else to_datetime(await _through(store, opened, now)),
    )


async def opened_of(store: Store) -> Open | None:
    text = await store.marks.get(OPEN)
    try:
        return None if text is None else Open.read(text)
    except Unreadable as error:
        raise _unreadable(error) from None


def _unreadable(error: Unreadable) -> StoreError:
    return StoreError(f"the statistics in the store cannot be read by this version of Tickwork: {error}")


async def _through(store: Store, opened: Open, now: int) -> int:
    """Until when everything is counted: until now, if nothing has happened since."""
    later, _ = await store.log.read(opened.cursor, 1)
    return opened.at if later else max(now, opened.at)


def _moment(what: str, value: datetime | timedelta | None, now: int) -> int:
    """A time, or how long ago; none is now."""
    if value is None:
        return now
    if isinstance(value, timedelta):
        return now - round(value.total_seconds() * 1000)
    if not isinstance(value, datetime):
        raise ConfigError(f"{what} must be a time, or a timedelta that says how long ago, not {shown(value)}")
    return to_millis(aware(what, value))


def _spans(begin: int, end: int, by: By, now: int) -> Iterator[Span]:
    """Whole buckets that cover the time. Where only longer ones are kept, they reach beyond it."""
    if by != "type" and by != "queue":
        return _even_spans(begin, end, by, now)
    return _covering_spans(begin, end, now)


def _even_spans(begin: int, end: int, grain: Grain, now: int) -> Iterator[Span]:
    oldest = start_of(grain, now - KEPT[grain])
    if begin < oldest:
        longer = " or ".join(f"by={other!r}" for other in SIZES if KEPT[other] > KEPT[grain])
        ask = f"; ask for less, or {longer}" if longer else ""
        raise ConfigError(f"by={grain!r} goes back to {to_datetime(oldest)}{ask}")
    for start in range(start_of(grain, begin), end, SIZES[grain]):
        yield Span(grain, start)


def _covering_spans(begin: int, end: int, now: int) -> Iterator[Span]:
    at = max(begin, start_of("day", now - KEPT["day"]))
    at = start_of(_finest(at, now), at)
    if end > now:  # nothing has happened later, so the longest buckets will do
        end = start_of("day", now) + SIZES["day"]
    while at < end:
        span = _longest(at, end, now)
        yield span
        at = span.end


def _finest(at: int, now: int) -> Grain:
    """The shortest buckets that are kept of that time."""
    return next((grain for grain in SIZES if at >= start_of(grain, now - KEPT[grain])), "day")


def _longest(at: int, end: int, now: int) -> Span:
    """The longest bucket that begins then and ends in time, or else the shortest one that is kept."""
    grains: tuple[Grain, ...] = ("day", "hour", "minute")
    fits = (grain for grain in grains if at % SIZES[grain] == 0 and at + SIZES[grain] <= end)
    return Span(next((grain for grain in fits if grain == "day" or _is_kept(grain, at, now)), _finest(at, now)), at)


def _is_kept(grain: Grain, at: int, now: int) -> bool:
    return at >= start_of(grain, now - KEPT[grain])


async def _buckets(store: Store, opened: Open, spans: Sequence[Span]) -> list[Bucket]:
    kept = {grain: set(numbers) for grain, numbers in opened.kept.items()}
    found: list[Bucket] = []
    for start in range(0, len(spans), TOGETHER):
        some = spans[start : start + TOGETHER]
        found += await asyncio.gather(*(bucket_of(store, opened, span, kept[span.grain]) for span in some))
    return found


async def bucket_of(store: Store, opened: Open, span: Span, kept: set[int]) -> Bucket:
    bucket, at_hand = Bucket(span.start), opened.buckets[span.grain]
    if span.start == at_hand.start:
        for grain in SIZES:  # the open ones are parts of it up to its own length
            bucket.merge(opened.buckets[grain])
            if grain == span.grain:
                return bucket
    if span.start // SIZES[span.grain] in kept:
        text = await store.marks.get(mark_of(span.grain, span.start))
        try:
            return bucket if text is None else Bucket.read(text)
        except Unreadable as error:
            raise _unreadable(error) from None
    return bucket


def _only(bucket: Bucket, type: str | None, queue: str | None) -> Bucket:
    if type is None and queue is None:
        return bucket
    wanted = Bucket(bucket.start)
    wanted.missed = bucket.missed
    for of_type, of_queue, cell in bucket:
        if type in (None, of_type) and queue in (None, of_queue):
            wanted.cell(of_type, of_queue).merge(cell)
    return wanted


def _rows_by_name(total: Bucket, by: By) -> list[ReportRow]:
    cells: dict[str, Cell] = {}
    for kind, queue, cell in total:
        cells.setdefault(kind if by == "type" else queue, Cell()).merge(cell)
    rows = [_row(name, cell) for name, cell in cells.items()]
    return sorted(rows, key=lambda row: (-row.ended, -row.submitted, row.name))


def _row_of_time(bucket: Bucket) -> ReportRow:
    at = to_datetime(bucket.start)
    return _row(at.isoformat(), _sum(bucket), at, bucket.missed)


def _sum(bucket: Bucket) -> Cell:
    whole = Cell()
    for _, _, cell in bucket:
        whole.merge(cell)
    return whole


def _row(name: str, cell: Cell, at: datetime | None = None, missed: int = 0) -> ReportRow:
    counts = dict(zip(COUNTS, cell.counts, strict=True))
    failed = counts["failed"] + counts["dead"]
    ended = failed + counts["success"]
    return ReportRow(
        name=name, at=at, missed=missed, failure_rate=failed / ended if ended else None,
        wait=_percentiles(cell.waits), run=_percentiles(cell.runs), **counts,
    )  # fmt: skip


def _percentiles(sketch: Sketch) -> Percentiles | None:
    return Percentiles(*sketch.percentiles(SHARES)) if sketch.count else None


async def failures(
    access: Access, type: str | None, since: datetime | timedelta | None, limit: int
) -> list[FailureGroup]:
    """The groups, that which was seen last first."""
    count("limit", limit, 1, LIMIT_MAX)
    store = await access.open_store()
    text, now = await store.marks.get(FAILURES), store.now()
    oldest = 0 if since is None else _moment("since", since, now)
    try:
        found = [] if text is None else list(Failures.read(text).groups.values())
    except Unreadable as error:
        raise _unreadable(error) from None
    wanted = [group for group in found if group.last >= oldest and (type is None or type in group.types)]
    wanted.sort(key=lambda group: -group.last)
    return [_group(group, now) for group in wanted[:limit]]


def _group(group: Group, now: int) -> FailureGroup:
    hour = now // SIZES["hour"]
    return FailureGroup(
        id=group.id,
        error=group.error,
        message=group.message,
        place=group.place,
        types=tuple(group.types),
        first_seen=to_datetime(group.first),
        last_seen=to_datetime(group.last),
        total=group.total,
        dead=group.dead,
        hours=tuple(group.hours.get(each, 0) for each in range(hour - HOURS_KEPT + 1, hour + 1)),
        tasks=tuple(reversed(group.tasks)),
    )


async def runs_of(access: Access, schedule_id: str, is_there: bool = False) -> list[ScheduleRun]:
    """The last runs of a schedule, the latest first. `is_there`: the caller has just read the schedule itself."""
    store = await access.open_store()
    if not is_there and await store.schedules.get(known_schedule(schedule_id)) is None:
        raise ScheduleNotFound(schedule_id)
    text = await store.marks.get(runs.mark_of(schedule_id))
    try:
        found = [] if text is None else runs.read(text)
    except Unreadable as error:
        raise _unreadable(error) from None
    return [
        ScheduleRun(
            at=to_datetime(run.at),
            outcome=run.outcome,
            task_id=f"{schedule_id}{run.tail}" if run.tail else None,
            late=None if run.late is None else run.late / 1000,
            duration=run.took,
            count=run.count,
        )
        for run in reversed(found)
    ]
