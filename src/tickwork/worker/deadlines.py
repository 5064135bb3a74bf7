"""One timer for the timeouts of all runs. Most runs end long before, and then have cost only an entry in a heap.

A run that has ended in time is not overdue because the event loop was held up and finds both at once.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable

from tickwork.timeouts import DueCall
from tickwork.worker.run import Run


class Deadlines:
    def __init__(self, on_overdue: Callable[[Run], None]) -> None:
        self._on_overdue = on_overdue
        self._heap: list[tuple[float, int, Run]] = []
        self._count = 0
        self._timer: DueCall | None = None

    def add(self, run: Run, deadline: float, running: int) -> None:
        self._count += 1
        heapq.heappush(self._heap, (deadline, self._count, run))
        if len(self._heap) > 2 * running + 100:
            self._heap = [entry for entry in self._heap if not entry[2].ended]
            heapq.heapify(self._heap)
        if self._heap and self._heap[0][2] is run:
            self._arm()

    def _arm(self) -> None:
        self.close()
        if self._heap:
            self._timer = DueCall(self._heap[0][0] - time.monotonic(), self._end_overdue)

    def _end_overdue(self) -> None:
        now = time.monotonic()
        while self._heap and (self._heap[0][2].ended or self._heap[0][0] <= now):
            self._on_overdue(heapq.heappop(self._heap)[2])
        self._arm()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
