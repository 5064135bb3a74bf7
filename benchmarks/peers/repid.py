"""Repid 2 on Redis streams. It passes messages on: it keeps no results, has no bulk submit and no delay."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

from repid import RedisServer, Router
from repid import Repid as App

from benchmarks.peers.common import FILLER, AsyncPeer, nap, ran, setting


async def noop(number: int, filler: str) -> None:
    ran(number)


async def napping(number: int, filler: str) -> None:
    await nap(number)


class Repid(AsyncPeer):
    about = f"Repid {version('repid')}, RedisServer, no results, messages stay in the stream"
    offers = AsyncPeer.offers - {"delayed", "latency", "roundtrip"} | {"start"}

    def __init__(self) -> None:
        self.app: Any = App(title="bench", version="1")
        self.server: Any = RedisServer(setting().url)
        self.app.servers.register_server("default", self.server, is_default=True)
        router: Any = Router()
        for handler in (noop, napping):
            router.actor(handler)
        self.app.include_router(router)

    async def open(self) -> None:
        self.opened = self.app.servers.default.connection()  # kept: it closes when it is collected
        await self.opened.__aenter__()

    async def _send(self, topic: str, number: int) -> int:
        payload = {"number": number, "filler": FILLER}
        await self.app.send_message_json(channel="default", payload=payload, headers={"topic": topic})
        return number

    async def submit(self, number: int) -> int:
        return await self._send("noop", number)

    async def submit_nap(self, number: int) -> int:
        return await self._send("napping", number)

    def work(self) -> None:
        async def main() -> None:
            async with self.app.servers.default.connection():
                await self.app.run_worker(tasks_limit=setting().concurrency)

        asyncio.run(main())


peer = Repid()
