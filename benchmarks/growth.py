"""Does a task cost more when there are more of them? `python -m benchmarks.growth`.

Tickwork alone: by the number of tasks that are queued, by worker processes, and by partitions on a cluster of three
nodes. What counts is CPU a task: on few cores the rate cannot grow with the workers.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from benchmarks.charts import Bar, Chart, chart_lines, number, svg, write
from benchmarks.crew import Crew
from benchmarks.machine import facts
from benchmarks.report import Figure, cell
from benchmarks.scenarios import drain
from benchmarks.subjects import SUBJECTS

CONCURRENCY = 100
DEPTHS = (1_000, 100_000, 1_000_000)
WORKERS = (1, 2, 4)
PARTITIONS = (1, 4, 16)
NODES = 3
WINDOW = 10_000  # tasks of which the cost is taken
BREATH = 0.1  # seconds for what is still being finished
FILE = click.Path(path_type=Path, dir_okay=False)


class Point(Struct, frozen=True):
    """One size of one question, in one round. Of the costs, all but the rate are CPU in microseconds a task."""

    question: str
    size: int
    costs: dict[str, float]
    lost: int
    duplicates: int


class Line(Struct, frozen=True):
    """The same, with the medians of all rounds and their ranges."""

    question: str
    size: int
    costs: dict[str, Figure]
    lost: int
    duplicates: int


RATE, WORKER, REDIS, SUBMIT, SUBMIT_REDIS = "tasks/s", "worker", "Redis", "submit", "its Redis"
QUESTIONS = {
    "queued": "tasks queued when the worker takes from them",
    "workers": "worker processes",
    "partitions": f"partitions on a cluster of {NODES} nodes",
}


def make_crew(tasks: int, servers: int = 1, partitions: int = 1) -> Crew:
    return Crew(SUBJECTS["tickwork"], tasks, CONCURRENCY, servers=servers, partitions=partitions)


def fills(depth: int, window: int) -> list[tuple[int, int, int]]:
    """Queues to fill, as first and last task and how many of them run in the window: few small ones make a window."""
    return [(first, first + depth, min(depth, window)) for first in range(0, max(depth, window), depth)]


def by_depth(depth: int, tasks: int) -> Point:
    window = min(tasks, WINDOW)
    plan = fills(depth, window)
    totals: Counter[str] = Counter()
    with make_crew(plan[-1][1]) as crew, crew.workers():
        for first, last, timed in plan:
            _one_fill(crew, first, last, timed, totals)
        lost = 0 if depth > window else crew.tally.lost
        ran, submitted = totals["ran"] / 1e6, totals["submitted"] / 1e6
        costs = {
            RATE: totals["ran"] / totals["wall"],
            WORKER: totals[WORKER] / ran,
            REDIS: totals[REDIS] / ran,
            SUBMIT: totals[SUBMIT] / submitted,
            SUBMIT_REDIS: totals[SUBMIT_REDIS] / submitted,
        }
        return Point("queued", depth, costs, lost, crew.tally.duplicates)


def _one_fill(crew: Crew, first: int, last: int, timed: int, totals: Counter[str]) -> None:
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
    used: dict[str, float] = {
        "ran": crew.tally.ran_so_far - done,
        "wall": reached - before.at,
        WORKER: after.workers - before.workers,
        REDIS: after.redis - before.redis,
        "submitted": last - head,
        SUBMIT: answer["cpu"],
        SUBMIT_REDIS: before.redis - submitting.redis,
    }
    totals.update(used)
    crew.signal(signal.SIGCONT)


def by_workers(count: int, tasks: int) -> Point:
    with make_crew(tasks) as crew, crew.workers(count):
        return _drained("workers", count, crew)


def by_partitions(count: int, tasks: int) -> Point:
    with make_crew(tasks, NODES, count) as crew, crew.workers():
        return _drained("partitions", count, crew)


def _drained(question: str, size: int, crew: Crew) -> Point:
    sample = drain(crew)
    costs = {RATE: sample.rate, WORKER: sample.cpu_us, REDIS: sample.redis_us}
    return Point(question, size, costs, sample.lost, sample.duplicates)


PLAYS = {"queued": by_depth, "workers": by_workers, "partitions": by_partitions}


# --- the report


def summed(points: list[Point]) -> list[Line]:
    keys = dict.fromkeys((point.question, point.size) for point in points)
    return [_line([point for point in points if (point.question, point.size) == key]) for key in keys]


def _line(same: list[Point]) -> Line:
    costs = {name: Figure.of(point.costs[name] for point in same) for name in same[0].costs}
    lost, duplicates = sum(point.lost for point in same), sum(point.duplicates for point in same)
    return Line(same[0].question, same[0].size, costs, lost, duplicates)


def text(found: list[Line]) -> Iterator[str]:
    for question, title in QUESTIONS.items():
        here = [line for line in found if line.question == question]
        if not here:
            continue
        yield ""
        yield f"By {title}; CPU in us a task"
        heads = "".join(f"{name:>10}  {'range':<18}" for name in here[0].costs)
        yield f"  {question:>10}{heads}  lost  twice"
        for line in here:
            cells = "".join(cell(cost, 0 if name == RATE else 1) for name, cost in line.costs.items())
            yield f"  {line.size:>10,}{cells}{line.lost:>6}{line.duplicates:>7}"
    for chart in growth_charts(found):
        yield from chart_lines(chart)


def growth_charts(found: list[Line]) -> list[Chart]:
    made = []
    for question, title in QUESTIONS.items():
        here = [line for line in found if line.question == question]
        bars = [
            Bar(f"{line.size:,} {question}", (line.costs[WORKER].median, line.costs[REDIS].median)) for line in here
        ]
        made.append(Chart(f"CPU a task by {title}", "µs", ("worker", "Redis"), bars))
    return [chart for chart in made if chart.bars]


def draw(found: list[Line], rounds: int) -> str:
    machine = facts()
    notes = [
        f"{machine['date']}, {machine['python']}, Redis {machine['redis']}, {machine['system']}.",
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
            cost = f"{number(told.costs[WORKER])} us worker, {number(told.costs[REDIS])} us Redis a task"
            print(f"round {turn + 1}/{rounds}  {told.size:>9,} {told.question:<11}{cost}", flush=True)
    found = summed(sorted(points, key=lambda point: (list(QUESTIONS).index(point.question), point.size)))
    for line in text(found):
        print(line)
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    if svg_file is not None:
        write(svg_file, draw(found, rounds))
    sys.exit(1 if any(line.lost or line.duplicates for line in found) else 0)


if __name__ == "__main__":
    main()
