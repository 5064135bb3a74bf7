"""The scenarios of Huey on SQLite. Its consumer runs in this process with ten worker threads, as many as Tickwork runs
at once by default; its polling intervals are the default ones. Results are kept: the handler returns a number."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import huey

from benchmarks.subject import FILLER, PATIENCE, Play, Runs, Sample, Setting, Stopwatch, due_times

WORKERS = 10


class Bench:
    def __init__(self, setting: Setting, options: Mapping[str, Any]) -> None:
        self.huey: Any = huey.SqliteHuey("bench", filename=str(setting.folder / "huey.db"), **options)
        self.tasks, self.spread = setting.tasks, setting.spread
        self.full = threading.Event()
        self.runs = Runs(self.tasks, self.full.set)
        self.noop: Any = self.huey.task()(self._noop)

    def _noop(self, number: int, filler: str) -> int:
        self.runs.ran(number)
        return number

    def submit_all(self) -> None:
        for number in range(self.tasks):
            self.noop(number, FILLER)

    @contextmanager
    def consumer(self) -> Iterator[None]:
        consumer = self.huey.create_consumer(workers=WORKERS, periodic=False)
        consumer.start()
        try:
            yield
        finally:
            consumer.stop(graceful=True)

    def finished(self) -> None:
        """Until every result is in the file."""
        deadline = time.monotonic() + PATIENCE
        self.full.wait(PATIENCE)
        while self.huey.result_count() < self.tasks and time.monotonic() < deadline:
            time.sleep(0.001)


def submit_one(bench: Bench) -> Sample:
    watch = Stopwatch()
    bench.submit_all()
    watch.stop()
    return watch.sample(bench.tasks)


def drain(bench: Bench) -> Sample:
    bench.submit_all()
    watch = Stopwatch()
    with bench.consumer():
        bench.finished()
        watch.stop()
    return watch.sample(bench.tasks, bench.runs)


def through_bulk(bench: Bench) -> Sample:
    """Everything is submitted first: submitter and workers would only wait for each other's locks."""
    watch = Stopwatch()
    bench.submit_all()
    with bench.consumer():
        bench.finished()
        watch.stop()
    return watch.sample(bench.tasks, bench.runs)


def through_live(bench: Bench) -> Sample:
    with bench.consumer():
        watch = Stopwatch()
        bench.submit_all()
        bench.finished()
        watch.stop()
    return watch.sample(bench.tasks, bench.runs)


def roundtrip(bench: Bench) -> Sample:
    seconds: list[float] = []
    with bench.consumer():
        watch = Stopwatch()
        for number in range(bench.tasks):
            start = time.perf_counter()
            if bench.noop(number, FILLER).get(blocking=True, timeout=PATIENCE) != number:
                raise AssertionError(f"task {number} came back with another's result")
            seconds.append(time.perf_counter() - start)
        watch.stop()
    return watch.sample(bench.tasks, bench.runs, seconds)


def lateness(bench: Bench) -> Sample:
    due, late = due_times(bench.tasks, bench.spread), [0.0] * bench.tasks

    def timed(number: int) -> int:
        late[number] = time.time() - due[number]
        bench.runs.ran(number)
        return number

    task: Any = bench.huey.task()(timed)
    with bench.consumer():
        watch = Stopwatch()
        for number, at in enumerate(due):
            task.schedule(args=(number,), eta=datetime.fromtimestamp(at, UTC))
        bench.finished()
        watch.stop()
    return watch.sample(bench.tasks, bench.runs, late)


class HueySubject:
    def __init__(self, about: str, pace: Mapping[str, float], **options: Any) -> None:
        self.about = f"Huey {huey.__version__}, SqliteHuey, {about}, {WORKERS} worker threads, results kept"
        self.pace = pace
        self._options = options
        self.plays: Mapping[str, Play] = {
            "submit.one": self._play(submit_one),
            "drain.10": self._play(drain),
            "through.bulk": self._play(through_bulk),
            "through.live": self._play(through_live),
            "roundtrip": self._play(roundtrip),
            "lateness": self._play(lateness),
        }

    def _play(self, scenario: Callable[[Bench], Sample]) -> Play:
        return lambda setting: scenario(Bench(setting, self._options))
