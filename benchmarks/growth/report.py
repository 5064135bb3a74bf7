"""Growth as text, and as a chart."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.charts import Bar, Chart, number, svg
from benchmarks.growth.points import RULE, Line, Verdict, judge
from benchmarks.growth.questions import QUESTIONS
from benchmarks.machine import facts

CHARTED = ("queued", "workers", "partitions")


def parts(found: list[Line]) -> Iterator[tuple[str, str, list[Line]]]:
    """By question and store, in the order in which they were measured."""
    for name, store in dict.fromkeys((line.question, line.store) for line in found):
        yield name, store, [line for line in found if (line.question, line.store) == (name, store)]


def verdicts(found: list[Line]) -> list[Verdict]:
    return [verdict for name, store, here in parts(found) for verdict in judge(QUESTIONS[name], store, here)]


def text(found: list[Line]) -> Iterator[str]:
    for name, store, here in parts(found):
        yield ""
        yield f"{name} on {store}, by {QUESTIONS[name].title}"
        yield from _table(here)
        yield f"  {conclusion(judge(QUESTIONS[name], store, here))}"
    yield ""
    yield RULE


def _table(here: list[Line]) -> Iterator[str]:
    """A row a cost and a column a size: costs have long names, and there are three sizes."""
    yield f"  {'':<24}" + "".join(f"{line.size:>12,}  {'range':<22}" for line in here)
    for column in here[0].costs:
        cells = ""
        for line in here:
            figure = line.costs[column]
            span = f"{number(figure.low)} - {number(figure.high)}"
            cells += f"{number(figure.median):>12}  {span:<22}"
        yield f"  {column:<24}{cells}".rstrip()
    wrong = sum(line.lost + line.duplicates for line in here)
    if wrong:
        yield f"  {wrong} tasks were lost or ran twice"


def conclusion(judged: list[Verdict]) -> str:
    """One line: flat, or by how much each cost has grown that is not; and which of them are above their aim."""
    grown = [verdict for verdict in judged if not verdict.flat]
    said = "flat: " + ", ".join(_told(verdict) for verdict in judged)
    if grown:
        worst = max(verdict.times for verdict in grown)
        said = f"not flat: x {number(worst)} ({', '.join(_told(verdict) for verdict in grown)})"
    missed = [
        f"{verdict.column} {number(verdict.largest)}, aim {verdict.aim:g}" for verdict in judged if verdict.missed
    ]
    return f"{said}; above the aim: {', '.join(missed)}" if missed else said


def _told(verdict: Verdict) -> str:
    enough = f" (enough: {number(verdict.enough)})" if verdict.enough else ""
    return f"{verdict.column} {number(verdict.before)} -> {number(verdict.largest)}{enough}"


def growth_charts(found: list[Line]) -> list[Chart]:
    """Of the questions that were asked from the first; a chart of all would be a poster."""
    made = []
    for name, _, here in parts(found):
        if name in CHARTED:
            bars = [
                Bar(f"{line.size:,} {name}", (line.costs["worker us"].median, line.costs["Redis us"].median))
                for line in here
            ]
            made.append(Chart(f"CPU a task by {QUESTIONS[name].title}", "µs", ("worker", "Redis"), bars))
    return made


def draw(found: list[Line], rounds: int) -> str:
    machine = facts()
    notes = [
        f"{machine['date']}, {machine['python']}, Redis {machine['redis']}, {machine['system']}.",
        f"No-op tasks, 100 at once in each worker, medians of {rounds} rounds.",
    ]
    return svg(growth_charts(found), "What a task costs Tickwork on Redis as things grow", notes)
