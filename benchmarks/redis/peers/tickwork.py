"""Tickwork with default settings, on Redis; the variant `uvloop` runs worker and client on it, `sqlite` leaves Redis
alone and keeps everything in a file."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime

import tickwork
from benchmarks.redis.peers.common import FILLER, PATIENCE, AsyncPeer, nap, ran, run_async, setting


class Tickwork(AsyncPeer):
    offers = AsyncPeer.offers | {"bulk"}

    def __init__(self) -> None:
        at_once, partitions, variant = setting().concurrency, setting().partitions, setting().variant
        url = f"sqlite:///{os.path.dirname(setting().record)}/tasks.db" if variant == "sqlite" else setting().url
        self.app = tickwork.Scheduler(url, concurrency=at_once, partitions=partitions)
        store = "SQLite file" if variant == "sqlite" else "Redis store"
        self.about = f"Tickwork {tickwork.__version__}, {store}, default settings"
        self.about += ", uvloop" if variant == "uvloop" else ""

        @self.app.task
        async def noop(number: int, filler: str) -> int:
            return ran(number)

        @self.app.task
        async def napping(number: int, filler: str) -> int:
            return await nap(number)

        self.noop, self.napping = noop, napping

    async def open(self) -> None:
        await self.app.queue_stats()

    async def submit(self, number: int) -> tickwork.Handle[int]:
        return await self.noop.submit(number, FILLER)

    async def submit_nap(self, number: int) -> tickwork.Handle[int]:
        return await self.napping.submit(number, FILLER)

    async def submit_bulk(self, numbers: range) -> None:
        await self.noop.submit_many({"number": number, "filler": FILLER} for number in numbers)

    async def submit_at(self, number: int, at: float) -> tickwork.Handle[int]:
        return await self.noop.options(schedule_at=datetime.fromtimestamp(at, UTC)).submit(number, FILLER)

    async def result(self, handle: tickwork.Handle[int]) -> int:
        return await handle.result(PATIENCE)

    def work(self) -> None:
        async def main() -> None:
            async with self.app:
                await asyncio.Event().wait()

        run_async(main())


peer = Tickwork()
