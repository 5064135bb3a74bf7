"""Whether a second exchange pays, on a clock and a store that the test makes."""

from __future__ import annotations

import random

import pytest

from tickwork.worker.pace import Pace


class Work:
    """Exchanges of ten tasks, on a store where one at a time and two at a time have their speeds."""

    def __init__(self, one: float, two: float, noise: float = 0.0) -> None:
        self.now = 0.0
        self.speeds = {False: one, True: two}
        self.noise = noise
        self.random = random.Random(7)
        self.pace = Pace(lambda: self.now)
        self.spent = {False: 0.0, True: 0.0}

    def run(self, seconds: float) -> float:
        """The share of the time with two exchanges."""
        self.spent = {False: 0.0, True: 0.0}
        end = self.now + seconds
        while self.now < end:
            self.exchange()
        return self.spent[True] / sum(self.spent.values())

    def exchange(self) -> None:
        size, two = (5, True) if self.pace.two else (10, False)
        took = size / self.speeds[two] * self.random.uniform(1 - self.noise, 1 + self.noise)
        self.now += took
        self.spent[two] += took
        self.pace.exchanged(size)


@pytest.mark.parametrize(
    ("one", "two", "pays"),
    [
        (20_000, 30_000, True),
        (20_000, 20_000, False),  # as fast, at a higher price
        (20_000, 14_000, False),
        (2_000, 3_900, True),  # a network: each exchange takes 5 ms
    ],
)
def test_the_faster_one_is_used_nearly_all_the_time(one: float, two: float, pays: bool) -> None:
    share = Work(one, two, noise=0.3).run(60)
    assert share > 0.9 if pays else share < 0.1


def test_it_follows_when_the_other_one_becomes_faster() -> None:
    work = Work(20_000, 30_000)
    assert work.run(30) > 0.9
    work.speeds = {False: 20_000, True: 15_000}
    work.run(10)
    assert work.run(30) < 0.1


def test_what_is_ended_with_little_to_do_is_no_measure() -> None:
    work = Work(20_000, 30_000)
    for _ in range(1_000):
        work.exchange()
        work.pace.pause()
    assert not work.pace.two
    assert work.run(30) > 0.9
