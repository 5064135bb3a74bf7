"""`tickwork report` and `tickwork failures`: what the statistics in the store say."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from tickwork.cli import output
from tickwork.cli.options import Duration, global_options, limit_option
from tickwork.cli.output import Column
from tickwork.cli.session import ask, now_of

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.model.reports import FailureGroup, Percentiles, Report, ReportRow


BY = ("type", "queue", "day", "hour", "minute")
NO_STATISTICS = "no statistics: no node leads on this store with `statistics` and `events` on"
CHART_MINUTES = timedelta(hours=2)  # the chart of what began later is by the minute
CHART_HOURS = timedelta(days=4)  # and by the hour
BEHIND = timedelta(seconds=30)  # a report that is complete up to a later moment is not worth a word
FORMULA = ("=", "+", "-", "@", "\t", "\r")
PERCENTILES = ("p50", "p95", "p99")

COLUMNS = (
    Column("", least=12),
    Column("SUBMITTED", right=True),
    Column("SUCCESS", right=True),
    Column("DEAD", right=True, color=lambda cell: "red" if cell != "0" else None),
    Column("CANCELLED", drop=3, right=True),
    Column("RETRIES", drop=2, right=True),
    Column("FAILED", right=True, color=lambda cell: "red" if cell not in ("", "0 %") else None),
    Column("WAIT P50", drop=6, right=True),
    Column("P95", drop=5, right=True),
    Column("P99", drop=8, right=True),
    Column("RUN P50", drop=4, right=True),
    Column("P95", drop=1, right=True),
    Column("P99", drop=7, right=True),
)
FAILURE_COLUMNS = (
    Column("ERROR", least=10, color=lambda cell: "red"),
    Column("MESSAGE", least=12),
    Column("PLACE", least=8, drop=3),
    Column("TYPES", least=6, drop=2),
    Column("ATTEMPTS", right=True),
    Column("DEAD", right=True),
    Column("LAST 24 H", drop=1),
    Column("LAST"),
    Column("FIRST", drop=4),
)


class Moment(Duration):
    """How long ago, such as 24h or 7d, or a time with its zone."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        if value[:4].isdecimal() and value[4:5] == "-":
            return self._read_time(value, param, ctx)
        return timedelta(seconds=super().convert(value, param, ctx))

    def _read_time(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is not a time such as 2030-01-31T09:00+01:00", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{text!r} names no zone; add Z or an offset such as +01:00", param, ctx)
        return moment


since_option = click.option(
    "--since", type=Moment(), metavar="TIME", help="How long ago it begins, or a time: 24h, 7d."
)


