"""From rounds to figures: medians with their ranges, ratios to the peers, and which aims are met."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.rounds import Plan, Round
from benchmarks.subject import LATENCIES, SCENARIOS, Sample

RIVALS = (
    ("tickwork memory", "apscheduler memory"),
    ("tickwork sqlite", "huey sqlite"),
    ("tickwork sqlite", "huey sqlite nosync"),
    ("tickwork sqlite disk", "huey sqlite"),
)


class Figure(Struct, frozen=True):
    """The median of all rounds, and the range they span."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Figure:
        return cls(statistics.median(values), min(values), max(values))


class Row(Struct, frozen=True):
    scenario: str
    subject: str
    tasks: int
    rate: Figure  # tasks a second of wall time
    cpu_us: Figure  # CPU microseconds a task, all threads
    p50_ms: Figure | None
    p99_ms: Figure | None
    lost: int
    duplicates: int


class Ratio(Struct, frozen=True):
    """How many times better the subject is than its rival; below 1 the rival is better."""

    scenario: str
    subject: str
    rival: str
    speed: Figure  # by rate, or by median latency
    cpu: Figure


class Aim(Struct, frozen=True):
    text: str
    value: float
    met: bool
    note: str = ""


class Report(Struct, frozen=True):
    machine: dict[str, str]
    plan: Plan
    subjects: dict[str, str]
    reference_ms: Figure  # CPU time of a fixed piece of Python
    core_share: Figure  # CPU time over wall time of it: below 1, others were using the machine
    rows: list[Row]
    ratios: list[Ratio]
    aims: list[Aim]
    problems: list[str]
    rounds: list[Round]


def make_report(plan: Plan, rounds: list[Round], load: str) -> Report:
    measured = [r for r in rounds if r.reference_cpu]
    rows = list(_rows(plan, rounds))
    ratios = list(_ratios(plan, rounds))
    share = Figure.of([r.reference_cpu / r.reference_wall for r in measured] or [0.0])
    return Report(
        machine=_machine(plan, load),
        plan=plan,
        subjects={r.subject: r.about for r in rounds if r.about},
        reference_ms=Figure.of([r.reference_cpu * 1e3 for r in measured] or [0.0]),
        core_share=share,
        rows=rows,
        ratios=ratios,
        aims=list(_aims(rows, ratios, _is_shared(share))),
        problems=list(dict.fromkeys(f"{r.subject}: {r.problem}" for r in rounds if r.problem)),
        rounds=rounds,
    )


def _is_shared(share: Figure) -> bool:
    """Whether others were using the machine."""
    return share.median < 0.9


def _machine(plan: Plan, load: str) -> dict[str, str]:
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "sqlite": sqlite3.sqlite_version,
        "event loop": "uvloop" if plan.uvloop else "asyncio",
        "load before": load,
    }


def _samples(rounds: list[Round], subject: str, scenario: str) -> dict[int, Sample]:
    return {r.number: r.samples[scenario] for r in rounds if r.subject == subject and scenario in r.samples}


def _rows(plan: Plan, rounds: list[Round]) -> Iterator[Row]:
    for scenario in plan.scenarios:
        for subject in plan.subjects:
            found = list(_samples(rounds, subject, scenario).values())
            if found:
                yield Row(
                    scenario,
                    subject,
                    found[0].tasks,
                    Figure.of([sample.rate for sample in found]),
                    Figure.of([sample.cpu_us for sample in found]),
                    _millis([sample.p50 for sample in found]),
                    _millis([sample.p99 for sample in found]),
                    sum(sample.lost for sample in found),
                    sum(sample.duplicates for sample in found),
                )


def _millis(values: list[float | None]) -> Figure | None:
    known = [value * 1e3 for value in values if value is not None]
    return Figure.of(known) if known else None


