"""What must stay bounded, or apart, on Redis: huge claims, lost groups, bad company, storms of connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.redis import Proxy, RedisServer
from tests.support.redis_store import (
    NAMESPACE,
    ClockedRedisStore,
    empty_redis,
    redis_bench,
    shared_server,
)
from tickwork import Scheduler
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.outcomes import Aborted, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Status
from tickwork.store.contract import Query
from tickwork.store.redis import RedisStore
from tickwork.store.redis.keys import Layout
from tickwork.store.redis.net.target import parse
from tickwork.testing.contract.bench import Bench

ROOT = Layout(NAMESPACE).root


@pytest.fixture
async def bench(policy: Policy) -> AsyncIterator[Bench]:
    async with redis_bench(policy) as bench:
        yield bench


async def test_a_claim_of_thousands_takes_what_one_call_may(bench: Bench) -> None:
    await bench.submit_many(1200)
    grants = await bench.claim(9000)
    assert len(grants) == 1000
    answers = await bench.store.tasks.extend([grant.lease for grant in grants], 30_000)
    assert set(answers) == {"held"}
    finished = await bench.store.tasks.finish([Succeeded(grant.lease, b"1") for grant in grants])
    assert {verdict.kind for verdict in finished.verdicts} == {"done"}


async def test_one_that_cannot_be_stored_keeps_its_whole_call_out(bench: Bench) -> None:
    odd = bench.spec("odd", context={"number": 2**70})
    with pytest.raises(StoreError, match="task odd cannot be stored"):
        await bench.store.tasks.submit([*(bench.spec(f"t{number}") for number in range(150)), odd])
    assert await bench.claimed_ids() == []


async def test_an_entry_that_came_twice_starts_nothing_twice(bench: Bench) -> None:
    await bench.submit_many(3)
    (running,) = await bench.claim(1)
    shared_server().command("XADD", f"{ROOT}stream:normal:default", "1000-0", "id", running.spec.id)
    shared_server().command("XADD", f"{ROOT}stream:normal:default", "1001-0", "id", "t1")
    assert await bench.claimed_ids(10, worker="w2") == ["t1", "t2"]
    assert await bench.end(Succeeded(running.lease)) == "done"
    assert shared_server().command("XLEN", f"{ROOT}stream:normal:default") == 0


async def test_a_clash_of_one_does_not_run_another_twice(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both travel together; while it is found out what the clash is, the other may have ended and been deleted."""
    await bench.submit("known")
    assert await bench.claimed_ids() == ["known"]
    store: Any = bench.store
    honest = store.core.run_durably

    async def slow(durability: str, name: str, *args: Any) -> Any:
        if name == "submit_with":
            (grant,) = await bench.claim()
            await bench.end(Succeeded(grant.lease))
            await bench.delete(grant.spec.id)
        return await honest(durability, name, *args)

    monkeypatch.setattr(store.core, "run_durably", slow)
    receipts = await store.tasks.submit([bench.spec("known"), bench.spec("new")])
    assert [receipt.verdict for receipt in receipts] == ["exists", "created"]
    assert await bench.claimed_ids() == []


@pytest.mark.parametrize("policy", [Policy(dlq_max=0)], ids=["none"])
async def test_a_dead_letter_queue_that_was_made_small_empties_in_steps(bench: Bench, policy: Policy) -> None:
    generous: Any = ClockedRedisStore(bench.clock, restricted_url(), Policy())
    big = Bench(generous, bench.clock)
    await big.submit_many(250)
    for grant in await big.claim(250):
        await big.store.tasks.finish([Aborted(grant.lease, "boom")])
    await bench.store.operators.prune(10)
    assert (await bench.store.queries.stats()).statuses[Status.DEAD] == 150
    for _ in range(3):
        await bench.store.operators.prune(10)
    assert (await bench.store.queries.stats()).statuses[Status.DEAD] == 0
    await generous.close()


def restricted_url() -> str:
    return shared_server().url.replace("redis://", "redis://tickwork:secret@")


async def test_lanes_that_are_empty_are_forgotten(bench: Bench) -> None:
    for number in range(5):
        await bench.submit(queue=f"once{number}")
    for grant in await bench.claim(10, queues=tuple(f"once{number}" for number in range(5))):
        await bench.end(Succeeded(grant.lease))
    await bench.submit("stays")
    await bench.store.operators.prune(10)
    assert shared_server().command("SMEMBERS", f"{ROOT}lanes") == [b"normal:default"]
    assert await bench.claimed_ids() == ["stays"]
    await bench.submit(queue="once1")
    assert len(await bench.claim(queues=("once1",))) == 1


