"""From rounds to figures, tables, charts of bars, and where a peer is better than Tickwork."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from benchmarks.charts import Bar, Chart, chart_lines, number, svg
from benchmarks.machine import facts
from benchmarks.rounds import Plan, Round
from benchmarks.scenarios import TITLES, Sample
from benchmarks.subjects import SUBJECTS


class Figure(Struct, frozen=True):
    """The median of all rounds, and the range they span."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Figure:
        known = list(values)
        return cls(statistics.median(known), min(known), max(known))


class Row(Struct, frozen=True):
    """One subject in one scenario; `figures` are those of `FIGURES` that there are."""

    scenario: str
    subject: str
    tasks: int
    figures: dict[str, Figure]
    lost: int
    duplicates: int
    early: int  # delayed tasks that did not wait for their time

    @property
    def cost(self) -> tuple[float, ...]:
        """CPU of worker or client, and of Redis where that is used."""
        return tuple(self.figures[name].median for name in (CPU, REDIS) if name in self.figures)


class Win(Struct, frozen=True):
    """A figure in which a peer is better than Tickwork with default settings on the same store."""

    scenario: str
    figure: str
    ours: str
    our_value: float
    peer: str
    value: float


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


MEMORY = QUEUED, ENDED, IDLE = "B queued", "B ended", "idle MB"
RATE, CPU, REDIS, P50, P99 = "tasks/s", "CPU us", "Redis us", "p50 ms", "p99 ms"
BYTES, IDLE_CPU, IDLE_REDIS = "MB/s", "CPU ms/s", "Redis ms/s"
MORE_IS_BETTER = (RATE, BYTES)
FIGURES: dict[str, tuple[Callable[[Sample], float | None], int]] = {
    RATE: (lambda sample: sample.rate if sample.is_of_tasks else None, 0),
    BYTES: (lambda sample: sample.rate * sample.payload / 1e6 if sample.payload else None, 0),
    CPU: (lambda sample: sample.cpu_us if sample.is_of_tasks else None, 1),
    REDIS: (lambda sample: sample.redis_us if sample.is_of_tasks and sample.redis_cpu else None, 1),
    IDLE_CPU: (lambda sample: sample.cpu / sample.wall * 1e3 if sample.is_idle else None, 2),
    IDLE_REDIS: (lambda sample: sample.redis_cpu / sample.wall * 1e3 if sample.is_idle else None, 2),
    P50: (lambda sample: None if sample.p50 is None else sample.p50 * 1e3, 2),
    P99: (lambda sample: None if sample.p99 is None else sample.p99 * 1e3, 2),
    QUEUED: (lambda sample: sample.queued_bytes, 0),
    ENDED: (lambda sample: sample.finished_bytes, 0),
    IDLE: (lambda sample: None if sample.rss is None else sample.rss / 2**20, 0),
}


def make_report(plan: Plan, rounds: list[Round], load: str) -> Report:
    rows = list(_rows(plan, rounds))
    return Report(
        machine=facts(load),
        plan=plan,
        subjects={done.subject: done.about for done in rounds if done.about},
        reference_ms=Figure.of(done.reference_cpu * 1e3 for done in rounds),
        core_share=Figure.of(done.reference_cpu / done.reference_wall for done in rounds),
        rows=rows,
        wins=list(wins(rows)),
        problems=list(dict.fromkeys(f"{done.subject}: {problem}" for done in rounds for problem in done.problems)),
        rounds=rounds,
    )


def _rows(plan: Plan, rounds: list[Round]) -> Iterator[Row]:
    for scenario in TITLES:
        for subject in plan.subjects:
            found = [r.samples[scenario] for r in rounds if r.subject == subject and scenario in r.samples]
            if found:
                yield _row(scenario, subject, found)


def _row(scenario: str, subject: str, found: list[Sample]) -> Row:
    figures = {}
    for name, (value, _) in FIGURES.items():
        known = [number for sample in found if (number := value(sample)) is not None]
        if known:
            figures[name] = Figure.of(known)
    totals = (sum(getattr(sample, name) for sample in found) for name in ("lost", "duplicates", "early"))
    return Row(scenario, subject, found[0].tasks, figures, *totals)


def ours_of(subject: str) -> str:
    """Tickwork with default settings, on the same store and in as many processes."""
    place = (SUBJECTS[subject].store, SUBJECTS[subject].together)
    return next(name for name, other in SUBJECTS.items() if (other.store, other.together) == place)


def wins(rows: list[Row]) -> Iterator[Win]:
    """Whoever beats us by the median, best first; told whether we like it or not."""
    known = {(row.scenario, row.subject): row for row in rows}
    found = []
    for row in rows:
        ours = known.get((row.scenario, ours_of(row.subject)))
        if ours is None or SUBJECTS[row.subject].module == "tickwork":
            continue
        for name in row.figures.keys() & ours.figures.keys():
            theirs, our = row.figures[name].median, ours.figures[name].median
            if name in (P50, P99) and row.early:
                continue  # who starts tasks before their time has no lateness to compare
            if theirs > our if name in MORE_IS_BETTER else theirs < our:
                found.append(Win(row.scenario, name, ours.subject, our, row.subject, theirs))
    places = {name: place for place, name in enumerate([*TITLES, *FIGURES, *SUBJECTS])}

    def best_first(win: Win) -> tuple[float, ...]:
        value = -win.value if win.figure in MORE_IS_BETTER else win.value
        return places[win.scenario], places[win.ours], places[win.figure], value

    yield from sorted(found, key=best_first)


