"""The stores of random histories, each with the faults that can be done to it.

Every fault answers when it is over, and tells of the time in which the store could not be used by some process. One
that is to hit a server while another fault of the servers goes on is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import hiredis

from tests.faults.random_plan import SLOTS
from tests.support.redis import Cluster, Proxy, RedisServer, SentinelGroup

Tell = Callable[..., None]  # of a fault: its kind, and from when till when
PROCESS_FAULTS = ("kill", "stop", "end", "kill_leader", "stop_leader")
SERVER_FAULTS = ("server_kill", "server_stop", "cut_clients", "flush_scripts")
FILE_FAULTS = ("hold_file",)
LINK_FAULTS = ("drop_links", "lose_replies", "black_hole")
AOF = {"appendonly": "yes", "appendfsync": "always"}
SETTLED = 1.0  # seconds in which everybody is connected again after a server is back


class Place(ABC):
    """Where a history takes place. `url` is for the one who submits and looks on, `url_of` for the worker of a slot."""

    faults: ClassVar[tuple[str, ...]] = PROCESS_FAULTS
    options: ClassVar[Mapping[str, Any]] = {}  # of every scheduler
    partitions: ClassVar[int] = 1
    forgets: ClassVar[bool] = False  # whether a failover may take back what was answered, unless it was a submit

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self._hit = asyncio.Lock()  # held while a fault of a server goes on

    @property
    @abstractmethod
    def url(self) -> str: ...

    def url_of(self, slot: int) -> str:
        return self.url

    def start(self) -> None:
        """Start what is needed; `stop` also ends what was started only half."""
        self.folder.mkdir(exist_ok=True)

    def stop(self) -> None:
        self._stack.close()

    async def heal(self) -> None:
        """Wait for the last fault of a server."""
        async with self._hit:
            return

    @abstractmethod
    def look(self) -> None:
        """Ask the store for anything, to see how long it takes. One that is away is no error here."""

    def spared(self, fault: str) -> bool:
        """Whether this fault has to be left out."""
        return fault in (*SERVER_FAULTS, *FILE_FAULTS) and self._hit.locked()


class SqlitePlace(Place):
    faults: ClassVar[tuple[str, ...]] = (*PROCESS_FAULTS, *FILE_FAULTS)

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'tick.db'}"

    def look(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._hold(0)

    async def hold_file(self, tell: Tell, seconds: float) -> None:
        """Another program writes for a long time."""
        async with self._hit:
            at = time.time()
            await asyncio.to_thread(self._hold, seconds)
            tell("hold_file", at=at, till=time.time() + SETTLED)

    def _hold(self, seconds: float) -> None:
        name = f"file:{self.folder / 'tick.db'}?mode=rw"
        database = sqlite3.connect(name, uri=True, timeout=10, isolation_level=None)
        try:
            database.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            database.execute("ROLLBACK")
        finally:
            database.close()


class Servers(Place):
    """Redis in any form. A server that was killed comes back with all that it had answered."""

    faults: ClassVar[tuple[str, ...]] = (*PROCESS_FAULTS, *SERVER_FAULTS)

    @abstractmethod
    def server(self, number: int) -> RedisServer:
        """The server that a fault is to hit."""

    @abstractmethod
    def all_servers(self) -> list[RedisServer]: ...

    def look(self) -> None:
        for server in self.all_servers():
            with contextlib.suppress(OSError, hiredis.HiredisError):
                server.command("PING")

    async def whole(self) -> None:
        """Wait until all servers work together again."""

    async def server_kill(self, tell: Tell, server: int, seconds: float) -> None:
        async with self._hit:
            victim, at = await asyncio.to_thread(self.server, server), time.time()
            await asyncio.to_thread(victim.kill)
            await self._while_down(victim, seconds)
            await asyncio.to_thread(victim.start)
            await self.whole()
            tell("server_kill", at=at, till=time.time() + SETTLED)

    async def _while_down(self, victim: RedisServer, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def server_stop(self, tell: Tell, server: int, seconds: float) -> None:
        async with self._hit:
            victim, at = await asyncio.to_thread(self.server, server), time.time()
            victim.pause()
            await asyncio.sleep(seconds)
            victim.resume()
            await self.whole()
            tell("server_stop", at=at, till=time.time() + SETTLED)

    async def cut_clients(self, tell: Tell, server: int) -> None:
        async with self._hit:
            victim = await asyncio.to_thread(self.server, server)
            for kind in ("normal", "pubsub"):
                await asyncio.to_thread(victim.command, "CLIENT", "KILL", "TYPE", kind)
            tell("cut_clients", at=time.time(), till=time.time())

    async def flush_scripts(self, tell: Tell, server: int) -> None:
        async with self._hit:
            victim = await asyncio.to_thread(self.server, server)
            await asyncio.to_thread(victim.command, "SCRIPT", "FLUSH")
            tell("flush_scripts", at=time.time(), till=time.time())


class RedisPlace(Servers):
    """One server. Each worker has a link of its own, which can be broken."""

    faults: ClassVar[tuple[str, ...]] = (*PROCESS_FAULTS, *SERVER_FAULTS, *LINK_FAULTS)

    def start(self) -> None:
        self._server = self._stack.enter_context(RedisServer(options=AOF))
        self._links = [self._stack.enter_context(Proxy(self._server.port)) for _ in range(SLOTS)]

    @property
    def url(self) -> str:
        return self._server.url

    def url_of(self, slot: int) -> str:
        return f"redis://{self._links[slot].host}:{self._links[slot].port}/0"

    def server(self, number: int) -> RedisServer:
        return self._server

    def all_servers(self) -> list[RedisServer]:
        return [self._server]

    async def drop_links(self, tell: Tell, slot: int) -> None:
        self._links[slot].drop_all()
        tell("drop_links", slot=slot, at=time.time(), till=time.time())

    async def lose_replies(self, tell: Tell, slot: int) -> None:
        at = time.time()
        self._links[slot].cut_replies(3)
        await asyncio.sleep(0.5)
        self._links[slot].heal()
        tell("lose_replies", slot=slot, at=at, till=time.time())

    async def black_hole(self, tell: Tell, slot: int, seconds: float) -> None:
        at = time.time()
        self._links[slot].black_hole()
        await asyncio.sleep(seconds)
        self._links[slot].heal()
        self._links[slot].drop_all()
        tell("black_hole", slot=slot, at=at, till=time.time() + SETTLED)


class PartitionedPlace(RedisPlace):
    partitions = 4
    options: ClassVar[Mapping[str, Any]] = {"partitions": 4}


class ClusterPlace(Servers):
    """Three masters without replicas: one that is away comes back by itself, and nothing fails over."""

    partitions = 6
    options: ClassVar[Mapping[str, Any]] = {"partitions": 6}

    def start(self) -> None:
        self._cluster = self._stack.enter_context(Cluster(masters=3, options=AOF))

    @property
    def url(self) -> str:
        return self._cluster.url

    def server(self, number: int) -> RedisServer:
        return self._cluster.masters[number % 3]

    def all_servers(self) -> list[RedisServer]:
        return self._cluster.masters

    async def whole(self) -> None:
        await asyncio.to_thread(self._cluster.wait_up)


class SentinelPlace(Servers):
    """A master with two replicas. Submits are `replicated`; what else a failover takes back is done again."""

    options: ClassVar[Mapping[str, Any]] = {"durability": "replicated"}
    forgets = True

    def start(self) -> None:
        self._group = self._stack.enter_context(SentinelGroup(replicas=2, options=AOF))

    @property
    def url(self) -> str:
        return self._group.url

    def server(self, number: int) -> RedisServer:
        return self._group.master()

    def all_servers(self) -> list[RedisServer]:
        return self._group.servers

    async def _while_down(self, victim: RedisServer, seconds: float) -> None:
        while await asyncio.to_thread(self._group.master) is victim:
            await asyncio.sleep(0.05)
        await asyncio.sleep(seconds)

    async def whole(self) -> None:
        deadline = time.monotonic() + 40
        while not await asyncio.to_thread(self._is_whole):
            assert time.monotonic() < deadline, "the replicas do not follow the master again"
            await asyncio.sleep(0.1)

    def _is_whole(self) -> bool:
        found = self._group.master().info("replication")
        return found["role"] == "master" and found["connected_slaves"] == "2"


KINDS: dict[str, type[Place]] = {
    "sqlite": SqlitePlace,
    "redis": RedisPlace,
    "partitions": PartitionedPlace,
    "cluster": ClusterPlace,
    "sentinel": SentinelPlace,
}
