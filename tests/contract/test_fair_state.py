"""What a store knows of the keys of fair queues is bounded by those that have tasks, and costs others nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.contract.test_redis_growth import ROOT, commands
from tests.support.redis_store import redis_bench, shared_server
from tickwork.model.policy import Policy
from tickwork.model.tasks import Status
from tickwork.store.memory import MemoryStore
from tickwork.store.sqlite import SqliteStore
from tickwork.testing.contract.bench import Bench

ONE = 1000


async def known(bench: Bench) -> int:
    """How many keys and lanes the store knows of."""
    store: Any = bench.store
    if isinstance(store, MemoryStore):
        return sum(lane.fair.known() for lane in store.tasks._homes.lanes.values() if lane.fair is not None)
    if isinstance(store, SqliteStore):
        count = "SELECT (SELECT count(*) FROM @fair_keys) + (SELECT count(*) FROM @fair_lanes)"
        found: int = await store.core.read.call(lambda: store.core.reader.one(count)[0])
        return found
    return sum(
        [
            await store.core.ask(part, "ZCARD", f"{part}{name}")
            for part in store.core.layout.parts
            for name in ("virtual", "turns:normal:default")
        ]
    )


async def submit_keys(bench: Bench, count: int, each: int = 1) -> list[str]:
    specs = [
        bench.spec(f"k{number}-{turn}", key=f"k{number}", fair=ONE) for turn in range(each) for number in range(count)
    ]
    for start in range(0, len(specs), 1000):
        await bench.store.tasks.submit(specs[start : start + 1000])
    return [spec.id for spec in specs]


async def test_keys_whose_tasks_were_taken_are_forgotten(bench: Bench) -> None:
    await submit_keys(bench, 1000, 2)
    assert await known(bench) >= 1000
    while await bench.claim(50):
        pass
    assert await known(bench) == 0


async def test_keys_are_forgotten_while_others_wait(bench: Bench) -> None:
    bench.together()
    await submit_keys(bench, 500)
    await bench.submit_many(1500, "a", key="a", fair=ONE)
    while len(await bench.claim(50)) == 50 and await bench.status("a600") is Status.READY:
        pass
    assert (await bench.store.queries.stats()).statuses[Status.READY] > 500
    assert await known(bench) < 10


async def test_keys_whose_tasks_were_cancelled_are_forgotten_in_steps(bench: Bench) -> None:
    bench.together()
    ids = await submit_keys(bench, 300)
    await bench.store.operators.cancel(ids, False)
    assert await known(bench) >= 300
    await bench.store.operators.prune(100)
    assert 200 <= await known(bench) <= 201
    for _ in range(4):
        await bench.store.operators.prune(100)
    assert await known(bench) == 0


# --- Redis


@pytest.fixture
async def on_redis(policy: Policy) -> Any:
    async with redis_bench(policy) as bench:
        yield bench


async def test_a_fair_queue_costs_the_same_however_many_keys_and_tasks_it_has(on_redis: Bench) -> None:
    async def cost(number: int) -> list[int]:
        one = on_redis.spec(f"one{number}", key=f"one{number}", fair=ONE)
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda: on_redis.store.tasks.submit([one]),
            lambda: on_redis.claim(1),
            lambda: on_redis.store.queries.situation(f"k9-{number}"),
        ]
        return [await commands(call) for call in calls]

    await submit_keys(on_redis, 10)
    few = await cost(1)
    await submit_keys(on_redis, 2000, 2)
    assert await cost(2) <= [number + 1 for number in few]  # more keys may be there to be forgotten


async def test_plain_tasks_pay_nothing_for_fair_queues_that_are_empty(on_redis: Bench) -> None:
    async def life(number: int) -> None:
        await on_redis.submit(f"plain{number}")
        assert len(await on_redis.claim(1)) == 1

    await life(0)
    before = await commands(lambda: life(1))
    await submit_keys(on_redis, 10)
    while await on_redis.claim(5):
        pass
    assert await commands(lambda: life(2)) == before


async def test_the_lane_of_a_fair_queue_that_was_lost_is_found(on_redis: Bench) -> None:
    ids = await submit_keys(on_redis, 2, 2)
    shared_server().command("DEL", f"{ROOT}fair:normal:default")
    wanted = sorted(f"task {task_id} is missing in fair:normal:default" for task_id in ids)
    assert sorted(await on_redis.store.queries.audit()) == wanted
    assert sorted(await on_redis.store.operators.mend()) == wanted
    assert await on_redis.store.queries.audit() == []
    assert sorted(await on_redis.claimed_ids()) == sorted(ids)


async def test_strange_entries_in_a_fair_lane_go(on_redis: Bench) -> None:
    await submit_keys(on_redis, 2)
    lane = f"{ROOT}fair:normal:default"
    shared_server().command("ZADD", lane, 1, "00000000001ghost", 2, "00000000999k1-0")
    assert sorted(await on_redis.store.operators.mend()) == [
        "task ghost is in fair:normal:default, but has no record",
        "task k1-0 is in fair:normal:default, where it does not belong",
    ]
    assert await on_redis.store.queries.audit() == []
    shared_server().command("ZADD", lane, 1, "00000000001ghost", 2, "00000000999k1-0")
    assert sorted(await on_redis.claimed_ids()) == ["k0-0", "k1-0"], "each is started once"
    assert await on_redis.store.queries.audit() == []


async def test_a_store_that_has_lost_its_virtual_time_goes_on(on_redis: Bench) -> None:
    await submit_keys(on_redis, 2, 5)
    assert len(await on_redis.claimed_ids(4)) == 4
    shared_server().command("DEL", f"{ROOT}virtual", f"{ROOT}turns:normal:default")
    await submit_keys(on_redis, 1, 6)
    assert len(await on_redis.claimed_ids()) == 7
    assert await known(on_redis) == 0