# --- for the terminal


def lines(report: Report) -> Iterator[str]:
    yield from _head(report)
    yield from _tables(report.rows)
    for chart in charts(report.rows):
        yield from chart_lines(chart)
    yield from _win_lines(report)
    for problem in report.problems:
        yield f"PROBLEM  {problem}"
    wrong = sum(row.lost + row.duplicates for row in report.rows)
    yield ""
    yield f"{wrong} tasks were lost or ran twice." if wrong else "Every task ran exactly once."


def _head(report: Report) -> Iterator[str]:
    """Where it was measured, and whom."""
    yield ", ".join(f"{key} {value}" for key, value in report.machine.items())
    for name, about in report.subjects.items():
        yield f"  {name:<22}{about}"
    reference, share = report.reference_ms, report.core_share
    yield (
        f"Machine: the reference loop took {reference.median:.1f} ms of CPU ({reference.low:.1f} to "
        f"{reference.high:.1f}) and got {share.median:.0%} of a core ({share.low:.0%} to {share.high:.0%})."
    )
    if share.median < 0.9:
        yield "  Others use this machine: trust CPU time, not tasks/s."
    yield "CPU is that of the worker, or of the client where it submits; of both where they are one process."


def _tables(rows: list[Row]) -> Iterator[str]:
    for scenario in dict.fromkeys(row.scenario for row in rows):
        here = [row for row in rows if row.scenario == scenario]
        columns = [name for name in FIGURES if any(name in row.figures for row in here)]
        yield ""
        yield f"{scenario}: {TITLES[scenario]}"
        heads = "".join(f"{name:>10}" + f"  {'range':<18}" * (name not in MEMORY) for name in columns)
        yield f"  {'':<22}{'tasks':>7}{heads}  lost  twice  early"
        for row in here:
            cells = "".join(cell(row.figures.get(name), FIGURES[name][1], name not in MEMORY) for name in columns)
            yield f"  {row.subject:<22}{row.tasks:>7,}{cells}{row.lost:>6}{row.duplicates:>7}{row.early:>7}"


def cell(figure: Figure | None, digits: int, ranged: bool = True) -> str:
    """The median, and the range of all rounds."""
    middle = "-" if figure is None else f"{figure.median:,.{digits}f}"
    span = "" if figure is None else f"{figure.low:,.{digits}f} - {figure.high:,.{digits}f}"
    return f"{middle:>10}" + f"  {span:<18}" * ranged


def _win_lines(report: Report) -> Iterator[str]:
    ours = {ours_of(name) for name in report.subjects} & report.subjects.keys()
    if ours:
        yield ""
        yield "Where a peer is better than Tickwork:" if report.wins else "No peer is better than Tickwork anywhere."
    groups: dict[tuple[str, str, str, float], list[str]] = {}
    for win in report.wins:
        group = (win.scenario, win.figure, win.ours, win.our_value)
        groups.setdefault(group, []).append(f"{win.peer} {number(win.value)}")
    for (scenario, figure, name, value), peers in groups.items():
        yield f"  {scenario + ', ' + figure:<26} {name} {number(value)}: {', '.join(peers)}"


# --- what the charts show: the subjects that have a worker process


def charts(rows: list[Row]) -> list[Chart]:
    """Costs, so that the shortest bar is the best everywhere. A chart without bars is left out."""
    rows = [row for row in rows if not SUBJECTS[row.subject].together]
    drains = {row.subject: row for row in rows if row.scenario == "drain.10"}
    drains |= {row.subject: row for row in rows if row.scenario == "drain.100"}
    few = [Bar(name + " *" * (row.scenario == "drain.10"), row.cost) for name, row in drains.items()]
    submits = [Bar(row.subject, row.cost) for row in rows if row.scenario == "submit.one"]
    made = [
        Chart("CPU a task, drain of no-ops, 100 at once (*: 10 or fewer)", "µs", ("worker", "Redis"), few),
        Chart("CPU a submit, one by one, awaited", "µs", ("client", "Redis"), submits),
        Chart("Idle: submit to result, p50, logarithmic", "ms", ("",), _p50_bars(rows, "latency.result"), log=True),
        Chart("Delayed tasks late by, p50, logarithmic", "ms", ("",), _p50_bars(rows, "lateness"), log=True),
    ]
    for chart in made:
        chart.bars.sort(key=lambda bar: bar.value)
    return [chart for chart in made if chart.bars]


def _p50_bars(rows: list[Row], scenario: str) -> list[Bar]:
    return [Bar(r.subject, (r.figures[P50].median,)) for r in rows if r.scenario == scenario and not r.early]


def draw(report: Report) -> str:
    machine = report.machine
    apart = [about for name, about in report.subjects.items() if not SUBJECTS[name].together]
    named = list(dict.fromkeys(about.split(",")[0].split(" (")[0] for about in apart))
    half = (len(named) + 1) // 2
    notes = [
        f"{machine['date']}, {machine['python']}, Redis {machine['redis']}, {machine['system']}, medians of "
        f"{report.plan.rounds} interleaved rounds.",
        ", ".join(named[:half]) + ",",
        ", ".join(named[half:]) + ".",
        "Results are kept, except by Repid, which has none. A bar with » is cut off.",
    ]
    return svg(charts(report.rows), "Tickwork on Redis and its peers: shorter is better", notes)
