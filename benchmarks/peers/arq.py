"""arq. It has no bulk submit."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker

from benchmarks.peers.common import FILLER, PATIENCE, AsyncPeer, nap, ran, setting


async def noop(ctx: Any, number: int, filler: str) -> int:
    return ran(number)


async def napping(ctx: Any, number: int, filler: str) -> int:
    return await nap(number)


class Arq(AsyncPeer):
    about = (
        f"arq {version('arq')}, the worker looks every 0.5 s and takes 100 jobs or 5 a place, results polled as often "
        "and kept an hour (defaults)"
    )

    async def open(self) -> None:
        self.pool: Any = await create_pool(RedisSettings.from_dsn(setting().url))

    async def submit(self, number: int) -> Any:
        return await self.pool.enqueue_job("noop", number, FILLER)

    async def submit_nap(self, number: int) -> Any:
        return await self.pool.enqueue_job("napping", number, FILLER)

    async def submit_at(self, number: int, at: float) -> Any:
        return await self.pool.enqueue_job("noop", number, FILLER, _defer_until=datetime.fromtimestamp(at, UTC))

    async def result(self, handle: Any) -> int:
        value: int = await handle.result(timeout=PATIENCE)
        return value

    def work(self) -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        settings = RedisSettings.from_dsn(setting().url)
        worker: Any = Worker([noop, napping], redis_settings=settings, max_jobs=setting().concurrency)
        worker.run()


peer = Arq()
