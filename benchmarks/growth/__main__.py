"""`python -m benchmarks.growth`: from the options of the command line to the report."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import msgspec

from benchmarks.charts import number, write
from benchmarks.growth.points import Ask, Point, summed
from benchmarks.growth.questions import QUESTIONS, STORES
from benchmarks.growth.report import draw, text, verdicts
from benchmarks.machine import facts

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(QUESTIONS)), help="Only this question; may be repeated.")
@click.option("--store", multiple=True, type=click.Choice(STORES), help="Only on this store; may be repeated.")
@click.option(
    "--size",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.001, 1),
    help="Times the sizes, the tasks, and the seconds of what is measured by time: to see that all is well.",
)
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1), help="3 or more to quote.")
@click.option("--json", "json_file", type=FILE, help="Write all figures there.")
@click.option("--svg", "svg_file", type=FILE, help="Draw a chart there.")
def main(
    only: tuple[str, ...],
    store: tuple[str, ...],
    size: float,
    rounds: int,
    json_file: Path | None,
    svg_file: Path | None,
) -> None:
    """What things cost Tickwork as there are more of them, each question at three sizes."""
    if sys.platform != "linux":
        raise click.UsageError("the benchmarks read /proc, so they need Linux")
    steps = [
        (question, kind, grown)
        for question in QUESTIONS.values()
        for kind in STORES
        for grown in question.sizes_on(kind, size)
        if (not only or question.name in only) and (not store or kind in store)
    ]
    if not steps:
        raise click.UsageError(f"{', '.join(only)} is not asked on {', '.join(store)}")
    points: list[Point] = []
    for turn in range(rounds):
        for question, kind, grown in steps if turn % 2 == 0 else reversed(steps):
            began = time.monotonic()
            done = question.play(Ask(kind, grown, size))
            points.append(Point(question.name, kind, grown, done.costs, done.lost, done.duplicates))
            _tell(f"round {turn + 1}/{rounds}", points[-1], time.monotonic() - began)
    order = list(QUESTIONS)
    found = summed(sorted(points, key=lambda point: (order.index(point.question), STORES.index(point.store))))
    print(*text(found), sep="\n")
    if json_file is not None:
        said = {"machine": facts(), "lines": found, "verdicts": verdicts(found)}
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(said), indent=2) + b"\n")
    if svg_file is not None:
        write(svg_file, draw(found, rounds))
    sys.exit(1 if any(line.lost or line.duplicates for line in found) else 0)


def _tell(turn: str, point: Point, seconds: float) -> None:
    costs = ", ".join(f"{name} {number(cost)}" for name, cost in list(point.costs.items())[:4])
    print(f"{turn}  {point.question:<11}{point.store:<7}{point.size:>10,}  {costs}  ({seconds:.0f} s)", flush=True)


main()
