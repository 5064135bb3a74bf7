"""Has Tickwork become slower? `python -m benchmarks.guard` answers with its exit code.

Every figure is a ratio to a reference (`references.py`) that is measured just before it in the same run. The least of
all rounds counts on both sides, since noise only adds. The bounds lie 1.6 times above what was measured when they were
set: they catch a cost that was added to every task, not a cache miss. `--suggest` prints new ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Literal

import click
from msgspec import Struct
from msgspec.structs import replace

from benchmarks import references
from benchmarks.crew import Crew
from benchmarks.references import Cost
from benchmarks.report import Figure
from benchmarks.scenarios import SCENARIOS, Sample
from benchmarks.subjects import SUBJECTS

ROOM = 1.6  # between what was measured and a bound

Side = Literal["python", "redis", "p50"]
SIDES: dict[Side, str] = {"python": "CPU", "redis": "Redis", "p50": "p50"}

REFERENCES: dict[str, Callable[[float], Cost]] = {
    "pipelines": references.pipelines,
    "large pipelines": references.large_pipelines,
    "awaited": references.awaited,
    "blocking": references.blocking,
    "in process": references.in_process,
    "commits": references.commits,
    "over Redis": references.over_redis,
    "over a pipe": references.over_pipe,
}


class Bound(Struct, frozen=True):
    """The most that a figure of a scenario may be, in items of its reference."""

    subject: str
    scenario: str
    reference: str
    side: Side
    most: float

    @property
    def play(self) -> str:
        """The scenario that is played for it; `latency.start` is a part of `latency`."""
        return self.scenario if self.scenario in SCENARIOS else self.scenario.rpartition(".")[0]


BOUNDS = (
    Bound("tickwork", "drain.10", "pipelines", "python", 7.3),
    Bound("tickwork", "drain.10", "pipelines", "redis", 16),
    Bound("tickwork", "drain.100", "pipelines", "python", 3),
    Bound("tickwork", "drain.100", "pipelines", "redis", 9),
    Bound("tickwork", "submit.one", "awaited", "python", 2.3),
    Bound("tickwork", "submit.one", "awaited", "redis", 3.2),
    Bound("tickwork", "submit.sync", "blocking", "python", 2.5),
    Bound("tickwork", "submit.sync", "blocking", "redis", 3),
    Bound("tickwork", "submit.100", "pipelines", "python", 2.8),
    Bound("tickwork", "submit.100", "pipelines", "redis", 3.5),
    Bound("tickwork", "submit.bulk", "pipelines", "python", 1.8),
    Bound("tickwork", "submit.bulk", "pipelines", "redis", 2.9),
    Bound("tickwork", "payload", "large pipelines", "python", 0.6),
    Bound("tickwork", "payload", "large pipelines", "redis", 1.8),
    Bound("tickwork", "latency.start", "over Redis", "p50", 7),
    Bound("tickwork", "latency.result", "over Redis", "p50", 12),
    Bound("tickwork", "lateness", "over Redis", "p50", 11),
    Bound("tickwork sqlite apart", "latency.start", "over a pipe", "p50", 55),
    Bound("tickwork sqlite apart", "latency.result", "over a pipe", "p50", 85),
    Bound("tickwork sqlite apart", "submit.one", "commits", "python", 11),
    Bound("tickwork memory", "roundtrip", "in process", "python", 16),
)


class Verdict(Struct, frozen=True):
    bound: Bound
    best: float  # the least of ours to the least of the reference
    median: float

    @property
    def good(self) -> bool:
        return self.best <= self.bound.most


Measured = dict[tuple[str, str], list[tuple[dict[str, Cost], dict[str, Cost]]]]


def measure(subject: str, name: str, size: float) -> dict[str, Cost]:
    """By the name of the scenario, with the part of it."""
    scenario = SCENARIOS[name]
    tasks = max(round(scenario.tasks * size), scenario.fewest)
    with Crew(SUBJECTS[subject], tasks, scenario.concurrency, scenario=name, filler=scenario.filler) as crew:
        samples = scenario.play(crew)
    for sample in samples.values():
        if sample.lost or sample.duplicates:
            raise RuntimeError(f"{name}: {sample.lost} tasks were lost, {sample.duplicates} ran twice")
    return {name + part: _cost(sample) for part, sample in samples.items()}


def _cost(sample: Sample) -> Cost:
    return Cost(sample.cpu_us, sample.redis_us, (sample.p50 or 0.0) * 1e3)


def measure_all(bounds: list[Bound], rounds: int, size: float) -> Measured:
    """A pair for each play and round: the references by name, and ours."""
    found: Measured = {(bound.subject, bound.play): [] for bound in bounds}
    for turn in range(rounds):
        for (subject, play), pairs in found.items():
            needed = {bound.reference for bound in bounds if (bound.subject, bound.play) == (subject, play)}
            pairs.append(({name: REFERENCES[name](size) for name in needed}, measure(subject, play, size)))
            print(f"round {turn + 1}/{rounds}  {subject}: {play}", file=sys.stderr, flush=True)
    return found


def judge(bound: Bound, costs: list[tuple[Cost, Cost]]) -> Verdict:
    """`costs` are the reference's and ours, a pair a round."""
    base = Figure.of(getattr(pair[0], bound.side) for pair in costs)
    ours = Figure.of(getattr(pair[1], bound.side) for pair in costs)
    return Verdict(bound, ours.low / base.low, ours.median / base.median)


