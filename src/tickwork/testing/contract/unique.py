"""Dedup keys that are held by what a task does, and not for a time."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tickwork.model.outcomes import Aborted, Failed, Released, Snoozed, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.tasks import ENDS, Status
from tickwork.store.contract import Receipt
from tickwork.testing.contract.bench import OUTCOMES, Bench

_STATUSES = [s for s in Status if s not in (Status.ASSIGNED, Status.FAILED)]
_DAY = 86_400


@pytest.mark.parametrize("unique", ["queued", "unfinished"])
@pytest.mark.parametrize("status", _STATUSES, ids=str)
async def test_the_status_of_the_holder_decides(
    bench: Bench, status: Status, unique: Literal["queued", "unfinished"]
) -> None:
    bench.together()
    await bench.bring(status, dedup_key="k", unique=unique)
    held = status not in ENDS and not (unique == "queued" and status is Status.RUNNING)
    expected = Receipt("again", "duplicate", "it") if held else Receipt("again", "created")
    assert await bench.submit("again", dedup_key="k", unique=unique) == expected


@pytest.mark.parametrize("policy", [Policy(dlq=False)], ids=["dlq-off"])
async def test_a_failed_task_frees_its_key(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.bring(Status.FAILED, dedup_key="k", unique="unfinished")
    assert (await bench.submit("again", dedup_key="k", unique="unfinished")).verdict == "created"


async def test_such_a_key_knows_no_time(bench: Bench) -> None:
    bench.together()
    await bench.submit("it", delay=10 * _DAY * 1000, dedup_key="k", unique="queued")
    for _ in range(3):
        bench.clock.advance(_DAY)
        await bench.store.operators.prune(100)
        assert (await bench.submit("again", dedup_key="k", unique="queued")).other == "it"


async def test_whoever_asks_for_a_ttl_is_refused_too(bench: Bench) -> None:
    bench.together()
    await bench.submit("it", dedup_key="k", unique="unfinished")
    assert (await bench.submit("again", dedup_key="k", dedup_ttl=1000)).other == "it"


async def test_a_key_held_for_a_ttl_refuses_a_unique_task(bench: Bench) -> None:
    bench.together()
    await bench.bring(Status.SUCCESS, dedup_key="k", dedup_ttl=1000)
    assert (await bench.submit("again", dedup_key="k", unique="queued")).other == "it"
    bench.clock.advance(1)
    assert (await bench.submit("later", dedup_key="k", unique="queued")).verdict == "created"
    bench.clock.advance(_DAY)
    assert (await bench.submit("last", dedup_key="k", unique="queued")).other == "later"


async def test_a_unique_task_may_be_sent_twice(bench: Bench) -> None:
    bench.together()
    spec = bench.spec("it", dedup_key="k", unique="queued")
    assert await bench.store.tasks.submit([spec, spec]) == [Receipt("it", "created")] * 2


@pytest.mark.parametrize("way", ["fail", "snooze", "release", "expire"])
async def test_a_queued_key_is_held_again_while_the_task_waits_for_its_next_run(bench: Bench, way: str) -> None:
    bench.together()
    lease = await bench.start("it", dedup_key="k", unique="queued")
    if way == "expire":
        await bench.store.tasks.reclaim(10, ("w1",))
    else:
        await bench.end(OUTCOMES[way](lease))
    assert (await bench.submit("again", dedup_key="k", unique="queued")).other == "it"


async def test_a_queued_key_that_another_took_meanwhile_is_not_taken_back(bench: Bench) -> None:
    bench.together()
    lease = await bench.start("first", dedup_key="k", unique="queued")
    assert (await bench.submit("second", delay=60_000, dedup_key="k", unique="queued")).verdict == "created"
    await bench.end(Failed(lease, "boom", 60_000))
    assert (await bench.submit("third", dedup_key="k", unique="queued")).other == "second"
    await bench.cancel("second", False)
    assert (await bench.submit("third", dedup_key="k", unique="queued")).verdict == "created", "the first has lost it"


async def test_the_end_of_the_first_does_not_free_the_key_of_the_second(bench: Bench) -> None:
    bench.together()
    lease = await bench.start("first", dedup_key="k", unique="queued")
    await bench.submit("second", dedup_key="k", unique="queued")
    await bench.end(Aborted(lease, "boom"))
    assert (await bench.submit("third", dedup_key="k", unique="queued")).other == "second"


@pytest.mark.parametrize("unique", ["queued", "unfinished"])
@pytest.mark.parametrize("status", [Status.SUCCESS, Status.DEAD, Status.CANCELLED], ids=str)
async def test_a_retry_by_hand_takes_a_free_key_again(
    bench: Bench, status: Status, unique: Literal["queued", "unfinished"]
) -> None:
    bench.together()
    await bench.bring(status, dedup_key="k", unique=unique)
    await bench.retry("it")
    assert (await bench.submit("again", dedup_key="k", unique=unique)).other == "it"


async def test_a_retry_by_hand_goes_on_without_a_key_that_another_holds(bench: Bench) -> None:
    bench.together()
    await bench.bring(Status.DEAD, dedup_key="k", unique="unfinished")
    await bench.submit("second", dedup_key="k", unique="unfinished")
    await bench.retry("it")
    assert await bench.status("it") is Status.READY
    assert (await bench.submit("third", dedup_key="k", unique="unfinished")).other == "second"
    await bench.cancel("second", False)
    assert (await bench.submit("third", dedup_key="k", unique="unfinished")).verdict == "created"


@pytest.mark.parametrize("forget", ["delete", "prune"])
async def test_a_removed_task_holds_nothing(bench: Bench, forget: str) -> None:
    bench.together()
    await bench.bring(Status.SUCCESS, dedup_key="k", unique="unfinished", retention=0)
    if forget == "delete":
        await bench.delete("it")
    else:
        assert await bench.store.operators.prune(10) == 1
    assert (await bench.submit("it")).verdict == "created"
    assert (await bench.submit("again", dedup_key="k", unique="unfinished")).verdict == "created"


@pytest.mark.parametrize("policy", [Policy(dlq_max=0)], ids=["no-room"])
async def test_a_dropped_dead_letter_holds_nothing(bench: Bench, policy: Policy) -> None:
    bench.together()
    await bench.end(Aborted(await bench.start("it", dedup_key="k", unique="unfinished"), "boom"))
    assert (await bench.submit("again", dedup_key="k", unique="unfinished")).verdict == "created"


async def test_a_forced_cancel_frees_the_key_with_the_end(bench: Bench) -> None:
    bench.together()
    lease = await bench.start("it", dedup_key="k", unique="unfinished")
    await bench.cancel("it", True)
    assert (await bench.submit("early", dedup_key="k", unique="unfinished")).other == "it"
    await bench.end(Snoozed(lease, delay=1000))
    assert (await bench.submit("again", dedup_key="k", unique="unfinished")).verdict == "created"


@pytest.mark.parametrize("policy", [Policy(dedup=False)], ids=["dedup-off"])
async def test_without_dedup_nothing_is_unique(bench: Bench, policy: Policy) -> None:
    bench.together()
    fields: dict[str, Any] = {"dedup_key": "k", "unique": "unfinished"}
    assert [(await bench.submit(task_id, **fields)).verdict for task_id in "ab"] == ["created", "created"]


async def test_two_in_one_call(bench: Bench) -> None:
    bench.together()
    specs = [bench.spec(task_id, dedup_key="k", unique="queued") for task_id in "ab"]
    assert await bench.store.tasks.submit(specs) == [Receipt("a", "created"), Receipt("b", "duplicate", "a")]


@pytest.mark.parametrize("unique", ["queued", "unfinished"])
async def test_a_task_that_depends_on_nothing_that_is_there_is_told_of_a_unique_key_first(
    bench: Bench, unique: str
) -> None:
    bench.together()
    orphan: dict[str, Any] = {"dedup_key": "k", "dedup_ttl": 1000, "depends_on": ("missing",)}
    assert (await bench.submit("orphan", **orphan)).verdict == "orphan"
    lease = await bench.start("it", dedup_key="k", unique=unique)
    receipt = await bench.submit("orphan", **orphan)
    assert receipt.verdict == ("orphan" if unique == "queued" else "duplicate")
    await bench.end(Released(lease))
    assert await bench.submit("orphan", **orphan) == Receipt("orphan", "duplicate", "it")
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease))
    assert (await bench.submit("orphan", **orphan)).verdict == "orphan"
