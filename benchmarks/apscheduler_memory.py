"""APScheduler 3 on its memory job store: `AsyncIOScheduler` and a coroutine, its cheapest way to run a no-op.

It keeps no results and has no limit on how much runs at once, so both drains are the same to it. By default it drops a
job that starts more than a second late; here `misfire_grace_time=None` lets every job run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import apscheduler
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from benchmarks.subject import FILLER, PATIENCE, Play, Runs, Sample, Setting, Stopwatch, due_times

BREATH = 100  # jobs added between two chances for the event loop to run some


class Bench:
    def __init__(self, setting: Setting) -> None:
        self.scheduler: Any = AsyncIOScheduler(timezone=UTC)
        self.tasks, self.spread = setting.tasks, setting.spread
        self.full = asyncio.Event()
        self.runs = Runs(self.tasks, self.full.set)

    async def noop(self, number: int, filler: str) -> int:
        self.runs.ran(number)
        return number

    def add(self, number: int) -> None:
        self.scheduler.add_job(self.noop, args=(number, FILLER), misfire_grace_time=None)

    async def finished(self) -> None:
        try:
            await asyncio.wait_for(self.full.wait(), PATIENCE)
        except TimeoutError:
            return  # `runs` knows what was lost


async def submit_one(bench: Bench) -> Sample:
    bench.scheduler.start(paused=True)  # before its start it only collects jobs; paused, it puts them into the store
    watch = Stopwatch()
    for number in range(bench.tasks):
        bench.add(number)
    watch.stop()
    return watch.sample(bench.tasks)


async def drain(bench: Bench) -> Sample:
    bench.scheduler.start(paused=True)
    for number in range(bench.tasks):
        bench.add(number)
    watch = Stopwatch()
    bench.scheduler.resume()
    await bench.finished()
    watch.stop()
    return watch.sample(bench.tasks, bench.runs)


async def through_bulk(bench: Bench) -> Sample:
    watch = Stopwatch()
    for number in range(bench.tasks):
        bench.add(number)
    bench.scheduler.start()
    await bench.finished()
    watch.stop()
    return watch.sample(bench.tasks, bench.runs)


async def through_live(bench: Bench) -> Sample:
    bench.scheduler.start()
    watch = Stopwatch()
    for number in range(bench.tasks):
        bench.add(number)
        if number % BREATH == 0:
            await asyncio.sleep(0)
    await bench.finished()
    watch.stop()
    return watch.sample(bench.tasks, bench.runs)


async def roundtrip(bench: Bench) -> Sample:
    """There is no result to wait for: the job itself tells."""
    loop, seconds = asyncio.get_running_loop(), []

    async def tell(number: int, filler: str, told: asyncio.Future[int]) -> None:
        bench.runs.ran(number)
        told.set_result(number)

    bench.scheduler.start()
    watch = Stopwatch()
    for number in range(bench.tasks):
        start, told = time.perf_counter(), loop.create_future()
        bench.scheduler.add_job(tell, args=(number, FILLER, told), misfire_grace_time=None)
        await asyncio.wait_for(told, PATIENCE)
        seconds.append(time.perf_counter() - start)
    watch.stop()
    return watch.sample(bench.tasks, bench.runs, seconds)


async def lateness(bench: Bench) -> Sample:
    due, late = due_times(bench.tasks, bench.spread), [0.0] * bench.tasks

    async def timed(number: int) -> None:
        late[number] = time.time() - due[number]
        bench.runs.ran(number)

    bench.scheduler.start()
    watch = Stopwatch()
    for number, at in enumerate(due):
        moment = datetime.fromtimestamp(at, UTC)
        bench.scheduler.add_job(timed, "date", run_date=moment, args=(number,), misfire_grace_time=None)
    await bench.finished()
    watch.stop()
    return watch.sample(bench.tasks, bench.runs, late)


def play(scenario: Callable[[Bench], Awaitable[Sample]]) -> Play:
    def play_it(setting: Setting) -> Sample:
        async def main() -> Sample:
            bench = Bench(setting)
            try:
                return await scenario(bench)
            finally:
                bench.scheduler.shutdown()
                await asyncio.sleep(0)

        return setting.run(main())

    return play_it


class APScheduler:
    about = (
        f"APScheduler {apscheduler.version}, AsyncIOScheduler, memory job store, misfire_grace_time=None, no results"
    )
    pace: Mapping[str, float] = {}
    plays: Mapping[str, Play] = {
        "submit.one": play(submit_one),
        "drain.10": play(drain),
        "drain.100": play(drain),
        "through.bulk": play(through_bulk),
        "through.live": play(through_live),
        "roundtrip": play(roundtrip),
        "lateness": play(lateness),
    }


subject = APScheduler()
