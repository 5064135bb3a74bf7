"""A server that takes over without the last moments of the one before it, as after a failover or a slow disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.redis import Proxy, RedisServer
from tests.support.waiting import wait_until
from tickwork import Scheduler

pytestmark = pytest.mark.timeout(60)


class Pair:
    """A master, and a replica that can be kept from hearing of what it does."""

    def __init__(self, master: RedisServer, replica: RedisServer, line: Proxy) -> None:
        self.master = master
        self.replica = replica
        self._line = line

    async def in_step(self) -> None:
        def same() -> bool:
            ours, theirs = self.master.info("replication"), self.replica.info("replication")
            return ours["master_repl_offset"] == theirs["slave_repl_offset"]

        await wait_until(same, what="the replica is in step")

    def part(self) -> None:
        """From now on the replica hears nothing."""
        self._line.black_hole()

    def fail_over(self) -> None:
        self.master.kill()
        self.replica.command("REPLICAOF", "NO", "ONE")


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    with RedisServer() as master, Proxy(master.port) as line:
        options = {"replicaof": f"{line.host} {line.port}", "repl-timeout": "60"}
        with RedisServer(options=options) as replica:
            up = "master_link_status"
            await wait_until(lambda: replica.info("replication").get(up) == "up", what="the replica follows")
            try:
                yield Pair(master, replica, line)
            finally:
                line.heal()


async def hold(app: Scheduler, times: int) -> list[int]:
    fences = []
    for _ in range(times):
        async with app.lock("ledger") as lock:
            fences.append(lock.fence)
    return fences


async def test_fences_of_locks_grow_over_a_failover_that_forgets_some() -> None:
    async with pair() as servers:
        old, new = Scheduler(servers.master.url), Scheduler(servers.replica.url)
        fences = await hold(old, 2)
        await servers.in_step()
        servers.part()
        fences += await hold(old, 5)
        await old.close()
        await asyncio.to_thread(servers.fail_over)
        fences += await hold(new, 3)
        await new.close()
    assert fences == sorted(set(fences)), "a fence was given twice, or one smaller than before"
