"""Whether a second exchange beside the first one pays.

Two exchanges hide the way to the store and its work behind the handlers, but each carries half as many tasks, and every
call has a price of its own on both sides. Which counts for more depends on the network, on how many cores are free, and
on the handlers. So the worker tries both while it has more to do than it can: a few short windows each, taken by turns,
and then keeps to the one that ended more tasks a second, until it tries again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

WINDOW = 0.01  # seconds; a window also has EXCHANGES of them, where each takes long
EXCHANGES = 4
SETTLING = 3  # exchanges after a change that belong to neither
WARM_UP = 1  # windows before the first trial: a worker that has just begun is slower
TRIES = 5  # windows of each kind in a trial
KEEP = 250  # windows until the next trial: trials are 4 % of the time
GAIN = 1.25  # two exchanges must be so much faster, since a task costs about a fifth more with them


class Pace:
    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.two = False  # whether a second exchange may be used now
        self._clock = clock
        self._rates: dict[bool, list[float]] = {False: [], True: []}
        self._keep = WARM_UP  # windows before the next trial
        self._settling = 0
        self.pause()

    def pause(self) -> None:
        """There is less to do than the worker could: what it ends now says nothing about its speed."""
        self._since: float | None = None
        self._exchanges = self._ended = 0

    def exchanged(self, ended: int) -> None:
        """An exchange is over, which has ended so many tasks."""
        if self._settling:
            self._settling -= 1
            return
        now = self._clock()
        if self._since is None:
            self._since = now
            return
        self._exchanges += 1
        self._ended += ended
        passed = now - self._since
        if passed >= WINDOW and self._exchanges >= EXCHANGES:
            self._window_over(self._ended / passed)

    def _window_over(self, rate: float) -> None:
        self.pause()
        if self._keep:
            self._keep -= 1
            return
        self._rates[self.two].append(rate)
        one, two = self._rates[False], self._rates[True]
        if len(one) == len(two) == TRIES:
            self._use(median(two) > GAIN * median(one))
            self._rates = {False: [], True: []}
            self._keep = KEEP
        else:
            self._use(len(two) < len(one))

    def _use(self, two: bool) -> None:
        if two != self.two:
            self.two = two
            self._settling = SETTLING
