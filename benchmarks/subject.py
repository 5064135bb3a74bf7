"""What is measured, and the little that a subject must offer to be measured.

A subject is a module with an object `subject`. It maps the scenarios it can play to functions that play one of them in
this process and answer with a `Sample`; what a library cannot do is left out of the mapping. `SUBJECTS` in `rounds.py`
lists the modules.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec import Struct

T = TypeVar("T")

PATIENCE = 120.0  # seconds without an end after which tasks count as lost
FILLER = "x" * 75  # with its keys and a number, about 100 bytes of JSON


class Scenario(Struct, frozen=True):
    title: str
    tasks: int  # in a round of the default run, for a subject of pace 1


SCENARIOS: dict[str, Scenario] = {
    "submit.one": Scenario("submit, one by one, each awaited", 5_000),
    "submit.100": Scenario("submit, 100 submitters at once", 10_000),
    "submit.bulk": Scenario("submit, in bulk", 10_000),
    "drain.10": Scenario("drain of a full queue, 10 at once", 10_000),
    "drain.100": Scenario("drain of a full queue, 100 at once", 10_000),
    "through.bulk": Scenario("end to end: submitted by the cheapest way, run, finished", 10_000),
    "through.live": Scenario("end to end: single submits while the worker runs", 10_000),
    "roundtrip": Scenario("round trip: submit, wait for the result, next", 1_000),
    "lateness": Scenario("lateness of delayed tasks, spread over a second", 200),
}
LATENCIES = ("roundtrip", "lateness")  # measured in time per task, not in tasks per time


class Sample(Struct, frozen=True):
    """One scenario of one round. Times are seconds; `cpu` is that of all threads of the process."""

    tasks: int
    wall: float
    cpu: float
    lost: int = 0
    duplicates: int = 0
    p50: float | None = None
    p99: float | None = None

    @property
    def rate(self) -> float:
        return self.tasks / self.wall

    @property
    def cpu_us(self) -> float:
        return self.cpu / self.tasks * 1e6


class Setting(Struct, frozen=True):
    """What a scenario is given: how many tasks, an empty folder for files, over how many seconds delayed tasks are
    spread, which event loop."""

    tasks: int
    folder: Path
    spread: float = 1.0
    uvloop: bool = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self.uvloop:
            return asyncio.run(work)
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work)


Play = Callable[[Setting], Sample]


class Subject(Protocol):
    @property
    def about(self) -> str:
        """Version and settings, for the report."""

    @property
    def pace(self) -> Mapping[str, float]:
        """The share of a scenario's tasks that it gets, so that a slow subject takes no longer than a fast one. The
        key `""` stands for every scenario that is not named."""

    @property
    def plays(self) -> Mapping[str, Play]: ...


class Runs:
    """Which tasks have run. Handlers call `ran`, from any thread: appending to a list is atomic."""

    def __init__(self, tasks: int, on_full: Callable[[], None] = lambda: None) -> None:
        self.tasks = tasks
        self._numbers: list[int] = []
        self._on_full = on_full

    def ran(self, number: int) -> None:
        self._numbers.append(number)
        if len(self._numbers) >= self.tasks:
            self._on_full()

    @property
    def lost(self) -> int:
        return self.tasks - len(set(self._numbers))

    @property
    def duplicates(self) -> int:
        return sum(times - 1 for times in Counter(self._numbers).values())


class Stopwatch:
    """Runs from its making until `stop`."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._stopped = (0.0, 0.0)

    def stop(self) -> None:
        self._stopped = (time.perf_counter() - self._wall, time.process_time() - self._cpu)

    def sample(self, tasks: int, runs: Runs | None = None, seconds: list[float] | None = None) -> Sample:
        """Taken when all has calmed down, so that a second run of a task that comes late is counted too."""
        wall, cpu = self._stopped
        lost, duplicates = (runs.lost, runs.duplicates) if runs is not None else (0, 0)
        p50, p99 = (percentile(seconds, 50), percentile(seconds, 99)) if seconds else (None, None)
        return Sample(tasks, wall, cpu, lost, duplicates, p50, p99)


def percentile(values: list[float], percent: float) -> float:
    """The nearest rank: a value that was measured, never one in between."""
    ordered = sorted(values)
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def due_times(tasks: int, spread: float) -> list[float]:
    """Whole milliseconds, evenly spread, with time to submit them all first."""
    start = time.time() + 0.1 + 0.4 * spread
    return [round(start + number * spread / tasks, 3) for number in range(tasks)]