async def test_a_resumed_type_wakes_the_queue_of_a_lane_that_was_forgotten(bench: Bench) -> None:
    await bench.submit("parked")
    await bench.store.operators.pause("type", "job")
    assert await bench.claimed_ids() == []
    await bench.store.operators.prune(10)
    assert shared_server().command("SMEMBERS", f"{ROOT}lanes") == []
    await bench.store.operators.resume("type", "job")
    assert shared_server().command("LLEN", f"{ROOT}wake:default") == 1
    assert await bench.claimed_ids() == ["parked"]


async def test_a_page_goes_on_behind_a_home_that_has_gone(bench: Bench) -> None:
    await bench.submit_many(3, "a", queue="qa")
    await bench.submit_many(3, "b", queue="qb")
    first, cursor = await bench.store.queries.page(Query(Status.READY, limit=2))
    shown = [record.id for record in first]
    assert shown == ["a0", "a1"]
    await bench.claim(10, queues=("qa",))
    while cursor is not None:
        records, cursor = await bench.store.queries.page(Query(Status.READY, limit=2, cursor=cursor))
        shown += [record.id for record in records]
    assert shown == ["a0", "a1", "b0", "b1", "b2"]
    for nonsense in ("1", "x.0.leases", "1.0.", "1.x.leases"):
        with pytest.raises(StoreError, match="is not a cursor"):
            await bench.store.queries.page(Query(cursor=nonsense))


@pytest.mark.parametrize(
    "fields", [{"payload": b"x" * 200_000}, {"context": {"x": "y" * 200_000}}], ids=["payload", "context"]
)
async def test_one_call_carries_about_a_megabyte(
    bench: Bench, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = bench.store
    honest, calls = store.core.run_durably, []

    async def count(durability: str, name: str, prefix: str, *args: Any) -> Any:
        calls.append(sum(len(arg) for arg in args))
        return await honest(durability, name, prefix, *args)

    monkeypatch.setattr(store.core, "run_durably", count)
    await store.tasks.submit([bench.spec(f"t{number}", **fields) for number in range(20)])
    assert len(calls) == 5
    await asyncio.gather(*(store.tasks.submit([bench.spec(f"u{number}", **fields)]) for number in range(20)))
    assert max(calls) < 1_010_000
    assert len(await bench.claimed_ids()) == 40


async def test_a_bad_submission_fails_alone() -> None:
    app = Scheduler(empty_redis())
    good = [app.submit("job", number) for number in range(20)]
    bad = app.submit("job", 1, context={"number": 10**30})
    answers = await asyncio.gather(*good, bad, return_exceptions=True)
    assert [type(answer).__name__ for answer in answers] == ["Handle"] * 20 + ["StoreError"]
    await app.close()


async def test_too_many_clients_are_a_delay_and_no_end() -> None:
    with RedisServer() as server:
        store = RedisStore(parse(server.url), patience=10)
        await store.open()
        admin = server.connect()
        admin.call("CONFIG", "SET", "maxclients", "1")
        admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        asking = asyncio.ensure_future(store.queries.stats())
        await asyncio.sleep(0.3)
        assert not asking.done()
        admin.call("CONFIG", "SET", "maxclients", "100")
        assert (await asking).workers == 0
        await store.close()


async def test_a_peer_that_hangs_up_makes_no_storm() -> None:
    """A proxy without a server behind it takes every connection, and ends it."""
    with RedisServer() as server, Proxy(server.port) as proxy:
        store = RedisStore(parse(f"redis://127.0.0.1:{proxy.port}/0"), patience=1.5)
        await store.open()
        server.kill()
        proxy.drop_all()
        before = proxy.accepted
        with pytest.raises(StoreUnavailable):
            await store.queries.stats()
        assert proxy.accepted - before < 30
        assert len(asyncio.all_tasks()) < 10
        await store.close()


async def test_a_closed_store_opens_nothing_by_itself() -> None:
    store = RedisStore(parse(empty_redis()), patience=1)
    await store.open()
    await store.close()
    with pytest.raises(StoreUnavailable, match="was closed here"):
        await store.queries.stats()
    await store.open()
    assert (await store.queries.stats()).workers == 0
    await store.close()


async def test_pruning_an_empty_lane_leaves_the_token_of_its_queue(bench: Bench) -> None:
    await bench.submit("urgent", priority=10)
    assert await bench.claimed_ids() == ["urgent"]
    await bench.submit("usual")
    await bench.store.operators.prune(10)
    assert shared_server().command("LLEN", f"{ROOT}wake:default") == 1
    assert await bench.claimed_ids() == ["usual"]
    await bench.store.operators.prune(10)
    assert shared_server().command("EXISTS", f"{ROOT}wake:default") == 0