def _ratios(plan: Plan, rounds: list[Round]) -> Iterator[Ratio]:
    for subject, rival in RIVALS:
        for scenario in plan.scenarios:
            ours, theirs = _samples(rounds, subject, scenario), _samples(rounds, rival, scenario)
            pairs = [(ours[number], theirs[number]) for number in ours if number in theirs]
            if pairs:
                yield Ratio(
                    scenario,
                    subject,
                    rival,
                    Figure.of([_speed(scenario, our) / _speed(scenario, their) for our, their in pairs]),
                    Figure.of([their.cpu_us / our.cpu_us for our, their in pairs]),
                )


def _speed(scenario: str, sample: Sample) -> float:
    if scenario not in LATENCIES:
        return sample.rate
    # A due time is a whole millisecond, so a lateness below half of one is as good as none.
    return 1 / max(sample.p50 or 0.0, 0.0005 if scenario == "lateness" else 1e-9)


def _aims(rows: list[Row], ratios: list[Ratio], shared: bool) -> Iterator[Aim]:
    def row(text: str, subject: str, scenario: str, value: Callable[[Row], float], met: Callable[[float], bool]) -> Aim:
        found = next((r for r in rows if r.subject == subject and r.scenario == scenario), None)
        figure = 0.0 if found is None else value(found)
        return Aim(text, figure, found is not None and met(figure))

    def ratio(text: str, subject: str, rival: str, scenario: str, least: float) -> Aim:
        found = [r for r in ratios if (r.subject, r.rival, r.scenario) == (subject, rival, scenario)]
        if not found:
            return Aim(text, 0.0, False)
        speed, cpu = found[0].speed.median, found[0].cpu.median
        # The worse of both, since waiting for a disk flatters the speed; on a busy machine speed is a lottery.
        figure = cpu if shared else min(speed, cpu)
        return Aim(text, figure, figure >= least, f"speed {_times(speed)}, CPU {_times(cpu)}")

    present = {r.subject for r in rows}
    ends = [(s, "bulk submits" if s == "through.bulk" else "single submits") for s in ("through.bulk", "through.live")]
    for scenario, how in ends:
        if not any(r.scenario == scenario for r in rows):
            continue
        if "tickwork memory" in present:
            text = f"memory, end to end, {how}: at most 40 us CPU a task"
            yield row(text, "tickwork memory", scenario, lambda r: r.cpu_us.median, lambda v: v <= 40)
        if "tickwork sqlite" in present:
            text = f"SQLite, end to end, {how}: at least 10,000 tasks/s"
            aim = row(text, "tickwork sqlite", scenario, lambda r: r.rate.median, lambda v: v >= 10_000)
            cpu = next((r.cpu_us.median for r in rows if (r.subject, r.scenario) == ("tickwork sqlite", scenario)), 0)
            yield replace(aim, note=f"a core of its own would allow {1e6 / cpu:,.0f}/s" if cpu else "")
        if {"tickwork memory", "apscheduler memory"} <= present:
            text = f"memory, end to end, {how}: at least 2 x APScheduler"
            yield ratio(text, "tickwork memory", "apscheduler memory", scenario, 2)
        for rival in ("huey sqlite", "huey sqlite nosync"):
            if {"tickwork sqlite", rival} <= present:
                text = f"SQLite, end to end, {how}: at least 5 x {rival}"
                yield ratio(text, "tickwork sqlite", rival, scenario, 5)
        if {"tickwork sqlite disk", "huey sqlite"} <= present:
            text = f"SQLite with an fsync each, end to end, {how}: at least 5 x huey sqlite"
            yield ratio(text, "tickwork sqlite disk", "huey sqlite", scenario, 5)


# --- for the terminal


class Counted(Protocol):
    """A row, as far as every report looks at it alike."""

    @property
    def lost(self) -> int: ...
    @property
    def duplicates(self) -> int: ...


class Measured(Protocol):
    """What the reports of all harnesses have in common."""

    @property
    def machine(self) -> dict[str, str]: ...
    @property
    def subjects(self) -> dict[str, str]: ...
    @property
    def reference_ms(self) -> Figure: ...
    @property
    def core_share(self) -> Figure: ...
    @property
    def rows(self) -> Sequence[Counted]: ...
    @property
    def problems(self) -> list[str]: ...


