"""Taskiq on Redis streams, the broker that its documentation recommends. There is no bulk submit; delayed tasks need a
scheduler process beside the worker, so they are left out."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Any

from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

from benchmarks.peers.common import FILLER, PATIENCE, AsyncPeer, nap, ran, setting

broker: Any = RedisStreamBroker(setting().url).with_result_backend(RedisAsyncResultBackend(setting().url))


async def _noop(number: int, filler: str) -> int:
    return ran(number)


async def _napping(number: int, filler: str) -> int:
    return await nap(number)


noop: Any = broker.task("noop")(_noop)
napping: Any = broker.task("napping")(_napping)


class Taskiq(AsyncPeer):
    about = (
        f"Taskiq {version('taskiq')}, taskiq-redis {version('taskiq-redis')}, RedisStreamBroker, --workers 1, results "
        "kept for ever and polled every 0.2 s (defaults)"
    )
    offers = AsyncPeer.offers - {"delayed"}

    async def open(self) -> None:
        await broker.startup()

    async def submit(self, number: int) -> Any:
        return await noop.kiq(number, FILLER)

    async def submit_nap(self, number: int) -> Any:
        return await napping.kiq(number, FILLER)

    async def result(self, handle: Any) -> int:
        value: int = (await handle.wait_result(timeout=PATIENCE)).return_value
        return value

    def work(self) -> None:
        at_once = str(setting().concurrency)
        app = f"{__name__}:broker"
        options = ["--workers", "1", "--max-async-tasks", at_once, "--log-level", "WARNING"]
        os.execv(sys.executable, [sys.executable, "-m", "taskiq", "worker", app, *options])


peer = Taskiq()
