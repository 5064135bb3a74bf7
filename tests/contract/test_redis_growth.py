"""What a call costs on Redis must not grow with what it does not touch: commands that it runs, never times."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.support.redis_store import ClockedRedisStore, restricted_redis, shared_server
from tickwork.clock import ManualClock
from tickwork.store.redis.claims import claim_args
from tickwork.testing.contract.bench import START, Bench

UNCOUNTED = ("config|resetstat", "config", "info")  # those of the test itself


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = ManualClock(START)
    store = ClockedRedisStore(clock, restricted_redis())
    await store.open()
    yield Bench(store, clock)
    assert await store.queries.audit() == []
    await store.close()


async def commands(call: Callable[[], Awaitable[Any]]) -> int:
    """How many commands it ran, those inside of scripts too."""
    shared_server().command("CONFIG", "RESETSTAT")
    await call()
    found = shared_server().info("commandstats")
    names = {name.removeprefix("cmdstat_"): value for name, value in found.items()}
    return sum(int(value.split(",")[0].split("=")[1]) for name, value in names.items() if name not in UNCOUNTED)


def names(word: str, count: int) -> tuple[str, ...]:
    return tuple(f"{word}{number}" for number in range(count))


@pytest.mark.parametrize("aside", [False, True], ids=["nothing aside", "one aside"])
async def test_a_claim_costs_the_same_however_many_queues_and_types_it_names(bench: Bench, aside: bool) -> None:
    if aside:
        await bench.submit("parked", queue="queue0", type="strange")
        assert await bench.claimed_ids(queues=("queue0",)) == []

    async def cost(queues: int, types: int) -> int:
        claim = bench.new_claim(10, queues=names("queue", queues), types=names("type", types))
        await bench.store.tasks.claim(bench.new_claim(10, queues=claim.queues))  # the one that forgets an empty lane
        return await commands(lambda: bench.store.tasks.claim(claim))

    few = await cost(20, 2)
    assert await cost(1000, 2) == few
    assert await cost(20, 1000) == few
    assert await cost(300, 1000) == few


async def test_a_claim_costs_the_same_however_many_queues_had_tasks(bench: Bench) -> None:
    queues = names("queue", 500)
    for queue in queues:
        await bench.submit(queue=queue)

    async def drain() -> None:
        while await bench.claim(100, queues=queues):
            pass

    async def claim() -> None:
        await bench.claim(100, queues=queues)

    assert await commands(drain) < 30 * len(queues)
    few = await commands(claim)
    await bench.submit(queue="queue7")
    await drain()
    assert await commands(claim) == few < 30


async def test_a_claim_is_sent_in_as_many_pieces_however_much_it_names(bench: Bench) -> None:
    few, many = (claim_args(bench.new_claim(10, queues=names("q", n), types=names("t", n))) for n in (1, 1000))
    assert len(few) == len(many)
