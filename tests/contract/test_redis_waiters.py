"""What it costs Redis that somebody waits for results."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from tests.support.redis_store import ClockedRedisStore, restricted_redis, shared_server
from tickwork.clock import ManualClock
from tickwork.model.outcomes import Succeeded
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