def judge_all(bounds: list[Bound], found: Measured) -> Iterator[Verdict]:
    for bound in bounds:
        pairs = found[bound.subject, bound.play]
        yield judge(bound, [(base[bound.reference], ours[bound.scenario]) for base, ours in pairs])


def text(verdicts: list[Verdict]) -> Iterator[str]:
    yield f"{'':<6}{'':<38}{'':<7}{'best':>7}{'median':>8}{'bound':>7}   in items of"
    for verdict in verdicts:
        bound, word = verdict.bound, "ok" if verdict.good else "SLOW"
        figures = f"{verdict.best:>7.2f}{verdict.median:>8.2f}{bound.most:>7.2f}"
        yield f"{word:<6}{f'{bound.subject}, {bound.scenario}':<38}{SIDES[bound.side]:<7}{figures}   {bound.reference}"


def suggestions(verdicts: list[Verdict]) -> Iterator[str]:
    """The table of bounds as it would be set now, to replace that in this file."""
    yield "BOUNDS = ("
    for verdict in verdicts:
        bound = replace(verdict.bound, most=verdict.best * ROOM)
        named = ", ".join(f'"{name}"' for name in (bound.subject, bound.scenario, bound.reference, bound.side))
        yield f"    Bound({named}, {float(f'{bound.most:.2g}'):g}),"
    yield ")"


@click.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--size", default=1.0, show_default=True, type=click.FloatRange(0.01, 10), help="Times the tasks.")
@click.option("--only", multiple=True, help="Scenarios whose name starts so (drain, submit.one); may be repeated.")
@click.option("--suggest", is_flag=True, help="Print the bounds as they would be set by this run, too.")
def main(rounds: int, size: float, only: tuple[str, ...], suggest: bool) -> None:
    """Hold what a task costs against the same work without Tickwork, within one run."""
    bounds = [bound for bound in BOUNDS if not only or bound.scenario.startswith(only)]
    if not bounds:
        raise click.UsageError(f"nothing fits; known are {', '.join(dict.fromkeys(each.scenario for each in BOUNDS))}")
    verdicts = list(judge_all(bounds, measure_all(bounds, rounds, size)))
    print(*text(verdicts), *(suggestions(verdicts) if suggest else ()), sep="\n")
    sys.exit(0 if all(verdict.good for verdict in verdicts) else 1)


if __name__ == "__main__":
    main()
