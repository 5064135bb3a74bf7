"""What a question is, what is measured for one size of it, and when a cost counts as flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from benchmarks.report import Figure

GROWTH_ALLOWED = 1.5

RULE = (
    f"A cost is flat if at the largest size it is at most {GROWTH_ALLOWED:g} times the least of the smaller sizes, or "
    "at most what the question says is enough. Of each size the least of all rounds counts, since noise only adds."
)


class Ask(Struct, frozen=True):
    """One size of a question. `effort` is the share of the usual number of tasks, and of the usual time."""

    store: str
    size: int
    effort: float = 1.0

    def tasks(self, usual: int, fewest: int = 50) -> int:
        return max(round(usual * self.effort), fewest)

    def seconds(self, usual: float) -> float:
        return max(usual * self.effort, 0.3)


class Measured(Struct, frozen=True):
    """`costs` by the name of a column, which says the unit."""

    costs: dict[str, float]
    lost: int = 0
    duplicates: int = 0


class Judged(Struct, frozen=True):
    """A column that has to stay as it is while things grow; `enough` is a value that is fine however it got there, and
    `aim` the most that it should be at the largest size, flat or not."""

    column: str
    enough: float = 0.0
    aim: float | None = None


Play = Callable[[Ask], Measured]


class Question(Struct, frozen=True):
    name: str
    title: str
    play: Play
    sizes: Mapping[str, tuple[int, ...]]  # by store
    judged: tuple[Judged, ...]

    def sizes_on(self, store: str, share: float = 1.0) -> tuple[int, ...]:
        return tuple(dict.fromkeys(max(round(size * share), 1) for size in self.sizes.get(store, ())))


class Point(Struct, frozen=True):
    """One size of one question, in one round."""

    question: str
    store: str
    size: int
    costs: dict[str, float]
    lost: int = 0
    duplicates: int = 0


class Line(Struct, frozen=True):
    """The same, with the medians of all rounds and their ranges."""

    question: str
    store: str
    size: int
    costs: dict[str, Figure]
    lost: int
    duplicates: int


class Verdict(Struct, frozen=True):
    """How one judged column has grown: at the largest size, beside the least of all smaller ones."""

    question: str
    store: str
    column: str
    before: float
    largest: float
    enough: float
    aim: float | None = None

    @property
    def missed(self) -> bool:
        return self.aim is not None and self.largest > self.aim

    @property
    def times(self) -> float:
        return self.largest / self.before if self.before > 0 else float(self.largest > 0)

    @property
    def flat(self) -> bool:
        return self.largest <= max(self.before * GROWTH_ALLOWED, self.enough)


def summed(points: list[Point]) -> list[Line]:
    """In the order of their sizes within each question, whatever the order in which they were measured."""
    keys = dict.fromkeys((point.question, point.store) for point in points)
    lines = []
    for key in keys:
        here = [point for point in points if (point.question, point.store) == key]
        for size in sorted({point.size for point in here}):
            lines.append(_line([point for point in here if point.size == size]))
    return lines


def _line(same: list[Point]) -> Line:
    costs = {name: Figure.of(point.costs[name] for point in same) for name in same[0].costs}
    lost, duplicates = sum(point.lost for point in same), sum(point.duplicates for point in same)
    return Line(same[0].question, same[0].store, same[0].size, costs, lost, duplicates)


def judge(question: Question, store: str, lines: list[Line]) -> list[Verdict]:
    """Of the lines of one question on one store, by size."""
    verdicts = []
    for each in question.judged:
        if each.column in lines[0].costs:
            *before, last = (line.costs[each.column].low for line in lines)
            least = min(before, default=last)
            verdicts.append(Verdict(question.name, store, each.column, least, last, each.enough, each.aim))
    return verdicts
