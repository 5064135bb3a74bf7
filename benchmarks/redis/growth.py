"""Does a task cost more when there are more of them? `python -m benchmarks.redis.growth`.

Tickwork alone: by the number of tasks that are queued, by worker processes, and by partitions on a cluster of three
nodes. What counts is CPU a task: on few cores the rate cannot grow with the workers.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from benchmarks.redis.charts import Bar, Chart, chart_lines, number, svg
from benchmarks.redis.crew import Crew
from benchmarks.redis.environments import CACHE, command
from benchmarks.redis.report import machine_facts
from benchmarks.redis.scenarios import drain
from benchmarks.redis.subjects import SUBJECTS
from benchmarks.report import Figure

CONCURRENCY = 100
DEPTHS = (1_000, 100_000, 1_000_000)
WORKERS = (1, 2, 4)
PARTITIONS = (1, 4, 16)
NODES = 3
WINDOW = 10_000  # tasks of which the cost is taken
BREATH = 0.1  # seconds for what is still being finished
FILE = click.Path(path_type=Path, dir_okay=False)


class Point(Struct, frozen=True):
    """One size of one question, in one round; CPU in microseconds a task."""

    question: str
    size: int
    rate: float
    worker_us: float
    redis_us: float
    submit_us: float | None = None
    submit_redis_us: float | None = None
    lost: int = 0
    duplicates: int = 0


class Line(Struct, frozen=True):
    """The medians of all rounds, with their ranges."""

    question: str
    size: int
    rate: Figure
    worker_us: Figure
    redis_us: Figure
    submit_us: Figure | None
    submit_redis_us: Figure | None
    lost: int
    duplicates: int


QUESTIONS = {
    "queued": "tasks queued when the worker takes from them",
    "workers": "worker processes",
    "partitions": f"partitions on a cluster of {NODES} nodes",
}


def play(crew: Callable[[Path], Crew], measure: Callable[[Crew], Point]) -> Point:
    with tempfile.TemporaryDirectory(prefix="tickwork-bench-") as folder, crew(Path(folder)) as cast:
        return measure(cast)


def make_crew(tasks: int, servers: int = 1, partitions: int = 1) -> Callable[[Path], Crew]:
    subject = SUBJECTS["tickwork"]

    def make(folder: Path) -> Crew:
        return Crew(
            partial(command, subject, CACHE), folder, tasks, CONCURRENCY, servers=servers, partitions=partitions
        )

    return make


def fills(depth: int, window: int) -> list[tuple[int, int, int]]:
    """Queues to fill, as first and last task and how many of them run in the window: few small ones make a window."""
    return [(first, first + depth, min(depth, window)) for first in range(0, max(depth, window), depth)]


def by_depth(depth: int, tasks: int) -> Point:
    window = min(tasks, WINDOW)
    plan = fills(depth, window)

    def measure(crew: Crew) -> Point:
        totals = Totals()
        with crew.workers():
            for first, last, timed in plan:
                _one_fill(crew, first, last, timed, totals)
            lost = 0 if depth > window else crew.tally.lost
        return totals.point("queued", depth, lost, crew.tally.duplicates)

    return play(make_crew(plan[-1][1]), measure)


class Totals:
    """What the windows of one point add up to."""

    def __init__(self) -> None:
        self.ran = self.submitted = 0
        self.wall = self.worker = self.redis = self.client = self.client_redis = 0.0

    def point(self, question: str, size: int, lost: int, duplicates: int) -> Point:
        ran, submitted = self.ran / 1e6, self.submitted / 1e6
        return Point(
            question,
            size,
            self.ran / self.wall,
            self.worker / ran,
            self.redis / ran,
            self.client / submitted,
            self.client_redis / submitted,
            lost,
            duplicates,
        )


def _one_fill(crew: Crew, first: int, last: int, timed: int, totals: Totals) -> None:
    """Fill the queue, the last tasks by the clock; let it run until `timed` tasks have; stop it where it is."""
    crew.signal(signal.SIGSTOP)
    head = max(first, last - WINDOW)
    crew.client.ask("fill", first, head)
    submitting = crew.usage()
    answer = crew.client.ask("fill", head, last)
    before, done = crew.usage(), crew.tally.ran_so_far
    crew.signal(signal.SIGCONT)
    crew.wait(lambda: crew.tally.ran_so_far >= done + timed, f"{timed} tasks to run")
    reached = time.time()
    if timed == last - first:
        time.sleep(BREATH)
    crew.signal(signal.SIGSTOP)
    after = crew.usage()
    totals.ran += crew.tally.ran_so_far - done
    totals.wall += reached - before.at
    totals.worker += after.workers - before.workers
    totals.redis += after.redis - before.redis
    totals.submitted += last - head
    totals.client += answer["cpu"]
    totals.client_redis += before.redis - submitting.redis
    crew.signal(signal.SIGCONT)


def by_workers(count: int, tasks: int) -> Point:
    def measure(crew: Crew) -> Point:
        with crew.workers(count):
            return _drained("workers", count, crew)

    return play(make_crew(tasks), measure)


def by_partitions(count: int, tasks: int) -> Point:
    def measure(crew: Crew) -> Point:
        with crew.workers():
            return _drained("partitions", count, crew)

    return play(make_crew(tasks, NODES, count), measure)


def _drained(question: str, size: int, crew: Crew) -> Point:
    sample = drain(crew)
    return Point(
        question, size, sample.rate, sample.cpu_us, sample.redis_us, lost=sample.lost, duplicates=sample.duplicates
    )


PLAYS: dict[str, Callable[[int, int], Point]] = {
    "queued": by_depth,
    "workers": by_workers,
    "partitions": by_partitions,
}


# --- the report


def summed(points: list[Point]) -> list[Line]:
    keys = dict.fromkeys((point.question, point.size) for point in points)
    return [_line([point for point in points if (point.question, point.size) == key]) for key in keys]


def _line(same: list[Point]) -> Line:
    def figure(values: list[float | None]) -> Figure | None:
        known = [value for value in values if value is not None]
        return Figure.of(known) if known else None

    return Line(
        same[0].question,
        same[0].size,
        Figure.of([point.rate for point in same]),
        Figure.of([point.worker_us for point in same]),
        Figure.of([point.redis_us for point in same]),
        figure([point.submit_us for point in same]),
        figure([point.submit_redis_us for point in same]),
        sum(point.lost for point in same),
        sum(point.duplicates for point in same),
    )


def text(found: list[Line]) -> Iterator[str]:
    for question, title in QUESTIONS.items():
        here = [line for line in found if line.question == question]
        if not here:
            continue
        yield ""
        yield f"By {title}; CPU in us a task"
        submits = f"{'submit':>9}{'Redis':>9}" if here[0].submit_us else ""
        head = f"  {question:>10}{'tasks/s':>10}{'worker':>9}  {'range':<16}{'Redis':>7}  {'range':<16}"
        yield f"{head}{submits}  lost  twice"
        for line in here:
            yield _cells(line)
    for chart in growth_charts(found):
        yield from chart_lines(chart)


def _cells(line: Line) -> str:
    worker, redis = line.worker_us, line.redis_us
    submits = ""
    if line.submit_us and line.submit_redis_us:
        submits = f"{line.submit_us.median:>9.1f}{line.submit_redis_us.median:>9.1f}"
    ranges = f"{worker.low:.1f} - {worker.high:.1f}", f"{redis.low:.1f} - {redis.high:.1f}"
    return (
        f"  {line.size:>10,}{line.rate.median:>10,.0f}{worker.median:>9.1f}  {ranges[0]:<16}{redis.median:>7.1f}  "
        f"{ranges[1]:<16}{submits}{line.lost:>6}{line.duplicates:>7}"
    )


def growth_charts(found: list[Line]) -> list[Chart]:
    made = []
    for question, title in QUESTIONS.items():
        bars = [
            Bar(f"{line.size:,} {question}", (line.worker_us.median, line.redis_us.median))
            for line in found
            if line.question == question
        ]
        made.append(Chart(f"CPU a task by {title}", "µs", ("worker", "Redis"), bars))
    return [chart for chart in made if chart.bars]


def draw(found: list[Line], rounds: int) -> str:
    facts = machine_facts("")
    notes = [
        f"{facts['date']}, {facts['python']}, Redis {facts['redis']}, {facts['system']}.",
        f"No-op tasks, {CONCURRENCY} at once in each worker, medians of {rounds} rounds.",
    ]
    return svg(growth_charts(found), "What a task costs Tickwork on Redis as things grow", notes)


# --- the command


@click.command()
@click.option(
    "--depth",
    multiple=True,
    type=click.IntRange(min=100),
    help="Queue this many, instead of 1,000, 100,000 and 1,000,000.",
)
@click.option("--question", multiple=True, type=click.Choice(list(QUESTIONS)), help="Only this; may be repeated.")
@click.option("--tasks", default=20_000, show_default=True, type=click.IntRange(min=500), help="To drain, a point.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "json_file", type=FILE, help="Write all figures there.")
@click.option("--svg", "svg_file", type=FILE, help="Draw a chart there.")
def main(
    depth: tuple[int, ...],
    question: tuple[str, ...],
    tasks: int,
    rounds: int,
    json_file: Path | None,
    svg_file: Path | None,
) -> None:
    """Cost a task with 1,000 to 1,000,000 queued, with 1, 2 and 4 workers, with 1, 4 and 16 partitions on a cluster."""
    asked = question or tuple(QUESTIONS)
    sizes = {"queued": depth or DEPTHS, "workers": WORKERS, "partitions": PARTITIONS}
    steps = [partial(PLAYS[name], size, tasks) for name in QUESTIONS if name in asked for size in sizes[name]]
    points: list[Point] = []
    for turn in range(rounds):
        for step in steps if turn % 2 == 0 else reversed(steps):
            points.append(step())
            told = points[-1]
            cost = f"{number(told.worker_us)} us worker, {number(told.redis_us)} us Redis a task"
            print(f"round {turn + 1}/{rounds}  {told.size:>9,} {told.question:<11}{cost}", flush=True)
    found = summed(sorted(points, key=lambda point: (list(QUESTIONS).index(point.question), point.size)))
    for line in text(found):
        print(line)
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    if svg_file is not None:
        svg_file.parent.mkdir(parents=True, exist_ok=True)
        svg_file.write_text(draw(found, rounds), encoding="utf-8")
    sys.exit(1 if any(line.lost or line.duplicates for line in found) else 0)


if __name__ == "__main__":
    main()
