"""Which partition a claim goes to.

The claims of a process go from one partition to the next, and at most `STAY` in a row to the same one. So every
partition with work gets the same share, and a task of high priority is passed over by at most `STAY` claims for each
other partition that has work.
"""

from __future__ import annotations

import random

STAY = 4  # a claim that goes to the partition of tasks which end in the same call costs no call of its own


class Rounds:
    def __init__(self, count: int) -> None:
        self._count = count
        self.place = random.randrange(count)  # noqa: S311  # many processes begin in different ones
        self._stayed = 0

    def order(self) -> list[int]:
        return [(self.place + step) % self._count for step in range(self._count)]

    def claimed(self, place: int, full: bool) -> None:
        """A claim has gone to a partition. `full`: it got all that it asked for, so there may be more."""
        if place != self.place:
            self.go_to(place)
        self._stayed += 1
        if not full or self._stayed >= STAY:
            self.go_to(place + 1)

    def go_to(self, place: int) -> None:
        self.place, self._stayed = place % self._count, 0
