"""Tasks that must have started by a time: what becomes of those that have not."""

from __future__ import annotations

import pytest

from tickwork.model.outcomes import Aborted, Failed, Snoozed
from tickwork.model.tasks import Status
from tickwork.model.transitions import EXPIRED
from tickwork.store.rules import PARK_MAX
from tickwork.testing.contract.bench import OUTCOMES, START, Bench

_WAITING = [Status.BLOCKED, Status.PENDING, Status.READY]


@pytest.mark.parametrize("status", _WAITING, ids=str)
async def test_a_task_that_has_not_started_by_its_deadline_is_cancelled(bench: Bench, status: Status) -> None:
    await bench.bring(status, expires_at=bench.clock.now() + 30_000)
    bench.clock.advance(29.999)
    await bench.store.tasks.promote(10)
    assert await bench.status("it") is status
    bench.clock.advance(0.001)
    await bench.store.tasks.promote(10)
    record = await bench.record("it")
    assert (record.status, record.message, record.waiting) == (Status.CANCELLED, EXPIRED, [])
    assert (record.finished_at, record.started_at) == (bench.clock.now(), None)
    assert (await bench.facts("it"))[-1] == "task.expired"
    assert "task.cancelled" not in await bench.facts("it")


async def test_expires_counts_from_the_due_time(bench: Bench) -> None:
    await bench.submit("delayed", delay=10_000, expires=5000)
    await bench.submit("at", at=bench.clock.now() + 20_000, expires=5000)
    await bench.submit("now", expires=5000)
    for _ in range(26):
        await bench.store.tasks.promote(10)
        bench.clock.advance(1)
    ended = {task_id: (await bench.record(task_id)).finished_at for task_id in ("now", "delayed", "at")}
    assert ended == {"now": START + 5000, "delayed": START + 15_000, "at": START + 25_000}


