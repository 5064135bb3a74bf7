"""Keys that were lost or made by other hands are found, and put right, without touching what is sound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.redis_store import NAMESPACE, ClockedRedisStore, restricted_redis, shared_server
from tickwork.clock import ManualClock
from tickwork.model.outcomes import Aborted, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Status
from tickwork.store.redis.keys import Layout
from tickwork.testing.contract.bench import START, Bench

ROOT = Layout(NAMESPACE).root


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = ManualClock(START)
    store = ClockedRedisStore(clock, restricted_redis(), Policy())
    await store.open()
    yield Bench(store, clock)
    await store.close()


def break_it(*command: Any) -> Any:
    return shared_server().command(*command)


async def found_and_mended(bench: Bench, *wanted: str) -> None:
    problems = await bench.store.queries.audit()
    assert sorted(problems) == sorted(wanted)
    assert sorted(await bench.store.operators.mend()) == sorted(wanted)
    assert await bench.store.queries.audit() == []


async def test_a_sound_store_needs_no_mending(bench: Bench) -> None:
    for status in (Status.RUNNING, Status.RETRYING, Status.SUCCESS, Status.DEAD, Status.CANCELLED, Status.BLOCKED):
        await bench.bring(status, f"it-{status}")
    await bench.bring(Status.READY, "it")
    assert await bench.store.queries.audit() == []
    assert await bench.store.operators.mend() == []


async def test_a_running_task_without_a_lease_runs_again(bench: Bench) -> None:
    await bench.start("it")
    break_it("DEL", f"{ROOT}leases:w1")
    assert "task it is missing in leases:w1" in await bench.store.queries.audit()
    await bench.store.operators.mend()
    assert await bench.store.queries.audit() == []
    bench.clock.advance(1)
    assert (await bench.store.tasks.reclaim(10)).ids == ["it"]
    assert await bench.claimed_ids() == ["it"]


async def test_ready_tasks_whose_lane_was_lost_are_taken_again(bench: Bench) -> None:
    await bench.submit_many(3)
    break_it("DEL", f"{ROOT}stream:normal:default")
    await found_and_mended(bench, *(f"task t{number} is missing in stream:normal:default" for number in range(3)))
    assert sorted(await bench.claimed_ids()) == ["t0", "t1", "t2"]


async def test_delayed_and_ended_tasks_find_home(bench: Bench) -> None:
    await bench.bring(Status.PENDING, "later")
    await bench.bring(Status.RETRYING, "again")
    await bench.bring(Status.SUCCESS, "over")
    break_it("DEL", f"{ROOT}delayed", f"{ROOT}retrying", f"{ROOT}ended:success")
    await found_and_mended(
        bench,
        "task later is missing in delayed",
        "task again is missing in retrying",
        "task over is missing in ended:success",
    )
    bench.clock.advance(3600)
    assert sorted(await bench.claimed_ids()) == ["again", "later"]


async def test_entries_without_a_task_go(bench: Bench) -> None:
    await bench.submit_many(2)
    break_it("DEL", f"{ROOT}task:t0")
    break_it("ZADD", f"{ROOT}leases:w1", START, "ghost")
    break_it("ZADD", f"{ROOT}lessees", START, "w1")
    await found_and_mended(
        bench,
        "task t0 is in stream:normal:default, but has no record",
        "task ghost is in leases:w1, but has no record",
    )
    assert await bench.claimed_ids() == ["t1"]


async def test_a_claim_steps_over_an_entry_without_a_task(bench: Bench) -> None:
    await bench.submit_many(3)
    break_it("DEL", f"{ROOT}task:t0")
    assert await bench.claimed_ids() == ["t1", "t2"]
    assert await bench.store.queries.audit() == []


async def test_a_task_in_two_homes_keeps_the_right_one(bench: Bench) -> None:
    await bench.submit("it")
    break_it("ZADD", f"{ROOT}delayed", START + 1000, "00000000001it")
    await found_and_mended(bench, "task it is in delayed, where it does not belong")
    assert await bench.claimed_ids() == ["it"]


async def test_who_waits_in_vain_is_told(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("down", depends_on=("up",))
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease))
    break_it("DEL", f"{ROOT}outbox", f"{ROOT}outbox:status")
    await found_and_mended(bench, "task down waits for up, which has ended or was removed")
    assert await bench.claimed_ids() == ["down"]


@pytest.mark.parametrize("lost", [("DEL", f"{ROOT}position"), ("SET", f"{ROOT}position", "0")], ids=["gone", "zero"])
async def test_a_lost_counter_is_noticed_by_whoever_needs_it_next(bench: Bench, lost: tuple[str, ...]) -> None:
    await bench.submit_many(300)
    leases = [grant.lease for grant in await bench.claim(200)]
    await bench.store.tasks.finish([Succeeded(lease) for lease in leases[:150]])
    break_it(*lost)
    assert (await bench.submit("x")).verdict == "created"
    break_it(*lost)
    await bench.store.tasks.finish([Succeeded(leases[150]), Aborted(leases[151], "boom")])
    break_it(*lost)
    assert (await bench.submit("y", dedup_key="k")).verdict == "created"
    break_it(*lost)
    await bench.retry(leases[0].id)
    assert await bench.store.queries.audit() == []
    claimed = await bench.claimed_ids(200)
    assert (claimed[0], claimed[-2:], len(claimed)) == ("t0", ["x", "y"], 103)


@pytest.mark.parametrize("lost", [("DEL", f"{ROOT}facts"), ("SET", f"{ROOT}facts", "0"), ("SET", f"{ROOT}facts", "5")])
async def test_a_lost_number_of_the_last_fact_is_noticed_by_whoever_tells_the_next(
    bench: Bench, lost: tuple[str, ...]
) -> None:
    await bench.submit_many(20)
    leases = [grant.lease for grant in await bench.claim(10)]
    for number in range(3):  # within one second
        break_it(*lost)
        assert (await bench.submit(f"x{number}")).verdict == "created"
    break_it(*lost)
    await bench.store.tasks.finish([Succeeded(lease) for lease in leases])
    events, missed = await bench.store.log.read(0, 1000)
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert (len(events), missed) == (20 + 10 + 3 + 10, 0)
    assert await bench.store.log.last() == events[-1].seq
    assert await bench.store.queries.audit() == []


async def test_a_counter_that_was_set_back_is_put_right(bench: Bench) -> None:
    await bench.submit_many(300)
    break_it("SET", f"{ROOT}position", "5")
    problem = "the counter of positions is at 5, though 300 is taken: it was lost or set back"
    await found_and_mended(bench, problem)
    assert (await bench.submit("x")).verdict == "created"
    assert (await bench.claimed_ids(500))[-1] == "x"


async def test_mending_one_leaves_another_in_its_place(bench: Bench) -> None:
    """Two tasks of one position: only one of them has an entry."""
    await bench.submit_many(2)
    value = break_it("GET", f"{ROOT}task:t1")
    break_it("SET", f"{ROOT}task:twin", value)
    await found_and_mended(bench, "task twin is missing in stream:normal:default")
    assert sorted(await bench.claimed_ids()) == ["t0", "t1", "twin"]


async def test_an_audit_of_a_busy_store_finds_nothing(bench: Bench) -> None:
    """What moves while it is read is looked at again before it is called wrong."""
    store: Any = bench.store
    await bench.submit_many(50)
    read = store.operators._audit._all_records

    async def moving(part: str) -> AsyncIterator[Any]:
        await bench.claim(20)  # after the homes were read
        async for record in read(part):
            yield record

    store.operators._audit._all_records = moving
    assert await store.queries.audit() == []
    assert await store.operators.mend() == []
