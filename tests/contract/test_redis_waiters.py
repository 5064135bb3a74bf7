"""What it costs Redis that somebody waits for results."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.redis_store import ClockedRedisStore, empty_redis, restricted_redis, shared_server
from tests.support.waiting import wait_until
from tickwork import Scheduler
from tickwork.client import results
from tickwork.clock import ManualClock
from tickwork.model.outcomes import Succeeded
from tickwork.store.redis import RedisStore
from tickwork.store.redis.net.listen import Listener
from tickwork.store.redis.net.target import parse
from tickwork.testing.contract.bench import START, Bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = ManualClock(START)
    store = ClockedRedisStore(clock, restricted_redis())
    await store.open()
    yield Bench(store, clock)
    assert await store.queries.audit() == []
    await store.close()


def commands() -> Counter[str]:
    """How often each command was run, also by scripts, but for what belongs to this look or keeps a link alive."""
    found = Counter[str]()
    for name, line in shared_server().info("commandstats").items():
        if (command := name.removeprefix("cmdstat_")) not in ("info", "ping", "auth", "client"):
            found[command] = int(line.partition("calls=")[2].partition(",")[0])
    return found


async def test_a_submit_that_sets_its_watch_costs_one_command_more(bench: Bench) -> None:
    with bench.store.hint("it") as hint, bench.store.hint("first") as first:
        await bench.listens(hint, first)
        await bench.store.tasks.submit([bench.spec("first")], None, first)
        before = commands()
        await bench.submit("plain")
        between = commands()
        await bench.store.tasks.submit([bench.spec("it")], None, hint)
        assert (commands() - between) - (between - before) == Counter({"hset": 1})
        for grant in await bench.claim(3):
            await bench.end(Succeeded(grant.lease, b"42"))
        assert await hint.wait(10)
        before = commands()
        record = await bench.store.queries.get("it", hint)
        assert record is not None
        assert record.result == b"42"
        assert commands() == before, "the result came with the message"


# --- many who wait


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks by himself."""
    monkeypatch.setattr(results, "until_look", lambda now, pause: 3600.0)


WAITERS = 500


@contextmanager
def waiting(store: RedisStore, count: int) -> Iterator[list[Any]]:
    """So many who wait for tasks `t0`, `t1`, ... that do not end."""
    app = Scheduler(store)
    waiters = [asyncio.ensure_future(app.handle(f"t{number}").result()) for number in range(count)]
    try:
        yield waiters
    finally:
        for waiter in waiters:
            waiter.cancel()


def settled(store: RedisStore) -> int:
    """How many have asked to be told, and wait for that."""
    found = (hint for hints in store.core.hints._waiting.values() for hint in hints)
    return sum(hint.announced and hint.idle for hint in found)


async def test_hundreds_of_idle_waiters_cost_few_commands(bench: Bench) -> None:
    store = bench.store
    assert isinstance(store, ClockedRedisStore)
    await bench.submit_many(WAITERS, delay=3_600_000)
    with store.hint("nobody") as hint, waiting(store, WAITERS):
        await bench.listens(hint)
        await wait_until(lambda: settled(store) == WAITERS)
        before, began = commands(), time.monotonic()
        async with asyncio.timeout(60):
            while (commands() - before)["mget"] < 2 * WAITERS / 100:  # all have looked twice
                await asyncio.sleep(0.2)
        ran, took = (commands() - before).total(), time.monotonic() - began
    assert ran <= 50 * took, f"{ran} commands in {took:.1f} s: {commands() - before}"


@pytest.mark.usefixtures("no_looks")
async def test_those_who_look_at_once_look_together(bench: Bench) -> None:
    store = bench.store
    assert isinstance(store, ClockedRedisStore)
    await bench.submit_many(WAITERS, delay=3_600_000)
    with store.hint("nobody") as hint, waiting(store, WAITERS):
        await bench.listens(hint)
        await wait_until(lambda: settled(store) == WAITERS)
        before = commands()
        store.core.hints.notify_all()
        await wait_until(lambda: (commands() - before)["hmget"] >= WAITERS / 100)
        assert commands() - before == Counter({"mget": WAITERS // 100, "hmget": WAITERS // 100})


# --- messages that are lost


@contextmanager
def deaf(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody is subscribed meanwhile."""
    may_listen, connect = asyncio.Event(), Listener._connect

    async def held(self: Listener, *args: Any) -> Any:
        await may_listen.wait()
        return await connect(self, *args)

    monkeypatch.setattr(Listener, "_connect", held)
    shared_server().command("CLIENT", "KILL", "TYPE", "pubsub")
    yield
    may_listen.set()


@pytest.mark.usefixtures("no_looks")
async def test_a_result_whose_message_was_lost_is_read_when_the_link_is_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = bench.store
    assert isinstance(store, ClockedRedisStore)
    await bench.submit_many(20)
    with store.hint("nobody") as hint, waiting(store, 20) as waiters:
        await bench.listens(hint)
        await wait_until(lambda: settled(store) == 20)
        with deaf(monkeypatch):
            for grant in await bench.claim(20):
                await bench.end(Succeeded(grant.lease, b"42"))
            assert not any(waiter.done() for waiter in waiters)
        assert await asyncio.wait_for(asyncio.gather(*waiters), 20) == [42] * 20


@pytest.mark.usefixtures("no_looks")
async def test_a_call_that_ends_before_this_process_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Scheduler(empty_redis())

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    with deaf(monkeypatch):
        calling = asyncio.ensure_future(double.options(id="it").call(21))
        worker = RedisStore(parse(shared_server().url), app.config.namespace)
        await worker.open()
        bench = Bench(worker, ManualClock(START))
        while not (grants := await bench.claim(1, types=("double",))):
            await asyncio.sleep(0.01)
        await bench.end(Succeeded(grants[0].lease, b"42"))
        assert not calling.done()
    assert await asyncio.wait_for(calling, 20) == 42
    await worker.close()
    await app.close()