async def test_a_dependants_deadline_counts_from_its_own_due_time(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("it", depends_on=("up",), delay=10_000, expires=5000)
    bench.clock.advance(14.999)
    assert await bench.store.tasks.promote(10) == 1
    bench.clock.advance(0.001)
    await bench.store.tasks.promote(10)
    assert await bench.status("it") is Status.CANCELLED
    assert await bench.store.queries.dependants("up", 10) == []


async def test_a_deadline_that_is_over_at_the_submit(bench: Bench) -> None:
    await bench.submit("it", expires_at=bench.clock.now())
    await bench.submit("other", expires=0)
    assert await bench.claimed_ids() == []
    assert await bench.status("it") is await bench.status("other") is Status.CANCELLED


async def test_a_started_task_never_expires(bench: Bench) -> None:
    lease = await bench.start("it", expires=5000)
    await bench.pass_time(6)
    assert await bench.store.tasks.promote(10) is None
    assert await bench.store.tasks.extend([lease], 30_000) == ["held"]
    assert await bench.status("it") is Status.RUNNING


@pytest.mark.parametrize("way", ["fail", "snooze", "release", "expire"])
async def test_a_task_that_has_started_once_never_expires(bench: Bench, way: str) -> None:
    lease = await bench.start("it", expires=5000)
    if way == "expire":
        await bench.store.tasks.reclaim(10, ("w1",))
    else:
        await bench.end(OUTCOMES[way](lease))
    await bench.pass_time(60)
    assert await bench.claimed_ids() == ["it"]


async def test_a_retry_by_hand_of_an_expired_task_has_no_deadline(bench: Bench) -> None:
    await bench.submit("it", expires=5000)
    bench.clock.advance(5)
    await bench.store.tasks.promote(10)
    await bench.retry("it")
    assert await bench.store.tasks.promote(10) is None
    assert await bench.claimed_ids() == ["it"]


async def test_run_now_does_not_move_the_deadline(bench: Bench) -> None:
    await bench.submit("it", delay=60_000, expires=5000)
    await bench.run_now("it")
    bench.clock.advance(64)
    await bench.store.tasks.promote(10)
    assert await bench.status("it") is Status.READY
    bench.clock.advance(1)
    assert await bench.claimed_ids() == []
    assert await bench.status("it") is Status.CANCELLED


async def test_a_claim_expires_what_is_overdue_before_it_takes(bench: Bench) -> None:
    bench.together()
    await bench.submit("late", expires=1000)
    await bench.submit("good", expires=60_000)
    await bench.submit("plain")
    bench.clock.advance(1)
    assert await bench.claimed_ids() == ["good", "plain"]
    assert await bench.status("late") is Status.CANCELLED


@pytest.mark.parametrize("paused", [False, True], ids=["main lane", "side lane"])
async def test_no_claim_grants_an_overdue_task_however_many_there_are(bench: Bench, paused: bool) -> None:
    late = await bench.submit_many(3 * PARK_MAX + 20, "late", expires=1000)
    if paused:
        await bench.store.operators.pause("type", "job")
        for _ in range(5):
            await bench.claim(5)
        await bench.store.operators.resume("type", "job")
    await bench.submit("good")
    bench.clock.advance(1)
    found: list[str] = []
    claims = 0
    while not found:
        answer = await bench.store.tasks.claim(bench.new_claim(5))
        found = [grant.spec.id for grant in answer.grants]
        assert found or answer.next_due_in == 0, "there is more to look at"
        assert (claims := claims + 1) <= 5, "each one comes nearer"
    assert found == ["good"]
    while await bench.store.tasks.promote(100) is not None:
        pass
    assert sorted(await bench.walk(status=Status.CANCELLED)) == sorted(late)


async def test_an_overdue_task_that_is_parked_or_in_a_paused_queue_ends_too(bench: Bench) -> None:
    await bench.submit("strange", type="strange", expires=1000)
    await bench.submit("held", queue="held", expires=1000)
    await bench.store.operators.pause("queue", "held")
    assert await bench.claimed_ids(queues=("default", "held")) == []
    bench.clock.advance(1)
    await bench.store.tasks.promote(10)
    for task_id in ("strange", "held"):
        record = await bench.record(task_id)
        assert (record.status, record.parked) == (Status.CANCELLED, None)


async def test_promote_expires_no_more_than_its_limit_the_first_deadline_first(bench: Bench) -> None:
    bench.together()
    await bench.submit("second", expires=2000)
    await bench.submit("first", expires=1000)
    await bench.submit("third", delay=60_000, expires_at=bench.clock.now() + 2000)
    bench.clock.advance(2)
    answers = [await bench.store.tasks.promote(1) for _ in range(3)]
    assert answers == [0, 0, None]
    assert await bench.walk(status=Status.CANCELLED) == ["third", "second", "first"]


async def test_promote_tells_when_the_next_deadline_is_over(bench: Bench) -> None:
    assert await bench.store.tasks.promote(10) is None
    await bench.submit("it", expires=5000)
    assert await bench.store.tasks.promote(10) == 5000
    await bench.submit("delayed", delay=2000)
    assert await bench.store.tasks.promote(10) == 2000
    bench.clock.advance(2)
    assert await bench.store.tasks.promote(10) == 3000
    await bench.cancel("it", False)
    assert await bench.store.tasks.promote(10) is None


async def test_a_claim_does_not_tell_of_deadlines(bench: Bench) -> None:
    """A worker has nothing to take then."""
    await bench.submit("it", queue="other", expires=5000)
    assert (await bench.store.tasks.claim(bench.new_claim())).next_due_in is None
    await bench.submit("later", delay=60_000)
    assert (await bench.store.tasks.claim(bench.new_claim())).next_due_in == 60_000


async def test_what_is_both_due_and_overdue_never_becomes_ready(bench: Bench) -> None:
    await bench.submit("it", delay=1000, expires=500)
    bench.clock.advance(2)
    await bench.store.tasks.promote(10)
    assert await bench.facts("it") == ["task.submitted", "task.expired"]


async def test_dependants_of_an_expired_task_are_told(bench: Bench) -> None:
    await bench.submit("up", expires=1000)
    await bench.submit("needs", depends_on=("up",))
    await bench.submit("follows", depends_on=("up",), run_after="end")
    bench.clock.advance(1)
    await bench.store.tasks.promote(10)
    (entry,) = await bench.store.tasks.outbox(10)
    assert (entry.id, entry.status, entry.dependants) == ("up", Status.CANCELLED, ("follows", "needs"))
    await bench.propagate()
    assert await bench.status("needs") is Status.CANCELLED
    assert await bench.status("follows") is Status.READY


async def test_a_schedule_is_told_of_its_expired_task(bench: Bench) -> None:
    await bench.submit("it", schedule_id="s", expires=1000)
    bench.clock.advance(1)
    await bench.store.tasks.promote(10)
    (entry,) = await bench.store.tasks.outbox(10)
    assert (entry.id, entry.status, entry.schedule_id) == ("it", Status.CANCELLED, "s")


async def test_an_expired_task_frees_its_dedup_key(bench: Bench) -> None:
    bench.together()
    await bench.submit("it", expires=1000, dedup_key="k", dedup_ttl=60_000)
    bench.clock.advance(1)
    await bench.store.tasks.promote(10)
    assert (await bench.submit("again", dedup_key="k")).verdict == "created"


async def test_whoever_waits_for_an_expired_task_is_woken(bench: Bench) -> None:
    await bench.submit("it", expires=1000)
    with bench.store.hint("it") as hint:
        await bench.listens(hint)
        bench.clock.advance(1)
        await bench.store.tasks.promote(10)
        assert await hint.wait(5)


async def test_a_deleted_or_cancelled_task_leaves_no_deadline(bench: Bench) -> None:
    await bench.submit("it", expires=5000)
    await bench.cancel("it", False)
    await bench.delete("it")
    await bench.submit("it")
    bench.clock.advance(6)
    assert await bench.store.tasks.promote(10) is None
    assert await bench.claimed_ids() == ["it"]


@pytest.mark.parametrize("end", ["succeed", "abort"])
async def test_a_task_that_ended_in_time_stays_as_it_ended(bench: Bench, end: str) -> None:
    await bench.end(OUTCOMES[end](await bench.start("it", expires=5000)))
    before = await bench.record("it")
    bench.clock.advance(6)
    assert await bench.store.tasks.promote(10) is None
    assert await bench.record("it") == before


async def test_a_snoozed_or_failed_run_does_not_bring_the_deadline_back(bench: Bench) -> None:
    await bench.end(Snoozed(await bench.start("snoozed", expires=5000), delay=60_000))
    await bench.end(Failed(await bench.start("failed", expires=5000), "boom", 60_000))
    assert await bench.store.tasks.promote(10) == 60_000
    await bench.end(Aborted(await bench.start("dead", expires=5000), "boom"))
    await bench.retry("dead")
    assert await bench.store.tasks.promote(10) == 60_000
