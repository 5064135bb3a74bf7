"""ArdiQ: its worker loop and its Redis client are written in Rust."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from typing import Any

from ardiq import Ardiq as App

from benchmarks.peers.common import FILLER, PATIENCE, AsyncPeer, nap, ran, setting


async def noop(number: int, filler: str) -> int:
    return ran(number)


async def napping(number: int, filler: str) -> int:
    return await nap(number)


class Ardiq(AsyncPeer):
    about = (
        f"ArdiQ {version('ardiq')} (Rust core) on Python {sys.version_info[0]}.{sys.version_info[1]}, default settings"
    )
    offers = AsyncPeer.offers | {"bulk"}

    def __init__(self) -> None:
        self.app: Any = App(setting().url, concurrency=setting().concurrency)
        self.noop: Any = self.app.task()(noop)
        self.napping: Any = self.app.task()(napping)

    async def submit(self, number: int) -> Any:
        return await self.noop.enqueue(number, FILLER)

    async def submit_nap(self, number: int) -> Any:
        return await self.napping.enqueue(number, FILLER)

    async def submit_bulk(self, numbers: range) -> None:
        await self.app.enqueue_many([self.noop.prepare(number, FILLER) for number in numbers])

    async def submit_at(self, number: int, at: float) -> Any:
        return await self.noop.options(schedule_ms=round(at * 1000)).enqueue(number, FILLER)

    async def result(self, handle: Any) -> int:
        value: int = (await handle.result(timeout=PATIENCE)).value
        return value

    def work(self) -> None:
        asyncio.run(self.app.run())


peer = Ardiq()
