"""The scenarios of Tickwork, the same for every store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tickwork
from benchmarks.subject import FILLER, PATIENCE, Play, Runs, Sample, Setting, Stopwatch, due_times

SUBMITTERS = 100


class Bench:
    """A scheduler with one no-op handler that says which tasks have run."""

    def __init__(self, store: str, setting: Setting, options: Mapping[str, Any]) -> None:
        self.app = tickwork.Scheduler(store, **options)
        self.tasks, self.spread = setting.tasks, setting.spread
        self.full = asyncio.Event()
        self.runs = Runs(self.tasks, self.full.set)
        runs = self.runs

        @self.app.task
        async def noop(number: int, filler: str) -> int:
            runs.ran(number)
            return number

        self.noop = noop

    async def submit_all(self) -> None:
        await self.noop.submit_many({"number": number, "filler": FILLER} for number in range(self.tasks))

    async def submit_by_many(self) -> None:
        numbers = iter(range(self.tasks))

        async def submitter() -> None:
            for number in numbers:
                await self.noop.submit(number, FILLER)

        await asyncio.gather(*(submitter() for _ in range(SUBMITTERS)))

    async def finished(self) -> None:
        """Until the store itself says that every task has succeeded, or patience is at its end."""
        deadline = time.monotonic() + PATIENCE
        try:
            await asyncio.wait_for(self.full.wait(), PATIENCE)
            while (await self.app.status()).tasks.get("success", 0) < self.tasks and time.monotonic() < deadline:
                await asyncio.sleep(0.001)
        except TimeoutError:
            return  # `runs` knows what was lost


class TickworkSubject:
    def __init__(
        self, about: str, store: Callable[[Path], str], pace: Mapping[str, float] | None = None, **options: Any
    ) -> None:
        self.about = f"Tickwork {tickwork.__version__}, {about}"
        self.pace = pace or {}
        self._store = store
        self._options = options
        self.plays: Mapping[str, Play] = {
            "submit.one": self._play(self._submit_one),
            "submit.100": self._play(self._submit_100),
            "submit.bulk": self._play(self._submit_bulk),
            "drain.10": self._play(self._drain, concurrency=10),
            "drain.100": self._play(self._drain, concurrency=100),
            "through.bulk": self._play(self._through_bulk),
            "through.live": self._play(self._through_live),
            "roundtrip": self._play(self._roundtrip),
            "lateness": self._play(self._lateness),
        }

    def _play(self, scenario: Callable[[Bench], Awaitable[Sample]], **options: Any) -> Play:
        def play(setting: Setting) -> Sample:
            async def main() -> Sample:
                bench = Bench(self._store(setting.folder), setting, {**self._options, **options})
                return await scenario(bench)

            return setting.run(main())

        return play

    async def _submit_one(self, bench: Bench) -> Sample:
        async with _opened(bench):
            watch = Stopwatch()
            for number in range(bench.tasks):
                await bench.noop.submit(number, FILLER)
            watch.stop()
        return watch.sample(bench.tasks)

    async def _submit_100(self, bench: Bench) -> Sample:
        async with _opened(bench):
            watch = Stopwatch()
            await bench.submit_by_many()
            watch.stop()
        return watch.sample(bench.tasks)

    async def _submit_bulk(self, bench: Bench) -> Sample:
        async with _opened(bench):
            watch = Stopwatch()
            await bench.submit_all()
            watch.stop()
        return watch.sample(bench.tasks)

    async def _drain(self, bench: Bench) -> Sample:
        async with _opened(bench):
            await bench.submit_all()
            watch = Stopwatch()
            await bench.app.start()
            await bench.finished()
            watch.stop()
        return watch.sample(bench.tasks, bench.runs)

    async def _through_bulk(self, bench: Bench) -> Sample:
        async with bench.app:
            watch = Stopwatch()
            await bench.submit_all()
            await bench.finished()
            watch.stop()
        return watch.sample(bench.tasks, bench.runs)

    async def _through_live(self, bench: Bench) -> Sample:
        async with bench.app:
            watch = Stopwatch()
            await bench.submit_by_many()
            await bench.finished()
            watch.stop()
        return watch.sample(bench.tasks, bench.runs)

    async def _roundtrip(self, bench: Bench) -> Sample:
        seconds: list[float] = []
        async with bench.app:
            watch = Stopwatch()
            for number in range(bench.tasks):
                start = time.perf_counter()
                handle = await bench.noop.submit(number, FILLER)
                if await handle.result(PATIENCE) != number:
                    raise AssertionError(f"task {number} came back with another's result")
                seconds.append(time.perf_counter() - start)
            watch.stop()
        return watch.sample(bench.tasks, bench.runs, seconds)

    async def _lateness(self, bench: Bench) -> Sample:
        due, late = due_times(bench.tasks, bench.spread), [0.0] * bench.tasks

        @bench.app.task
        async def timed(number: int) -> None:
            late[number] = time.time() - due[number]
            bench.runs.ran(number)

        async with bench.app:
            watch = Stopwatch()
            for number, at in enumerate(due):
                await timed.options(schedule_at=datetime.fromtimestamp(at, UTC)).submit(number)
            await bench.finished()
            watch.stop()
        return watch.sample(bench.tasks, bench.runs, late)


@asynccontextmanager
async def _opened(bench: Bench) -> AsyncIterator[None]:
    """A client that works on an open store: the first question opens it."""
    await bench.app.queue_stats()
    try:
        yield
    finally:
        await bench.app.shutdown()
