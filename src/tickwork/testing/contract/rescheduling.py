"""Tasks that are moved to another time by hand."""

from __future__ import annotations

import pytest

from tickwork.model.tasks import ParkReason, Status
from tickwork.store.contract import Query
from tickwork.store.rules import due_text
from tickwork.testing.contract.bench import START, Bench


@pytest.mark.parametrize("status", [Status.PENDING, Status.RETRYING], ids=str)
@pytest.mark.parametrize("seconds", [10, 600], ids=["earlier", "later"])
async def test_a_delayed_task_runs_at_its_new_time(bench: Bench, status: Status, seconds: int) -> None:
    await bench.bring(status)
    at = bench.clock.now() + seconds * 1000
    assert await bench.reschedule("it", at) is status
    record = await bench.record("it")
    assert (record.status, record.due_at) == (status, at)
    assert await bench.store.tasks.promote(10) == seconds * 1000
    await bench.pass_time(seconds - 1)
    assert await bench.claimed_ids() == []
    await bench.pass_time(1)
    assert await bench.claimed_ids() == ["it"]
    assert await bench.store.queries.audit() == []


async def test_a_ready_task_waits_again(bench: Bench) -> None:
    for name in ("first", "it", "last"):
        await bench.submit(name)
    assert await bench.reschedule("it", START + 5000) is Status.READY
    assert await bench.status("it") is Status.PENDING
    assert sorted(await bench.claimed_ids()) == ["first", "last"]
    bench.clock.advance(5)
    assert await bench.claimed_ids() == ["it"]


async def test_a_parked_task_waits_again(bench: Bench) -> None:
    await bench.submit("it")
    assert await bench.claimed_ids(types=("other",)) == []
    assert (await bench.record("it")).parked is ParkReason.TYPE_UNKNOWN
    await bench.reschedule("it", START + 5000)
    assert (await bench.record("it")).parked is None
    assert (await bench.store.queries.stats()).parked == {}
    bench.clock.advance(5)
    assert await bench.claimed_ids() == ["it"]


async def test_a_time_that_is_over_means_now(bench: Bench) -> None:
    await bench.submit("it", delay=60_000)
    await bench.reschedule("it", START - 60_000)
    assert await bench.claimed_ids() == ["it"]


@pytest.mark.parametrize(
    "status", [None, Status.BLOCKED, Status.RUNNING, Status.SUCCESS, Status.DEAD, Status.CANCELLED], ids=str
)
async def test_what_does_not_wait_for_a_time_is_not_rescheduled(bench: Bench, status: Status | None) -> None:
    await bench.bring(status)
    before = await bench.store.queries.get("it")
    assert await bench.reschedule("it", START + 5000) is status
    assert await bench.store.queries.get("it") == before


async def test_a_reschedule_of_many_is_answered_for_each_in_order(bench: Bench) -> None:
    await bench.submit("pending", delay=60_000)
    await bench.submit("blocked", depends_on=("pending",))
    await bench.submit("ready")
    ids = ["ready", "nobody", "pending", "blocked", "ready"]
    found = [Status.READY, None, Status.PENDING, Status.BLOCKED, Status.READY]
    assert await bench.store.operators.reschedule(ids, START + 9000) == found
    assert await bench.store.operators.reschedule([], START + 9000) == []
    records, _ = await bench.store.queries.page(Query(Status.PENDING))
    assert {(record.id, record.due_at) for record in records} == {("ready", START + 9000), ("pending", START + 9000)}


async def test_the_fact_says_the_time_and_is_told_once(bench: Bench) -> None:
    await bench.submit("it", delay=60_000)
    for _ in range(2):
        await bench.reschedule("it", START + 90_000)
    events = [event for event in await bench.events("it") if event.kind == "task.rescheduled"]
    assert [event.detail for event in events] == [due_text(START + 90_000)] == ["2023-11-14T22:14:50.000+00:00"]


async def test_a_deadline_that_counts_from_the_due_time_moves_along(bench: Bench) -> None:
    await bench.submit("it", delay=10_000, expires=5000)
    await bench.reschedule("it", START + 100_000)
    await bench.pass_time(104)
    assert await bench.store.tasks.promote(10) == 1000
    assert await bench.status("it") is Status.READY
    await bench.pass_time(1)
    await bench.store.tasks.promote(10)
    assert await bench.status("it") is Status.CANCELLED
    assert await bench.store.queries.audit() == []


async def test_a_fixed_deadline_stays(bench: Bench) -> None:
    await bench.submit("it", delay=10_000, expires_at=START + 20_000)
    await bench.reschedule("it", START + 100_000)
    await bench.pass_time(20)
    await bench.store.tasks.promote(10)
    assert await bench.status("it") is Status.CANCELLED


async def test_a_task_that_has_started_once_has_no_deadline_again(bench: Bench) -> None:
    await bench.bring(Status.RETRYING, expires=60_000)
    await bench.reschedule("it", START + 10_000)
    await bench.pass_time(300)
    assert await bench.claimed_ids() == ["it"]
    assert await bench.store.queries.audit() == []