def head_lines(report: Measured, width: int, advice: str) -> Iterator[str]:
    """Where it was measured, and whom; `advice` for a machine that others use too."""
    yield ", ".join(f"{key} {value}" for key, value in report.machine.items())
    for name, about in report.subjects.items():
        yield f"  {name:<{width}}{about}"
    reference, share = report.reference_ms, report.core_share
    yield (
        f"Machine: the reference loop took {reference.median:.1f} ms of CPU ({reference.low:.1f} to "
        f"{reference.high:.1f}) and got {share.median:.0%} of a core ({share.low:.0%} to {share.high:.0%})."
    )
    if _is_shared(share):
        yield f"  Others use this machine: {advice}."


def end_lines(report: Measured) -> Iterator[str]:
    """What went wrong."""
    for problem in report.problems:
        yield f"PROBLEM  {problem}"
    wrong = sum(row.lost + row.duplicates for row in report.rows)
    yield ""
    yield f"{wrong} tasks were lost or ran twice." if wrong else "Every task ran exactly once."


def publish(report: Measured, text: Iterator[str], started: float, json_file: Path | None) -> bool:
    """Print it and write its figures; whether every task ran exactly once and nothing broke."""
    print()
    for line in text:
        print(line)
    print(f"{time.monotonic() - started:.0f} s in all.")
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    return not report.problems and not any(row.lost or row.duplicates for row in report.rows)


def lines(report: Report) -> Iterator[str]:
    yield from head_lines(report, 21, "trust CPU time and its ratios, not tasks/s")
    yield from _table(report.rows)
    yield from _ratio_lines(report.ratios)
    if report.aims:
        yield ""
        yield "Aims"
        for aim in report.aims:
            note = f" ({aim.note})" if aim.note else ""
            yield f"  {'met   ' if aim.met else 'MISSED'} {aim.value:>10,.1f}  {aim.text}{note}"
    yield from end_lines(report)


def _table(rows: list[Row]) -> Iterator[str]:
    scenario = ""
    for row in rows:
        if row.scenario != scenario:
            scenario = row.scenario
            yield ""
            yield f"{scenario}: {SCENARIOS[scenario].title}"
            late = f"{'p50 ms':>9}{'p99 ms':>9}" if row.p50_ms else ""
            yield f"  {'':<21}{'tasks':>7}{'tasks/s':>10}  {'range':<18}{'CPU us':>8}  {'range':<17}{late}  lost  twice"
        rate, cpu = row.rate, row.cpu_us
        late = f"{row.p50_ms.median:>9.2f}{row.p99_ms.median:>9.2f}" if row.p50_ms and row.p99_ms else ""
        rates, cpus = f"{rate.low:,.0f} - {rate.high:,.0f}", f"{cpu.low:,.1f} - {cpu.high:,.1f}"
        yield (
            f"  {row.subject:<21}{row.tasks:>7,}{rate.median:>10,.0f}  {rates:<18}{cpu.median:>8,.1f}  {cpus:<17}{late}"
            f"{row.lost:>6}{row.duplicates:>7}"
        )


def _ratio_lines(ratios: list[Ratio]) -> Iterator[str]:
    pair = ("", "")
    for ratio in ratios:
        if (ratio.subject, ratio.rival) != pair:
            pair = (ratio.subject, ratio.rival)
            yield ""
            yield f"{ratio.subject} against {ratio.rival}, times better (below 1 the peer is)"
            yield f"  {'':<14}{'speed':>9}  {'range':<20}{'CPU':>7}  range"
        speed, cpu = ratio.speed, ratio.cpu
        loser = "  <- the peer is better" if speed.median < 1 or cpu.median < 1 else ""
        yield (
            f"  {ratio.scenario:<14}{_times(speed.median):>9}  {_times(speed.low) + ' - ' + _times(speed.high):<20}"
            f"{_times(cpu.median):>7}  {_times(cpu.low)} - {_times(cpu.high)}{loser}"
        )


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
