"""Tickwork on Redis with default settings; the variant `uvloop` runs worker and client on it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import tickwork
from benchmarks.redis.peers.common import FILLER, PATIENCE, AsyncPeer, nap, ran, run_async, setting


class Tickwork(AsyncPeer):
    about = f"Tickwork {tickwork.__version__}, Redis store, default settings"
    offers = AsyncPeer.offers | {"bulk"}

    def __init__(self) -> None:
        at_once, partitions = setting().concurrency, setting().partitions
        self.app = tickwork.Scheduler(setting().url, concurrency=at_once, partitions=partitions)
        self.about += ", uvloop" if setting().variant == "uvloop" else ""

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
