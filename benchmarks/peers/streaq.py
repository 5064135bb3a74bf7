"""streaQ on asyncio."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from streaq import Worker

from benchmarks.peers.common import FILLER, PATIENCE, AsyncPeer, nap, ran, setting


async def _noop(number: int, filler: str) -> int:
    return ran(number)


async def _napping(number: int, filler: str) -> int:
    return await nap(number)


class Streaq(AsyncPeer):
    about = f"streaQ {version('streaq')}, results kept 5 minutes (default)"
    offers = AsyncPeer.offers | {"bulk"}

    def __init__(self) -> None:
        self.worker: Any = Worker(redis_url=setting().url, concurrency=setting().concurrency)
        self.noop: Any = self.worker.task(name="noop")(_noop)
        self.napping: Any = self.worker.task(name="napping")(_napping)

    async def open(self) -> None:
        await self.worker.__aenter__()

    async def submit(self, number: int) -> Any:
        return await self.noop.enqueue(number, FILLER)

    async def submit_nap(self, number: int) -> Any:
        return await self.napping.enqueue(number, FILLER)

    async def submit_bulk(self, numbers: range) -> None:
        await self.worker.enqueue_many([self.noop.enqueue(number, FILLER) for number in numbers])

    async def submit_at(self, number: int, at: float) -> Any:
        return await self.noop.enqueue(number, FILLER).start(schedule=datetime.fromtimestamp(at, UTC))

    async def result(self, handle: Any) -> int:
        value: int = (await handle.result(timeout=int(PATIENCE))).result
        return value

    def work(self) -> None:
        self.worker.run_sync()


peer = Streaq()
