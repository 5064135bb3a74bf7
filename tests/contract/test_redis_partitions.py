"""Several partitions of a Redis namespace: what the contract says of one task holds, order only inside a partition."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.redis_store import ClockedRedisStore, empty_redis, restricted_redis
from tickwork import ConfigError, Scheduler
from tickwork.clock import ManualClock
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.ids import partition_of
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Released, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Status
from tickwork.node import duties
from tickwork.store.contract import Edge, Receipt
from tickwork.testing.contract.bench import START, Bench

COUNT = 4


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = ManualClock(START)
    store = ClockedRedisStore(clock, restricted_redis(), Policy(), partitions=COUNT)
    await store.open()
    yield Bench(store, clock)
    assert await store.queries.audit() == [], "a test left the store unsound"
    await store.close()


def ids_in(place: int, count: int) -> list[str]:
    names = (f"n{number}" for number in range(10_000))
    return [name for name in names if partition_of(name, COUNT) == place][:count]


async def test_every_task_is_found_claimed_and_ended(bench: Bench) -> None:
    ids = await bench.submit_many(200)
    assert {partition_of(task_id, COUNT) for task_id in ids} == set(range(COUNT))
    assert sorted(await bench.walk(limit=30)) == sorted(ids)
    assert (await bench.store.queries.stats()).statuses[Status.READY] == 200
    taken = []
    claimed = (await bench.store.tasks.claim(bench.new_claim(50))).grants
    for _ in range(20):
        taken += [grant.spec.id for grant in claimed]
        finished = await bench.store.tasks.finish(
            [Succeeded(grant.lease, b"1") for grant in claimed], bench.new_claim(50)
        )
        assert {verdict.kind for verdict in finished.verdicts} == {"done"}
        assert finished.claimed is not None
        claimed = finished.claimed.grants
        if not claimed:
            break
    assert sorted(taken) == sorted(ids)
    assert (await bench.store.queries.stats()).statuses[Status.SUCCESS] == 200


async def test_order_and_bands_hold_inside_a_partition(bench: Bench) -> None:
    names = ids_in(2, 6)
    for name in names:
        await bench.submit(name, priority=10 if name in names[3:] else 1)
    assert await bench.claimed_ids(10) == names[3:] + names[:3]


async def test_a_dependency_over_partitions(bench: Bench) -> None:
    (up,), (down,), (last,) = ids_in(0, 1), ids_in(1, 1), ids_in(3, 1)
    specs = [bench.spec(up), bench.spec(down, depends_on=(up,)), bench.spec(last, depends_on=(up, down))]
    assert [receipt.verdict for receipt in await bench.store.tasks.submit(specs)] == ["created"] * 3
    for name in (up, down, last):
        (grant,) = await bench.claim(10)
        assert grant.spec.id == name
        assert await bench.end(Succeeded(grant.lease)) == "done"
        await bench.propagate()


async def test_a_failed_dependency_over_partitions_cancels(bench: Bench) -> None:
    (up,), (down,) = ids_in(0, 1), ids_in(1, 1)
    await bench.store.tasks.submit([bench.spec(up), bench.spec(down, depends_on=(up,))])
    (grant,) = await bench.claim(10)
    await bench.end(Aborted(grant.lease, "boom"))
    await bench.propagate()
    assert await bench.status(down) is Status.CANCELLED
    late = ids_in(2, 1)[0]
    assert (await bench.submit(late, depends_on=(up,))).verdict == "created"
    await bench.propagate()
    assert await bench.status(late) is Status.CANCELLED, "it had ended before"


async def test_a_dependency_that_is_not_there(bench: Bench) -> None:
    (up,), (down,) = ids_in(0, 1), ids_in(1, 1)
    receipt = await bench.submit(down, depends_on=(up,))
    assert (receipt.verdict, receipt.other) == ("orphan", up)


async def test_a_cancelled_dependant_is_not_told_for_ever(bench: Bench) -> None:
    (up,), (down,) = ids_in(0, 1), ids_in(1, 1)
    await bench.store.tasks.submit([bench.spec(up), bench.spec(down, depends_on=(up,))])
    await bench.cancel(down, False)
    (grant,) = await bench.claim(10)
    await bench.end(Succeeded(grant.lease))
    await bench.propagate()
    assert await bench.store.tasks.outbox(10) == []


async def test_lost_work_comes_back_in_every_partition(bench: Bench) -> None:
    await bench.submit_many(40)
    first = await bench.claimed_ids(40, worker="w1")
    assert len(first) == 40
    assert sorted((await bench.store.tasks.reclaim(100, ("w1",))).ids) == sorted(first)
    again = await bench.claim(40, worker="w2")
    assert len(again) == 40
    await bench.store.tasks.finish([Released(grant.lease) for grant in again])
    assert len(await bench.claimed_ids(100, worker="w3")) == 40


async def test_pauses_hold_everywhere(bench: Bench) -> None:
    await bench.submit_many(40)
    await bench.store.operators.pause("queue", "default", "for now")
    assert await bench.claimed_ids(100) == []
    assert [pause.name for pause in await bench.store.queries.paused()] == ["default"]
    assert await bench.store.operators.resume("queue", "default")
    assert len(await bench.claimed_ids(100)) == 40
    assert (await bench.facts()).count("queue.paused") == 0, "what is new is told a moment later"
    bench.clock.advance(1)
    assert (await bench.facts()).count("queue.paused") == 1


async def test_the_log_is_one(bench: Bench) -> None:
    ids = await bench.submit_many(40)
    bench.clock.advance(1)
    events = await bench.events()
    assert sorted(event.id for event in events) == sorted(ids)
    numbers = [event.seq for event in events]
    assert numbers == sorted(numbers)
    assert await bench.store.log.last() == numbers[-1]
    later, _ = await bench.store.log.read(numbers[9], 100)
    assert [event.seq for event in later] == [number for number in numbers if number > numbers[9]]


async def test_a_dedup_key_draws_an_id_beside_it() -> None:
    app = Scheduler(empty_redis(), partitions=COUNT)
    for number in range(20):
        key = f"order:{number}"
        handle = await app.submit("job", 1, dedup_key=key)
        assert partition_of(handle.id, COUNT) == partition_of(key, COUNT)
    (other,) = ids_in((partition_of("order:1000", COUNT) + 1) % COUNT, 1)
    with pytest.raises(StoreError, match="leave the id out"):
        await app.submit("job", 1, id=other, dedup_key="order:1000")
    await app.close()


async def test_a_retry_takes_its_dedup_key_again_in_every_partition(bench: Bench) -> None:
    upstreams = [ids_in(place, 4)[3] for place in range(COUNT)]
    for upstream in upstreams:
        await bench.submit(upstream)
    for place in range(COUNT):
        plain, dependant, key, _ = ids_in(place, 4)
        for task_id, depends_on in ((plain, ()), (dependant, (upstreams[place - 1],))):
            await bench.submit(task_id, dedup_key=key, dedup_ttl=60_000, depends_on=depends_on)
            await bench.cancel(task_id, False)
            await bench.retry(task_id)
            assert await bench.submit(key, dedup_key=key) == Receipt(key, "duplicate", task_id)
            await bench.cancel(task_id, False)


async def test_the_number_of_partitions_is_the_namespaces() -> None:
    url = empty_redis()
    first = Scheduler(url, partitions=COUNT)
    await first.submit("job", 1)
    await first.close()
    with pytest.raises(StoreError, match=r"has partitions=4, not 1: give that number"):
        await Scheduler(url).submit("job", 1)
    with pytest.raises(ConfigError, match="for Redis only"):
        Scheduler("memory://", partitions=2)


async def test_a_node_works_through_all_partitions() -> None:
    app = Scheduler(empty_redis(), partitions=COUNT, scan_interval=30)

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with app:
        handles = [await double.submit(number) for number in range(50)]
        assert [await handle.result(20) for handle in handles] == [2 * number for number in range(50)]
        late = await double.options(delay=0.1).submit(21)
        assert await late.result(20) == 42
        assert await app.audit() == []


async def test_every_fact_has_a_number_of_its_own_and_none_is_passed_over(bench: Bench) -> None:
    await bench.submit_many(60)
    await bench.store.members.beat(Worker(id="w9"))
    bench.clock.advance(1)
    numbers, after = [], 0
    for _ in range(200):
        events, _ = await bench.store.log.read(after, 1)
        if not events:
            break
        after = events[0].seq
        numbers.append(after)
    assert len(numbers) == len(set(numbers)) == 61
    assert "worker.joined" in await bench.facts()


async def test_a_claim_keeps_what_it_got_when_a_partition_is_gone(bench: Bench) -> None:
    store: Any = bench.store
    (one,), (other,) = ids_in(0, 1), ids_in(3, 1)
    await bench.submit(one)
    await bench.submit(other)
    run = store.core.run

    async def broken(name: str, prefix: str, *args: Any, **options: Any) -> Any:
        if prefix == store.core.layout.parts[3]:
            raise StoreUnavailable("that node is down")
        return await run(name, prefix, *args, **options)

    store.core.run = broken
    assert await bench.claimed_ids(10) == [one]
    store.core.run = run
    assert await bench.claimed_ids(10, worker="w2") == [other]


async def test_a_dependant_that_is_about_to_exist_is_told_later(bench: Bench) -> None:
    """The upstream ends, and is told of, between the note of a dependency and the creation of the dependant."""
    store: Any = bench.store
    (up,), (down,) = ids_in(0, 1), ids_in(1, 1)
    await bench.submit(up)
    await store.tasks.wait_for(bench.spec(down, depends_on=(up,)), [up])
    (grant,) = await bench.claim(10)
    await bench.end(Succeeded(grant.lease))
    for entry in await store.tasks.outbox(10):
        await store.tasks.resolve([Edge(down, entry.id, True)])
        await store.tasks.clear_outbox([entry])
    assert [entry.id for entry in await store.tasks.outbox(10)] == [up], "its note is kept for a while"
    bench.clock.advance(61)
    await bench.propagate()
    assert await store.tasks.outbox(10) == []


async def test_pruning_goes_on_while_there_is_more(bench: Bench) -> None:
    await bench.submit_many(60)
    for _ in range(10):
        for grant in await bench.claim(50):
            await bench.end(Succeeded(grant.lease))
    bench.clock.advance(8 * 86_400)
    assert await duties.prune(bench.store, 10) == 0, "again, at once"
    while await duties.prune(bench.store, 10) == 0:
        continue
    assert (await bench.store.queries.stats()).statuses[Status.SUCCESS] == 0
