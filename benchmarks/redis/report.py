"""From rounds to figures, a table, a chart of bars, and where a peer is better than Tickwork."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from msgspec import Struct
from tests.support.redis import default_binary

from benchmarks.redis.charts import OURS, Bar, Chart, chart_lines, number
from benchmarks.redis.environments import ROOT
from benchmarks.redis.rounds import Plan, Round
from benchmarks.redis.scenarios import SCENARIOS, TITLES, Sample
from benchmarks.report import Figure, end_lines, head_lines


class Row(Struct, frozen=True):
    scenario: str
    subject: str
    tasks: int
    rate: Figure  # tasks a second of wall time
    cpu_us: Figure  # of the worker, or of the client where it submits, a task
    redis_us: Figure  # CPU of Redis a task
    p50_ms: Figure | None
    p99_ms: Figure | None
    queued_bytes: Figure | None
    finished_bytes: Figure | None
    rss_mb: Figure | None
    lost: int
    duplicates: int
    early: int = 0  # delayed tasks that did not wait for their time


class Win(Struct, frozen=True):
    """A figure in which a peer is better than Tickwork with default settings."""

    scenario: str
    figure: str
    peer: str
    theirs: float
    ours: float


class Report(Struct, frozen=True):
    machine: dict[str, str]
    plan: Plan
    subjects: dict[str, str]
    reference_ms: Figure  # CPU time of a fixed piece of Python
    core_share: Figure  # CPU time over wall time of it: below 1, others were using the machine
    rows: list[Row]
    wins: list[Win]
    problems: list[str]
    rounds: list[Round]


def make_report(plan: Plan, rounds: list[Round], load: str) -> Report:
    rows = list(_rows(plan, rounds))
    return Report(
        machine=machine_facts(load),
        plan=plan,
        subjects={done.subject: done.about for done in rounds if done.about},
        reference_ms=Figure.of([done.reference_cpu * 1e3 for done in rounds]),
        core_share=Figure.of([done.reference_cpu / done.reference_wall for done in rounds]),
        rows=rows,
        wins=list(wins(rows)),
        problems=list(dict.fromkeys(f"{done.subject}: {problem}" for done in rounds for problem in done.problems)),
        rounds=rounds,
    )


def machine_facts(load: str) -> dict[str, str]:
    said = subprocess.run([str(default_binary()), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"v=(\S+)", said)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "redis": f"{found.group(1) if found else 'unknown'}, loopback, no persistence",
        "commit": _commit(),
        "load before": load,
    }


def _commit() -> str:
    """Which Tickwork this is; with a plus where files were changed since."""
    asked = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _rows(plan: Plan, rounds: list[Round]) -> Iterator[Row]:
    for scenario in TITLES:
        for subject in plan.subjects:
            found = [r.samples[scenario] for r in rounds if r.subject == subject and scenario in r.samples]
            if found:
                yield _row(scenario, subject, found)


def _row(scenario: str, subject: str, found: list[Sample]) -> Row:
    def figure(value: Callable[[Sample], float | None], times: float = 1.0) -> Figure | None:
        known = [number * times for sample in found if (number := value(sample)) is not None]
        return Figure.of(known) if known else None

    return Row(
        scenario,
        subject,
        found[0].tasks,
        Figure.of([sample.rate for sample in found]),
        Figure.of([sample.cpu_us for sample in found]),
        Figure.of([sample.redis_us for sample in found]),
        figure(lambda sample: sample.p50, 1e3),
        figure(lambda sample: sample.p99, 1e3),
        figure(lambda sample: sample.queued_bytes),
        figure(lambda sample: sample.finished_bytes),
        figure(lambda sample: sample.rss, 1 / 2**20),
        sum(sample.lost for sample in found),
        sum(sample.duplicates for sample in found),
        sum(sample.early for sample in found),
    )


_MEASURES: dict[str, tuple[Callable[[Row], Figure | None], bool]] = {
    "tasks/s": (lambda row: None if row.p50_ms else row.rate, True),
    "CPU us": (lambda row: None if row.p50_ms else row.cpu_us, False),
    "Redis CPU us": (lambda row: None if row.p50_ms else row.redis_us, False),
    # Who starts tasks before their time has no lateness to compare.
    "p50 ms": (lambda row: None if row.early else row.p50_ms, False),
    "p99 ms": (lambda row: None if row.early else row.p99_ms, False),
    "bytes queued": (lambda row: row.queued_bytes if row.scenario == "drain.10" else None, False),
    "bytes finished": (lambda row: row.finished_bytes if row.scenario == "drain.10" else None, False),
    "idle MB": (lambda row: row.rss_mb if row.scenario == "drain.10" else None, False),
}


def wins(rows: list[Row]) -> Iterator[Win]:
    """Whoever beats us by the median, best first; told whether we like it or not."""
    for scenario in TITLES:
        here = [row for row in rows if row.scenario == scenario]
        our = next((row for row in here if row.subject == OURS), None)
        for name, (measure, more) in _MEASURES.items():
            ours = None if our is None else measure(our)
            if ours is None:
                continue
            others = [(row, theirs) for row in here if not row.subject.startswith(OURS) and (theirs := measure(row))]
            for row, theirs in sorted(others, key=lambda pair: pair[1].median, reverse=more):
                if theirs.median > ours.median if more else theirs.median < ours.median:
                    yield Win(scenario, name, row.subject, theirs.median, ours.median)


# --- for the terminal


def lines(report: Report) -> Iterator[str]:
    yield from head_lines(report, 16, "trust CPU time, not tasks/s")
    yield from _tables(report.rows)
    for chart in charts(report.rows):
        yield from chart_lines(chart)
    if OURS in report.subjects:
        yield from _win_lines(report.wins)
    yield from end_lines(report)


def _tables(rows: list[Row]) -> Iterator[str]:
    scenario = ""
    for row in rows:
        if row.scenario != scenario:
            scenario = row.scenario
            side = SCENARIOS[scenario.removesuffix(".start").removesuffix(".result")].side
            yield ""
            yield f"{scenario}: {TITLES[scenario]}"
            yield f"  {'':<16}{'tasks':>7}" + (_timed_head() if row.p50_ms else _rate_head(side, row))
        yield f"  {row.subject:<16}{row.tasks:>7,}" + (_timed_cells(row) if row.p50_ms else _rate_cells(row))


def _rate_head(side: str, row: Row) -> str:
    memory = f"{'B queued':>10}{'B ended':>9}{'idle MB':>9}" if row.rss_mb else ""
    head = f"{'tasks/s':>10}  {'range':<18}{side + ' us':>10}  {'range':<18}{'Redis us':>9}  {'range':<14}"
    return head + f"{memory}{'lost':>6}{'twice':>7}"


def _rate_cells(row: Row) -> str:
    memory = ""
    if row.rss_mb:
        queued, finished = (_cell(figure) for figure in (row.queued_bytes, row.finished_bytes))
        memory = f"{queued:>10}{finished:>9}{row.rss_mb.median:>9,.0f}"
    cells = (
        f"{row.rate.median:>10,.0f}  {_range(row.rate, 0):<18}{row.cpu_us.median:>10,.1f}  {_range(row.cpu_us, 1):<18}"
        f"{row.redis_us.median:>9,.1f}  {_range(row.redis_us, 1):<14}"
    )
    return cells + f"{memory}{row.lost:>6}{row.duplicates:>7}"


def _cell(figure: Figure | None) -> str:
    return "-" if figure is None else f"{figure.median:,.0f}"


def _timed_head() -> str:
    return f"{'p50 ms':>10}  {'range':<18}{'p99 ms':>10}  {'range':<18}{'lost':>6}{'twice':>7}{'early':>7}"


def _timed_cells(row: Row) -> str:
    if row.p50_ms is None or row.p99_ms is None:
        return ""
    p50, p99 = row.p50_ms, row.p99_ms
    cells = f"{p50.median:>10,.2f}  {_range(p50, 2):<18}{p99.median:>10,.2f}  {_range(p99, 2):<18}"
    return cells + f"{row.lost:>6}{row.duplicates:>7}{row.early:>7}"


def _range(figure: Figure, digits: int) -> str:
    return f"{figure.low:,.{digits}f} - {figure.high:,.{digits}f}"


def _win_lines(found: list[Win]) -> Iterator[str]:
    yield ""
    yield "Where a peer is better than tickwork:" if found else "No peer is better than tickwork in any figure."
    group = ("", "")
    for win in found:
        if (win.scenario, win.figure) != group:
            group = (win.scenario, win.figure)
            same = [other for other in found if (other.scenario, other.figure) == group]
            peers = ", ".join(f"{other.peer} {number(other.theirs)}" for other in same)
            yield f"  {win.scenario + ', ' + win.figure:<32} tickwork {number(win.ours)}: {peers}"


# --- what the charts show


def charts(rows: list[Row]) -> list[Chart]:
    """Costs, so that the shortest bar is the best everywhere. A chart without bars is left out."""
    made = [
        Chart(
            "CPU a task, drain of no-ops, 100 at once (*: 10 or fewer)", "µs", ("worker", "Redis"), _drain_bars(rows)
        ),
        Chart("CPU a submit, one by one, awaited", "µs", ("client", "Redis"), _cpu_bars(rows, "submit.one")),
        Chart("Idle: submit to result, p50, logarithmic", "ms", ("",), _p50_bars(rows, "latency.result"), log=True),
        Chart("Delayed tasks late by, p50, logarithmic", "ms", ("",), _p50_bars(rows, "lateness"), log=True),
    ]
    return [chart for chart in made if chart.bars]


def _drain_bars(rows: list[Row]) -> list[Bar]:
    best = {row.subject: row for row in rows if row.scenario == "drain.10"}
    best |= {row.subject: row for row in rows if row.scenario == "drain.100"}
    bars = [
        Bar(name + ("" if row.scenario == "drain.100" else " *"), (row.cpu_us.median, row.redis_us.median))
        for name, row in best.items()
    ]
    return sorted(bars, key=lambda bar: bar.value)


def _cpu_bars(rows: list[Row], scenario: str) -> list[Bar]:
    here = [row for row in rows if row.scenario == scenario]
    return sorted((Bar(r.subject, (r.cpu_us.median, r.redis_us.median)) for r in here), key=lambda bar: bar.value)


def _p50_bars(rows: list[Row], scenario: str) -> list[Bar]:
    here = [(row.subject, row.p50_ms) for row in rows if row.scenario == scenario and not row.early]
    return sorted((Bar(name, (p50.median,)) for name, p50 in here if p50), key=lambda bar: bar.value)
