"""APScheduler 3 on its memory job store: `AsyncIOScheduler` and a coroutine, its cheapest way to run a no-op.

It keeps no results: for a round trip the handler itself tells whoever waits. It has no limit on how much runs at once,
so both drains are the same to it. By default it drops a job that starts more than a second late; here
`misfire_grace_time=None` lets every job run.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from benchmarks.peers.common import FILLER, AsyncPeer, ran, setting

BREATH = 100  # jobs added between two chances for the event loop to run some


told: dict[int, asyncio.Future[int]] = {}


async def noop(number: int, filler: str) -> int:
    ran(number)
    if number in told:
        told[number].set_result(number)
    return number


class APScheduler(AsyncPeer):
    about = (
        f"APScheduler {version('apscheduler')}, AsyncIOScheduler, memory job store, misfire_grace_time=None, no results"
    )
    offers = frozenset({"one", "drain.10", "drain.100", "start", "delayed", "roundtrip"})

    async def open(self) -> None:
        self.scheduler: Any = AsyncIOScheduler(timezone=UTC)
        self.scheduler.start(paused=True)  # before its start it only collects jobs; paused, it puts them into the store

    async def start(self) -> None:
        self.scheduler.resume()

    async def submit(self, number: int) -> int:
        if setting().scenario == "roundtrip":
            told[number] = asyncio.get_running_loop().create_future()
        self.scheduler.add_job(noop, args=(number, FILLER), misfire_grace_time=None)
        if number % BREATH == 0:
            await asyncio.sleep(0)
        return number

    async def result(self, handle: int) -> int:
        if setting().scenario != "roundtrip":
            return await super().result(handle)
        await told[handle]
        return handle

    async def submit_at(self, number: int, at: float) -> None:
        moment = datetime.fromtimestamp(at, UTC)
        self.scheduler.add_job(noop, "date", run_date=moment, args=(number, FILLER), misfire_grace_time=None)


peer = APScheduler()
