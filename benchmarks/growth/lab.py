"""A store of its own for one measurement, and what this process and the server use meanwhile."""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Unpack

from msgspec import Struct
from tests.support.redis import RedisServer

from benchmarks.crew import redis_cpu
from benchmarks.growth.points import Ask, Measured, Play
from benchmarks.peers.common import FILLER
from tickwork import Scheduler
from tickwork.config import Config
from tickwork.config.options import ConfigOptions, SchedulerOptions
from tickwork.ids import new_id, new_nonce
from tickwork.model.tasks import Spec
from tickwork.store.contract import SUBMIT_MAX, Store
from tickwork.store.opening import make_store

PAYLOAD = f'{{"number":1,"filler":"{FILLER}"}}'.encode()
QUEUE, TYPE = "default", "noop"
QUIET = logging.getLogger(__name__)  # that handlers were stopped, or dead letters dropped, is what was wanted
QUIET.setLevel(logging.ERROR)


class Counts(Struct, frozen=True):
    """What a server has been asked since its statistics were reset."""

    commands: int = 0  # those inside of scripts too
    scripts: int = 0


class Used(Struct):
    """Filled in at the end of the block that it belongs to; times in seconds."""

    wall: float = 0.0
    python: float = 0.0  # CPU of this process, all threads
    redis: float = 0.0
    commands: int = 0
    scripts: int = 0

    def costs(self, items: int) -> dict[str, float]:
        """CPU microseconds an item: `Redis us` only where there is a server."""
        found = {"worker us": self.python / items * 1e6}
        return found | {"Redis us": self.redis / items * 1e6} if self.redis else found


class Lab:
    """A Redis server without persistence, or a new SQLite file, and the stores and schedulers on it."""

    def __init__(self, ask: Ask, url: str, server: RedisServer | None) -> None:
        self.ask, self.url, self.server = ask, url, server

    @asynccontextmanager
    async def store(self, **options: Unpack[ConfigOptions]) -> AsyncIterator[Store]:
        options["logger"] = QUIET
        store = make_store(self.url, Config(**options))
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    def app(self, **options: Unpack[SchedulerOptions]) -> Scheduler:
        options["logger"] = QUIET
        return Scheduler(self.url, **options)

    @contextmanager
    def watch(self) -> Iterator[Used]:
        used = Used()
        if self.server is not None:
            self.server.command("CONFIG", "RESETSTAT")
        redis, python, wall = self._redis_cpu(), time.process_time(), time.perf_counter()
        yield used
        used.wall, used.python = time.perf_counter() - wall, time.process_time() - python
        used.redis = self._redis_cpu() - redis
        counts = self._counts()
        used.commands, used.scripts = counts.commands, counts.scripts

    def _redis_cpu(self) -> float:
        return 0.0 if self.server is None else redis_cpu(self.server)

    def _counts(self) -> Counts:
        return Counts() if self.server is None else counts_of(self.server)

    def bytes_kept(self) -> int:
        """By the server in all, or by the database and its log."""
        if self.server is not None:
            return int(self.server.info("memory")["used_memory"])
        return sum(path.stat().st_size for path in Path(self.url.removeprefix("sqlite:///")).parent.iterdir())


def counts_of(server: RedisServer) -> Counts:
    commands = scripts = 0
    for key, value in server.info("commandstats").items():
        found = re.match(r"calls=(\d+)", value)
        if found is None or key.startswith(("cmdstat_config", "cmdstat_info")):
            continue
        commands += int(found[1])
        scripts += int(found[1]) if key in ("cmdstat_evalsha", "cmdstat_eval") else 0
    return Counts(commands, scripts)


def in_lab(play: Callable[[Lab], Coroutine[Any, Any, Measured]]) -> Play:
    """A play that is given a lab, in an event loop of its own."""

    @functools.wraps(play)
    def in_own_lab(ask: Ask) -> Measured:
        if ask.store == "redis":
            with RedisServer() as server:
                return asyncio.run(play(Lab(ask, server.url, server)))
        with tempfile.TemporaryDirectory(prefix="tickwork-growth-") as folder:
            return asyncio.run(play(Lab(ask, f"sqlite:///{folder}/tasks.db", None)))

    return in_own_lab


def plain(count: int, queues: tuple[str, ...] = (QUEUE,), types: tuple[str, ...] = (TYPE,)) -> list[Spec]:
    """Tasks that are to run now, spread evenly over queues and types."""
    turns = zip(itertools.cycle(queues), itertools.cycle(types), range(count), strict=False)
    return [Spec(id=new_id(), type=kind, queue=queue, nonce=new_nonce(), payload=PAYLOAD) for queue, kind, _ in turns]


async def submit_all(store: Store, specs: list[Spec]) -> None:
    for first in range(0, len(specs), SUBMIT_MAX):
        receipts = await store.tasks.submit(specs[first : first + SUBMIT_MAX])
        refused = [receipt for receipt in receipts if receipt.verdict != "created"]
        if refused:
            raise RuntimeError(f"the store refused {len(refused)} tasks, the first of them with {refused[0]}")


async def at_once(calls: Iterator[Awaitable[object]], callers: int = 100) -> None:
    """All of them, `callers` at a time."""

    async def caller() -> None:
        for call in calls:
            await call

    await asyncio.gather(*(caller() for _ in range(callers)))
