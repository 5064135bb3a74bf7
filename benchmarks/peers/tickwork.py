"""Tickwork with default settings on any store. The variant `uvloop` runs worker and client on it, `disk` adds an fsync
to every commit of SQLite, as Huey does by default."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

import tickwork
from benchmarks.peers.common import FILLER, PATIENCE, AsyncPeer, nap, ran, run_async, setting

STORES = {"memory": "memory store", "sqlite": "SQLite file (WAL, synchronous=NORMAL)", "redis": "Redis store"}
VARIANTS = {"": "", "uvloop": ", uvloop", "disk": ', durability="disk"'}


class Tickwork(AsyncPeer):
    offers = AsyncPeer.offers | {"bulk", "sync"}

    def __init__(self) -> None:
        told = setting()
        self.app = tickwork.Scheduler(told.url, concurrency=told.concurrency, partitions=told.partitions)
        if told.variant == "disk":
            self.app = tickwork.Scheduler(told.url, concurrency=told.concurrency, durability="disk")
        store = STORES[re.split("[:+]", told.url)[0]]
        self.about = f"Tickwork {tickwork.__version__}, {store}, default settings{VARIANTS[told.variant]}"

        @self.app.task
        async def noop(number: int, filler: str) -> int:
            return ran(number)

        @self.app.task
        async def napping(number: int, filler: str) -> int:
            return await nap(number)

        self.noop, self.napping = noop, napping

    async def open(self) -> None:
        await self.app.queue_stats()

    async def start(self) -> None:
        await self.app.start()

    async def submit(self, number: int) -> tickwork.Handle[int]:
        return await self.noop.submit(number, FILLER)

    async def submit_nap(self, number: int) -> tickwork.Handle[int]:
        return await self.napping.submit(number, FILLER)

    async def submit_bulk(self, numbers: range) -> None:
        await self.noop.submit_many({"number": number, "filler": FILLER} for number in numbers)

    def submit_blocking(self, number: int) -> tickwork.SyncHandle[int]:
        return self.noop.sync.submit(number, FILLER)

    async def submit_at(self, number: int, at: float) -> tickwork.Handle[int]:
        return await self.noop.options(schedule_at=datetime.fromtimestamp(at, UTC)).submit(number, FILLER)

    async def call(self, number: int) -> int:
        return await self.noop.call(number, FILLER, timeout=PATIENCE)

    def work(self) -> None:
        async def main() -> None:
            async with self.app:
                await asyncio.Event().wait()

        run_async(main())


peer = Tickwork()
