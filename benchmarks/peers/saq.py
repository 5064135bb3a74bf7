"""SAQ. `batch()` and `map()` enqueue one by one, so there is no bulk submit."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

import saq

from benchmarks.peers.common import FILLER, AsyncPeer, nap, ran, setting


async def noop(ctx: Any, *, number: int, filler: str) -> int:
    return ran(number)


async def napping(ctx: Any, *, number: int, filler: str) -> int:
    return await nap(number)


class Saq(AsyncPeer):
    about = f"SAQ {version('saq')}, results kept 10 minutes, delayed tasks looked for every second (defaults)"

    def __init__(self) -> None:
        self.queue: Any = saq.Queue.from_url(setting().url)

    async def open(self) -> None:
        await self.queue.connect()

    async def submit(self, number: int) -> Any:
        return await self.queue.enqueue("noop", number=number, filler=FILLER)

    async def submit_nap(self, number: int) -> Any:
        return await self.queue.enqueue("napping", number=number, filler=FILLER)

    async def submit_at(self, number: int, at: float) -> Any:
        return await self.queue.enqueue("noop", number=number, filler=FILLER, scheduled=at)

    async def result(self, handle: Any) -> int:
        """`refresh` misses a job that ends while it begins to listen, so it looks again after a second; `apply` would
        poll every half second."""
        while not handle.completed:
            try:
                await handle.refresh(until_complete=1.0)
            except TimeoutError:
                await handle.refresh()
        value: int = handle.result
        return value

    def work(self) -> None:
        worker: Any = saq.Worker(self.queue, functions=[noop, napping], concurrency=setting().concurrency)
        asyncio.run(worker.start())


peer = Saq()