@click.command("report")
@since_option
@click.option("--until", type=Moment(), metavar="TIME", help="How long ago it ends, or a time.  [now]")
@click.option("--by", type=click.Choice(BY), default="type", show_default=True, help="What a row stands for.")
@click.option("--type", "type_", metavar="TYPE", help="Only tasks of this type.")
@click.option("--queue", metavar="NAME", help="Only tasks of this queue.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@global_options
def report_command(**options: Any) -> None:
    """Show how many tasks ended how, and how long they waited and ran.

    The last 24 hours, unless --since says otherwise. Days and hours are those of UTC.
    """
    as_csv, kind = options.pop("as_csv"), options.pop("type_")
    since, until = options.pop("since"), options.pop("until")
    if as_csv and output.as_json():
        raise click.UsageError("--csv and --json cannot be given together")

    async def look(client: Client) -> tuple[Report, Report | None, datetime]:
        found = await client.report(since, until, type=kind, **options)
        now, plain = await now_of(client), not as_csv and not output.as_json()
        chart = await _chart(client, found, until, now, kind, options["queue"]) if plain else None
        return found, chart, now

    found, chart, now = ask(look)
    if output.as_json():
        output.show_json(found)
    elif as_csv:
        show_csv([_csv_head(), *(_csv_row(row) for row in found)])
    else:
        _show(found, chart, now)


async def _chart(
    client: Client, found: Report, until: Any, now: datetime, kind: str | None, queue: str | None
) -> Report | None:
    """The same by time: of each minute, hour or day, as far as these are kept."""
    if found.through is None:
        return None
    ago, by = now - found.since, found.by
    if by in ("type", "queue"):
        by = "minute" if ago <= CHART_MINUTES else "hour" if ago <= CHART_HOURS else "day"
    if by == found.by:
        return found
    return await client.report(found.since, until, by=by, type=kind, queue=queue)  # type: ignore[arg-type]


def _show(found: Report, chart: Report | None, now: datetime) -> None:
    if found.through is None:
        click.secho(NO_STATISTICS, dim=True)
        return
    if chart is not None and (chart.total.submitted or chart.total.ended):
        _show_chart(chart)
    title = found.by.upper()
    rows = [_row(row) for row in found if row.ended or row.submitted or row.started]
    columns = (COLUMNS[0]._replace(title=title), *COLUMNS[1:])
    output.show_table(columns, [*rows, _row(found.total)] if rows else [], "nothing has happened in this time")
    if found.total.missed:
        missed = f"at least {output.many(found.total.missed, 'fact')} could not be counted: the log had dropped them"
        click.secho(missed, fg="yellow")
    if now - found.through > BEHIND and found.through < found.until:
        click.secho(f"counted up to {output.moment(found.through)}", fg="yellow")


def _show_chart(chart: Report) -> None:
    """What was submitted, ended and failed, over time."""
    from tickwork.cli.screen import sparks

    limit = output.terminal_width()
    for name, count, color in _SERIES:
        series = [count(row) for row in chart]
        if limit is not None:
            series = _fitting(series, max(limit - 22, 10))
        drawn = click.style(sparks(series, max([*series, 1])), fg=color)
        click.echo(f"{name:<10}{sum(map(count, chart)):>11,} {drawn}".rstrip())
    click.secho(f"{output.moment(chart.since)} to {output.moment(chart.until)}, by the {chart.by}\n", dim=True)


_SERIES: tuple[tuple[str, Callable[[ReportRow], int], str], ...] = (
    ("submitted", lambda row: row.submitted, "cyan"),
    ("success", lambda row: row.success, "green"),
    ("failed", lambda row: row.failed + row.dead, "red"),
)


def _fitting(series: Sequence[int], columns: int) -> list[int]:
    """Joined so far that it fits the screen."""
    size = -(-len(series) // columns)
    return [sum(series[start : start + size]) for start in range(0, len(series), size)]


def _row(row: ReportRow) -> Sequence[object]:
    name = output.moment(row.at) if row.at is not None else row.name
    return (
        name, f"{row.submitted:,}", f"{row.success:,}", f"{row.dead + row.failed:,}", f"{row.cancelled:,}",
        f"{row.retries:,}", _share(row.failure_rate), *_shown(row.wait), *_shown(row.run),
    )  # fmt: skip


def _share(rate: float | None) -> str:
    if not rate:
        return "" if rate is None else "0 %"
    return f"{100 * rate:.2f} %" if rate >= 0.0001 else "<0.01 %"


def _shown(found: Percentiles | None) -> list[str]:
    return ["", "", ""] if found is None else [output.duration(getattr(found, name)) for name in PERCENTILES]


# --- CSV


def _csv_head() -> list[str]:
    of_times = [f"{what}_{name}" for what in ("wait", "run") for name in PERCENTILES]
    return ["name", *_COUNTED, "failure_rate", *of_times, "missed"]


_COUNTED = (
    "submitted", "started", "success", "failed", "dead", "cancelled", "retries", "losses", "snoozes",
)  # fmt: skip


def _csv_row(row: ReportRow) -> list[object]:
    times = [
        "" if found is None else f"{getattr(found, name):.6g}" for found in (row.wait, row.run) for name in PERCENTILES
    ]
    rate = "" if row.failure_rate is None else f"{row.failure_rate:.6g}"
    return [row.name, *(getattr(row, name) for name in _COUNTED), rate, *times, row.missed]


def show_csv(rows: Sequence[Sequence[object]]) -> None:
    """Cells come from strangers, and a spreadsheet would run one that begins like a formula."""
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([inert(cell) for cell in row] for row in rows)
    click.echo(text.getvalue(), nl=False, file=sys.stdout)


def inert(cell: object) -> str:
    text = output.clean(cell)
    return f"'{text}" if text.startswith(FORMULA) else text


# --- failures


@click.command("failures")
@click.option("--type", "type_", metavar="TYPE", help="Only failures of this type of tasks.")
@since_option
@limit_option
@global_options
def failures_command(type_: str | None, since: Any, limit: int) -> None:
    """Show failed attempts, grouped by what went wrong where."""

    async def look(client: Client) -> tuple[list[FailureGroup], datetime]:
        return await client.failures(type=type_, since=since, limit=limit), await now_of(client)

    groups, now = ask(look)
    if output.as_json():
        output.show_json({"failures": groups})
        return
    from tickwork.cli.screen import sparks

    rows = [(*_cells(group), sparks(group.hours, max(*group.hours, 1)), *_seen(group, now)) for group in groups]
    output.show_table(FAILURE_COLUMNS, rows, "no failures")


def _cells(group: FailureGroup) -> Sequence[object]:
    return group.error, group.message, group.place, ", ".join(group.types), f"{group.total:,}", f"{group.dead:,}"


def _seen(group: FailureGroup, now: datetime) -> Sequence[str]:
    return output.age(group.last_seen, now), output.age(group.first_seen, now)
