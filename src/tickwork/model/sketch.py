"""A sketch of many durations, from which percentiles are read: small, and two of them can be added up.

Durations fall into classes whose borders grow by a constant factor, so that the middle of a class is within 1 % of all
that is in it. A sketch has a bounded number of classes; past it the lowest are joined, as the high percentiles are
those that people ask for. Adding sketches gives the same result in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat
from math import ceil, exp, log
from operator import mul

ACCURACY = 0.01  # of a percentile, relative to the true one
CLASSES_MAX = 512
_FEW = 8  # up to so many are added one by one
SHORTEST, LONGEST = 1e-4, 1e8  # seconds; what is shorter or longer counts as that

_LOG_GAMMA = log((1 + ACCURACY) / (1 - ACCURACY))
_PER_CLASS = 1 / _LOG_GAMMA
_MIDDLE = 2 / (1 + exp(_LOG_GAMMA))


_LOWEST, _HIGHEST = ceil(log(SHORTEST) * _PER_CLASS), ceil(log(LONGEST) * _PER_CLASS)


def class_of(seconds: float) -> int:
    """The number of the class that a duration falls into."""
    if SHORTEST < seconds < LONGEST:
        return ceil(log(seconds) * _PER_CLASS)
    return _LOWEST if seconds <= SHORTEST else _HIGHEST


class Sketch:
    """`classes`: how many durations are in which class."""

    __slots__ = ("classes",)

    def __init__(self) -> None:
        self.classes: dict[int, int] = {}

    @property
    def count(self) -> int:
        return sum(self.classes.values())

    def add(self, seconds: float, times: int = 1) -> None:
        number = class_of(seconds)
        self.classes[number] = self.classes.get(number, 0) + times

    def add_all(self, many: Sequence[float]) -> None:
        """The same for many durations, nearly all of it outside of Python."""
        if len(many) <= _FEW:
            for seconds in many:
                self.add(seconds)
            return
        short = [seconds for seconds in many if seconds <= SHORTEST]
        found = Counter({_LOWEST: len(short)} if short else {})
        if len(short) < len(many):
            between = [seconds for seconds in many if SHORTEST < seconds < LONGEST]
            found.update(map(ceil, map(mul, map(log, between), repeat(_PER_CLASS))))
            if len(short) + len(between) < len(many):
                found[_HIGHEST] += len(many) - len(short) - len(between)
        classes = self.classes
        for number, count in found.items():
            classes[number] = classes.get(number, 0) + count

    def merge(self, other: Sketch) -> None:
        classes = self.classes
        for number, count in other.classes.items():
            classes[number] = classes.get(number, 0) + count
        self._join_lowest()

    def _join_lowest(self) -> None:
        classes = self.classes
        excess = len(classes) - CLASSES_MAX
        if excess > 0:
            numbers = sorted(classes)
            classes[numbers[excess]] += sum(classes.pop(number) for number in numbers[:excess])

    def percentile(self, share: float) -> float | None:
        """Seconds that this share of all durations did not exceed, such as 0.95; None if there are none."""
        return self.percentiles((share,))[0] if self.classes else None

    def percentiles(self, shares: Sequence[float]) -> list[float]:
        """The same for several ascending shares, of a sketch that is not empty."""
        found: list[float] = []
        numbers, last = iter(sorted(self.classes)), self.count - 1
        number, passed = 0, 0
        for share in shares:
            while passed <= share * last:
                number = next(numbers)
                passed += self.classes[number]
            found.append(exp(number * _LOG_GAMMA) * _MIDDLE)
        return found

    def encode(self) -> list[int]:
        """Steps from one class to the next and how many are in it, by turns: small numbers, which pack well."""
        self._join_lowest()
        flat: list[int] = []
        before = 0
        for number in sorted(self.classes):
            flat.append(number - before)
            flat.append(self.classes[number])
            before = number
        return flat

    @classmethod
    def decode(cls, flat: Iterable[int]) -> Sketch:
        sketch, number = cls(), 0
        steps = iter(flat)
        for step, count in zip(steps, steps, strict=True):
            number += step
            sketch.classes[number] = count
        return sketch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self.encode() == other.encode()

    __hash__ = None  # type: ignore[assignment]
