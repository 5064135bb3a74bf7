"""Statistics and reports."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal

from msgspec import Meta, Struct

from tickwork.clock import to_datetime, to_millis
from tickwork.handlers.options import aware
from tickwork.model.reports import Percentiles, Report, ReportRow
from tickwork.model.statistics import KEPT, start_of
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.exports import csv_of
from tickwork.server.operations import operation
from tickwork.server.operations.tasks import Name
from tickwork.server.problems import Refused
from tickwork.server.series import Line, percentiles
from tickwork.server.series import series as read_series

By = Literal["type", "queue", "day", "hour", "minute"]
Minutes = Annotated[int, Meta(ge=5, le=400 * 1440)]


class SeriesLine(Struct, frozen=True, kw_only=True):
    """Counts and times of one name, one for each time in `SeriesView.times`."""

    name: str
    submitted: list[int]
    started: list[int]
    success: list[int]
    failed: list[int]
    dead: list[int]
    cancelled: list[int]
    retries: list[int]
    losses: list[int]
    wait: list[Percentiles | None]
    run: list[Percentiles | None]


class SeriesView(Struct, frozen=True, kw_only=True):
    """Statistics over time; the last point is not over yet."""

    grain: Literal["minute", "hour", "day"]
    times: list[datetime]
    lines: list[SeriesLine]


@operation("GET", "/stats/series", Right.VIEW)
async def get_series(call: Call, minutes: Minutes = 60, by: Literal["all", "type", "queue"] = "all") -> SeriesView:
    """Statistics of the last time, as charts show them."""
    found = await read_series(call.space, timedelta(minutes=minutes), by)
    names = found.names or ([""] if by == "all" else [])
    return SeriesView(
        grain=found.grain,
        times=[to_datetime(start) for start in found.starts],
        lines=[line_of(name, found.of(name)) for name in names],
    )


def line_of(name: str, line: Line) -> SeriesLine:
    counted = ("submitted", "started", "success", "failed", "dead", "cancelled", "retries", "losses")
    return SeriesLine(
        name=name,
        wait=[percentiles(cell.waits) for cell in line.cells],
        run=[percentiles(cell.runs) for cell in line.cells],
        **{what: line.counts(what) for what in counted},
    )


@operation("GET", "/reports", Right.VIEW)
async def get_report(
    call: Call,
    since: datetime | None = None,
    until: datetime | None = None,
    by: By = "type",
    type: Name | None = None,
    queue: Name | None = None,
) -> Report:
    """What has happened in a time, by type, queue, day, hour or minute; the last 24 hours if none is named."""
    await _check_end(call, until)
    return await call.client.report(since, until, by=by, type=type, queue=queue)


async def _check_end(call: Call, until: datetime | None) -> None:
    """Of a time that is over for longer than anything is kept, there is no report."""
    oldest = start_of("day", (await call.space.store()).now() - KEPT["day"])
    if until is not None and to_millis(aware("until", until)) <= oldest:
        raise Refused(400, "bad_value", f"until must be after {to_datetime(oldest)}: nothing is kept from before")


@operation("GET", "/reports/export", Right.VIEW, media="text/csv")
async def export_report(
    call: Call,
    since: datetime | None = None,
    until: datetime | None = None,
    by: By = "type",
    type: Name | None = None,
    queue: Name | None = None,
) -> str:
    """The same as CSV; the last line is the total."""
    report = await get_report(call, since, until, by, type, queue)
    return csv_of(ReportRow, [*report.rows, report.total], {"wait": Percentiles, "run": Percentiles})
