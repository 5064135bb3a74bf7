"""Claims that stand in the store, where it has that (`Capabilities.standing_claims`)."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from tickwork.ids import new_claim_nonce
from tickwork.model.members import Worker
from tickwork.model.outcomes import Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import Status
from tickwork.store.contract import STANDING_TURN, Claim, Claimed, StandingTasks
from tickwork.testing.contract.bench import Bench

LONG = 60.0  # seconds: what a test waits for must come before


def tasks_of(bench: Bench) -> StandingTasks:
    if not bench.store.capabilities.standing_claims:
        pytest.skip("no claim can stand in this store")
    return bench.store.tasks  # type: ignore[return-value]


def standing_claim(bench: Bench, limit: int = 10, worker: str = "w1", node: str = "n1") -> Claim:
    return bench.new_claim(limit, worker, nonce=new_claim_nonce(), turn=STANDING_TURN, node=node)


def ids_of(claimed: Claimed | None) -> list[str]:
    assert claimed is not None, "it was refused"
    return [grant.spec.id for grant in claimed.grants]


async def test_a_standing_claim_gets_what_is_submitted(bench: Bench) -> None:
    tasks = tasks_of(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    standing = asyncio.create_task(tasks.stand(standing_claim(bench), LONG))
    await bench.submit("it")
    assert ids_of(await standing) == ["it"]
    record = await bench.record("it")
    assert (record.status, record.worker_id) == (Status.RUNNING, "w1")


async def test_a_standing_claim_says_when_a_task_is_due(bench: Bench) -> None:
    tasks = tasks_of(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    standing = asyncio.create_task(tasks.stand(standing_claim(bench), LONG))
    await bench.submit("it", delay=60_000)
    assert await standing == Claimed([], 60_000)


async def test_a_standing_claim_is_answered_when_its_time_is_over(bench: Bench) -> None:
    tasks = tasks_of(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    assert await tasks.stand(standing_claim(bench), 0.01) == Claimed([])


async def test_a_standing_claim_that_is_recalled_is_answered_at_once(bench: Bench) -> None:
    tasks, claim = tasks_of(bench), standing_claim(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    standing = asyncio.create_task(tasks.stand(claim, LONG))
    await tasks.recall(claim)
    assert ids_of(await standing) == []


async def test_a_claim_that_was_recalled_is_granted_nothing_more(bench: Bench) -> None:
    tasks, claim = tasks_of(bench), standing_claim(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    await tasks.recall(claim)
    await bench.submit("it")
    assert ids_of(await tasks.stand(claim, LONG)) == []
    assert await bench.status("it") is Status.READY
    assert ids_of(await tasks.stand(standing_claim(bench), LONG)) == ["it"]


async def test_what_a_standing_claim_was_granted_is_answered_again(bench: Bench) -> None:
    tasks, claim = tasks_of(bench), standing_claim(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    await bench.submit("it")
    first = await tasks.stand(claim, LONG)
    await bench.submit("another")
    assert first is not None
    assert await tasks.claim(replace(claim, limit=0)) == first
    assert await bench.status("another") is Status.READY


async def test_a_claim_that_was_answered_elsewhere_is_granted_nothing_when_it_stands(bench: Bench) -> None:
    """Its connection was thought lost, so it was asked for in the usual way; it runs all the same, and nobody reads
    its answer."""
    tasks, claim = tasks_of(bench), standing_claim(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    await tasks.claim(replace(claim, limit=0))
    await bench.submit("it")
    assert ids_of(await tasks.stand(claim, LONG)) == []
    assert await bench.status("it") is Status.READY


async def test_a_claim_that_stands_after_a_later_one_was_answered_is_refused(bench: Bench) -> None:
    tasks, claim = tasks_of(bench), standing_claim(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    await tasks.claim(standing_claim(bench, limit=0))
    await bench.submit("it")
    assert await tasks.stand(claim, LONG) is None
    assert await bench.status("it") is Status.READY


async def test_a_late_recall_leaves_a_later_claim_its_answer(bench: Bench) -> None:
    tasks, claim, later = tasks_of(bench), standing_claim(bench), standing_claim(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    await bench.submit("it")
    granted = await tasks.stand(later, LONG)
    await tasks.recall(claim)
    assert await tasks.claim(replace(later, limit=0)) == granted


@pytest.mark.parametrize("why", ["never a member", "left", "expired", "of another node"])
async def test_a_worker_that_is_no_member_is_refused(bench: Bench, why: str) -> None:
    tasks = tasks_of(bench)
    if why != "never a member":
        await bench.store.members.beat(Worker(id="w1", node="n2" if why == "of another node" else "n1"))
    if why == "left":
        await bench.store.members.leave("w1", "n1")
    if why == "expired":
        await bench.pass_time(31)
    await bench.submit("it")
    assert await tasks.stand(standing_claim(bench), LONG) is None
    assert await bench.status("it") is Status.READY


async def test_a_member_that_left_and_came_back_may_stand(bench: Bench) -> None:
    tasks, before = tasks_of(bench), standing_claim(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    await bench.submit("first")
    assert ids_of(await tasks.stand(before, LONG)) == ["first"]
    await bench.store.members.leave("w1", "n1")
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    assert (await tasks.claim(replace(before, limit=0))).grants == [], "its last claim was remembered"
    await bench.submit("second")
    assert ids_of(await tasks.stand(standing_claim(bench), LONG)) == ["second"]


async def test_no_lease_is_given_by_a_standing_claim_before_all_were_moved_with_the_clock(bench: Bench) -> None:
    tasks = tasks_of(bench)
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    bench.clock.advance(-5)
    await bench.submit("it")
    assert await tasks.stand(standing_claim(bench), LONG) is None
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    assert ids_of(await tasks.stand(standing_claim(bench), LONG)) == ["it"]


async def test_a_standing_claim_is_woken_when_its_worker_may_start_the_next_suspect(bench: Bench) -> None:
    """Of tasks that one more lost worker would end for good, a node runs one at a time."""
    tasks = tasks_of(bench)
    for task_id in ("one", "other"):
        await bench.submit(task_id)
    for lost in range(Policy().max_losses - 1):
        assert len(await bench.claim(2, worker=f"lost-{lost}")) == 2
        await tasks.reclaim(10, (f"lost-{lost}",))
    await bench.store.members.beat(Worker(id="w1", node="n1"))
    (first,) = await bench.claim(2, worker="w1", node="n1")
    for _ in range(3):  # so that no token is left
        assert ids_of(await tasks.stand(standing_claim(bench), 0.01)) == [], "two suspects at a time"
    standing = asyncio.create_task(tasks.stand(standing_claim(bench), LONG))
    await bench.end(Succeeded(first.lease))
    assert len(ids_of(await standing)) == 1
