"""In which order ready tasks start: strict bands, queues as given, front, side and main lane."""

from __future__ import annotations

import pytest

from tickwork.model.outcomes import Aborted, Failed, Released, Snoozed, Succeeded
from tickwork.model.tasks import Band, Lease, ParkReason, Status, band_of
from tickwork.store.rules import PARK_MAX
from tickwork.testing.contract.bench import Bench

# --- bands, queues, first in first out


async def test_bands_are_strict_over_all_queues(bench: Bench) -> None:
    bench.together()
    for queue in ("a", "b"):
        for priority in (1, 5, 10):
            await bench.submit(f"{queue}{priority}", queue=queue, priority=priority)
    assert await bench.claimed_ids(queues=("a", "b")) == ["a10", "b10", "a5", "b5", "a1", "b1"]


async def test_queues_are_taken_in_the_order_given(bench: Bench) -> None:
    bench.together()
    for queue in ("a", "b", "c"):
        await bench.submit(queue, queue=queue)
    assert await bench.claimed_ids(queues=("c", "a", "b")) == ["c", "a", "b"]


async def test_the_order_of_many_queues_is_that_given(bench: Bench) -> None:
    """Also while tasks lie in front and side lanes, and in queues that the claim does not name."""
    bench.together()
    queues = tuple(f"q{number}" for number in range(40))
    for number, queue in enumerate(queues):
        await bench.submit(f"strange{number}", queue=queue, type="strange" if number % 4 else "other")
    assert await bench.claimed_ids(queues=queues) == []
    for queue in queues:
        await bench.submit(f"{queue}-back", queue=queue, priority=1)
    back = await bench.claim(40, queues=queues)
    for queue in reversed(queues):
        await bench.submit(f"{queue}-low", queue=queue, priority=1)
        await bench.submit(queue, queue=queue)
    await bench.store.tasks.finish([Released(grant.lease) for grant in back])
    named = tuple(reversed(queues[:20]))
    expected = [task for queue in named for task in aside_and_main(queue)]
    expected += [f"{queue}-{part}" for queue in named for part in ("back", "low")]
    assert await bench.claimed_ids(30, queues=named, types=("job", "strange")) == expected[:30]
    assert await bench.claimed_ids(100, queues=named, types=("job", "strange")) == expected[30:]
    for queue in named:
        await bench.submit(f"{queue}-again", queue=queue)
    assert await bench.claimed_ids(queues=named) == [f"{queue}-again" for queue in named]


async def test_bands_and_the_order_of_many_queues_hold_in_claims_of_any_size(bench: Bench) -> None:
    bench.together()
    queues = tuple(f"q{number:02}" for number in range(20))
    waiting = []
    for number in range(60):
        queue, priority = queues[number * 7 % 20], (1, 5, 9)[number * 5 % 3]
        if number % 4:  # some queues stay empty
            await bench.submit(f"t{number}", queue=queue, priority=priority)
            waiting.append((band_of(priority), queues.index(queue), number))
    await bench.submit("parked", queue="q03", type="strange")
    assert await bench.claimed_ids(0, queues=queues) == []
    expected = [f"t{number}" for *_, number in sorted(waiting)]
    found: list[str] = []
    for size in (1, 2, 7, 30, 60):
        found += await bench.claimed_ids(size, queues=queues)
    assert found == expected
    assert await bench.claimed_ids(5, queues=queues, types=("strange",)) == ["parked"]


def aside_and_main(queue: str) -> list[str]:
    number = int(queue[1:])
    return [f"strange{number}", queue] if number % 4 else [queue]


async def test_the_order_is_the_same_taken_one_by_one(bench: Bench) -> None:
    bench.together()
    for queue in ("a", "b"):
        for priority in (1, 5, 10):
            await bench.submit(f"{queue}{priority}", queue=queue, priority=priority)
    order = [(await bench.claimed_ids(1, queues=("b", "a")))[0] for _ in range(6)]
    assert order == ["b10", "a10", "b5", "a5", "b1", "a1"]


async def test_first_in_first_out_inside_a_lane(bench: Bench) -> None:
    bench.together()
    ids = await bench.submit_many(30)
    assert await bench.claimed_ids(7) + await bench.claimed_ids(23) == ids


async def test_two_claimers_share_a_lane_without_overlap(bench: Bench) -> None:
    bench.together()
    ids = await bench.submit_many(10)
    assert await bench.claimed_ids(4, worker="w1") == ids[:4]
    assert await bench.claimed_ids(10, worker="w2") == ids[4:]
    assert await bench.claimed_ids(10, worker="w1") == []


@pytest.mark.parametrize("priority", range(1, 11))
async def test_every_priority_has_its_band(bench: Bench, priority: int) -> None:
    await bench.submit("it", priority=priority)
    band = Band.HIGH if priority == 10 else Band.NORMAL if priority >= 5 else Band.LOW
    assert (await bench.store.queries.stats()).ready == {("default", band): 1}


async def test_inside_a_band_only_the_order_of_submission_counts(bench: Bench) -> None:
    bench.together()
    for priority in (5, 9, 7, 1, 4, 2, 10):
        await bench.submit(f"p{priority}", priority=priority)
    assert await bench.claimed_ids() == ["p10", "p5", "p9", "p7", "p1", "p4", "p2"]


async def test_a_high_task_behind_ten_thousand_low_ones_is_next(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(10_000, priority=1)
    await bench.submit("urgent", priority=10)
    assert await bench.claimed_ids(2) == ["urgent", "t0"]


@pytest.mark.parametrize("limit", [0, 1, 3, 5, 6])
async def test_a_claim_never_gets_more_than_its_limit(bench: Bench, limit: int) -> None:
    bench.together()
    ids = await bench.submit_many(5)
    assert await bench.claimed_ids(limit) == ids[:limit]


async def test_a_claim_takes_from_its_own_queues_only(bench: Bench) -> None:
    await bench.submit("mine", queue="a")
    await bench.submit("other", queue="b")
    assert await bench.claimed_ids(queues=()) == []
    assert await bench.claimed_ids(queues=("a", "nowhere")) == ["mine"]
    assert await bench.status("other") is Status.READY


async def test_a_queue_named_twice_gives_each_task_once(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(3)
    assert await bench.claimed_ids(queues=("default", "default")) == ["t0", "t1", "t2"]


async def test_a_claim_of_nothing_is_nothing(bench: Bench) -> None:
    claimed = await bench.store.tasks.claim(bench.new_claim(10))
    assert (claimed.grants, claimed.next_due_in) == ([], None)


@pytest.mark.parametrize("fair", [0, 1000], ids=["main", "fair"])
async def test_of_a_crowded_type_only_the_front_of_its_lanes_is_taken(bench: Bench, fair: int) -> None:
    bench.together()
    await bench.end(Released(await bench.start("front", fair=fair)))
    await bench.submit("fresh", fair=fair)
    await bench.submit("other", type="other", fair=fair)
    crowded = frozenset({"type:job", "queue:elsewhere"})
    assert await bench.claimed_ids(types=("job", "other"), front_only=crowded) == ["front", "other"]
    assert (await bench.record("fresh")).parked is ParkReason.LIMITED
    assert await bench.claimed_ids(front_only=crowded) == []
    assert await bench.claimed_ids() == ["fresh"]


@pytest.mark.parametrize("fair", [0, 1000], ids=["main", "fair"])
async def test_of_a_crowded_queue_only_the_front_of_its_lanes_is_taken(bench: Bench, fair: int) -> None:
    bench.together()
    await bench.end(Released(await bench.start("front", fair=fair)))
    await bench.submit("fresh", fair=fair)
    await bench.submit("strange", type="strange")
    assert await bench.claimed_ids(queues=("default",), types=("other",)) == []  # now they are all in side lanes
    await bench.submit("fresher", fair=fair)
    await bench.end(Released(await bench.start("second", priority=10)))
    await bench.submit("other", queue="other")
    crowded, queues = frozenset({"queue:default"}), ("default", "other")
    assert await bench.claimed_ids(queues=queues, front_only=crowded) == ["second", "other"]
    assert (await bench.record("fresher")).parked is None
    assert sorted(await bench.claimed_ids(queues=queues)) == ["fresh", "fresher", "front"]


async def test_a_crowded_type_that_needs_more_is_not_taken_by_others(bench: Bench) -> None:
    await bench.submit("picky", requires={"gpu": "a100"})
    assert await bench.claimed_ids(front_only=frozenset({"type:job"})) == []
    assert (await bench.record("picky")).parked is ParkReason.LIMITED
    assert await bench.claimed_ids() == []
    assert await bench.claimed_ids(labels={"gpu": "a100"}) == ["picky"]


async def test_a_grant_tells_since_when_the_task_could_run(bench: Bench) -> None:
    await bench.submit("now")
    await bench.store.tasks.submit([bench.spec("later", delay=5000)])
    began = bench.clock.now()
    bench.clock.advance(7)
    grants = {grant.lease.id: grant for grant in await bench.claim(2)}
    assert [grants[each].ready_at for each in ("now", "later")] == [began, began + 5000]

    await bench.end(Snoozed(grants["now"].lease, delay=1000))
    await bench.end(Released(grants["later"].lease))
    began = bench.clock.now()
    bench.clock.advance(3)
    again = {grant.lease.id: grant.ready_at for grant in await bench.claim(2)}
    assert again == {"now": began + 1000, "later": None}  # when it was given back is not kept


async def test_a_grant_does_not_tell_when_the_task_was_resolved(bench: Bench) -> None:
    await bench.submit("first")
    await bench.store.tasks.submit([bench.spec("second", depends_on=("first",))])
    await bench.end(Succeeded((await bench.claim())[0].lease))
    await bench.resolve("second", "first", ok=True)
    assert [(grant.lease.id, grant.ready_at) for grant in await bench.claim()] == [("second", None)]


async def test_a_grant_tells_what_to_run(bench: Bench) -> None:
    spec = bench.spec("it", payload=b'{"a":1}', tags={"env": "prod"})
    await bench.store.tasks.submit([spec])
    (grant,) = await bench.claim()
    assert (grant.spec, grant.attempt, grant.losses, grant.submitted_at) == (spec, 1, 0, bench.clock.now())
    record = await bench.record("it")
    assert grant.lease == record.lease
    assert (record.worker_id, record.started_at, record.lease_until) == (
        "w1",
        bench.clock.now(),
        bench.clock.now() + 30_000,
    )


# --- time


async def test_delayed_tasks_wait_for_their_time_to_the_millisecond(bench: Bench) -> None:
    await bench.submit("later", delay=5000)
    bench.clock.advance(4.999)
    assert await bench.claimed_ids() == []
    bench.clock.advance(0.001)
    assert await bench.claimed_ids() == ["later"]


async def test_due_tasks_start_in_order_of_their_time(bench: Bench) -> None:
    bench.together()
    now = bench.clock.now()
    await bench.submit("third", at=now + 3000)
    await bench.submit("first", delay=1000)
    await bench.submit("second", at=now + 2000)
    await bench.submit("also second", delay=2000)
    bench.clock.advance(5)
    assert await bench.claimed_ids() == ["first", "second", "also second", "third"]


async def test_what_comes_due_goes_behind_what_was_ready(bench: Bench) -> None:
    await bench.submit("delayed", delay=1000)
    bench.clock.advance(0.5)
    await bench.submit("ready")
    bench.clock.advance(0.5)
    assert await bench.claimed_ids() == ["ready", "delayed"]


async def test_a_high_task_that_comes_due_passes_a_low_backlog(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(20, priority=1)
    await bench.submit("urgent", priority=10, delay=1000)
    bench.clock.advance(1)
    assert await bench.claimed_ids(1) == ["urgent"]


async def test_promote_moves_no_more_than_its_limit_earliest_first(bench: Bench) -> None:
    bench.together()
    for second in (3, 1, 2):
        await bench.submit(f"s{second}", delay=second * 1000)
    bench.clock.advance(10)
    assert await bench.store.tasks.promote(2) == 0
    assert [await bench.status(f"s{n}") for n in (1, 2, 3)] == [Status.READY, Status.READY, Status.PENDING]
    assert await bench.store.tasks.promote(2) is None


async def test_next_due_is_told_by_promote_and_claim(bench: Bench) -> None:
    await bench.submit("later", delay=5000, queue="elsewhere")
    assert await bench.store.tasks.promote(10) == 5000
    bench.clock.advance(2)
    assert (await bench.store.tasks.claim(bench.new_claim())).next_due_in == 3000
    await bench.cancel("later", False)
    assert await bench.store.tasks.promote(10) is None


async def test_a_claim_sent_again_tells_the_next_due_time_too(bench: Bench) -> None:
    bench.together()
    await bench.submit("now")
    await bench.submit("later", delay=5000)
    claim = bench.new_claim(nonce="same")
    first = await bench.store.tasks.claim(claim)
    again = await bench.store.tasks.claim(claim)
    assert first.next_due_in == 5000
    assert again == first


async def test_run_now_goes_to_the_tail(bench: Bench) -> None:
    bench.together()
    await bench.submit("hastened", delay=60_000)
    await bench.submit("ready")
    assert await bench.run_now("hastened") is Status.PENDING
    assert await bench.claimed_ids() == ["ready", "hastened"]


# --- the front lane


async def come_back(bench: Bench, how: str, lease: Lease, worker: str = "w1") -> None:
    """A task that runs comes back without blame."""
    if how == "released":
        assert await bench.end(Released(lease)) == "done"
    elif how == "reclaimed":
        assert (await bench.store.tasks.reclaim(10, gone=(worker,))).ids == [lease.id]
    else:
        assert await bench.end(Aborted(lease, "boom")) == "done"
        assert await bench.retry(lease.id) is Status.DEAD


HOW = pytest.mark.parametrize("how", ["released", "reclaimed", "retried by hand"])


@HOW
async def test_what_comes_back_without_blame_starts_before_a_backlog(bench: Bench, how: str) -> None:
    bench.together()
    lease = await bench.start("it")
    await bench.submit_many(50)
    await come_back(bench, how, lease)
    assert await bench.claimed_ids(2) == ["it", "t0"]


@HOW
async def test_the_front_lane_is_first_in_first_out(bench: Bench, how: str) -> None:
    bench.together()
    await bench.submit_many(3)
    leases = {f"t{n}": (await bench.claim(worker=f"t{n}"))[0].lease for n in range(3)}
    await bench.submit("backlog")
    for name in ("t1", "t2", "t0"):
        await come_back(bench, how, leases[name], worker=name)
    assert await bench.claimed_ids() == ["t1", "t2", "t0", "backlog"]


@HOW
async def test_the_front_lane_does_not_leave_its_band(bench: Bench, how: str) -> None:
    bench.together()
    await come_back(bench, how, await bench.start("low", priority=1))
    await bench.submit("normal")
    await bench.submit("low backlog", priority=1)
    assert await bench.claimed_ids() == ["normal", "low", "low backlog"]


async def test_the_front_of_a_later_queue_waits_for_the_queues_before_it(bench: Bench) -> None:
    bench.together()
    await bench.submit("back", queue="b")
    (grant,) = await bench.claim(queues=("b",))
    await bench.end(Released(grant.lease))
    await bench.submit("ahead", queue="a")
    assert await bench.claimed_ids(queues=("a", "b")) == ["ahead", "back"]


async def test_a_retry_that_comes_due_goes_to_the_tail(bench: Bench) -> None:
    bench.together()
    lease = await bench.start("failed")
    await bench.submit_many(3)
    await bench.end(Failed(lease, "boom", 1000))
    bench.clock.advance(1)
    assert await bench.claimed_ids() == ["t0", "t1", "t2", "failed"]


async def test_a_snoozed_task_goes_to_the_tail(bench: Bench) -> None:
    bench.together()
    lease = await bench.start("snoozed")
    await bench.submit_many(2)
    await bench.end(Snoozed(lease, delay=1000))
    bench.clock.advance(1)
    assert await bench.claimed_ids() == ["t0", "t1", "snoozed"]


async def test_a_retry_of_what_was_once_in_front_goes_to_the_tail(bench: Bench) -> None:
    await bench.end(Released(await bench.start("it")))
    (grant,) = await bench.claim()
    await bench.end(Failed(grant.lease, "boom", 0))
    await bench.submit("other")
    assert await bench.claimed_ids() == ["other", "it"]


# --- side lanes


async def test_an_unknown_type_is_parked_once_and_stays_ready(bench: Bench) -> None:
    await bench.submit("strange", type="strange")
    await bench.submit("known")
    for _ in range(3):
        await bench.claimed_ids()
    assert await bench.status("strange") is Status.READY
    assert await bench.facts("strange") == ["task.submitted", "task.parked"]
    stats = await bench.store.queries.stats()
    assert stats.parked == {("default", "strange"): 1}
    assert stats.ready == {("default", Band.NORMAL): 1}


async def test_the_log_says_why_a_task_was_parked(bench: Bench) -> None:
    await bench.submit("strange", type="resize")
    await bench.claim()
    assert "resize" in (await bench.events("strange"))[-1].detail


async def test_what_lies_beyond_the_limit_is_not_parked(bench: Bench) -> None:
    bench.together()
    await bench.submit("known")
    await bench.submit("strange", type="strange")
    assert await bench.claimed_ids(1) == ["known"]
    assert (await bench.store.queries.stats()).parked == {}


async def test_a_parked_task_starts_for_a_worker_that_knows_it_before_main(bench: Bench) -> None:
    bench.together()
    await bench.submit("strange", type="strange")
    await bench.claim()
    await bench.submit_many(2)
    assert await bench.claimed_ids(types=("job", "strange")) == ["strange", "t0", "t1"]
    assert (await bench.store.queries.stats()).parked == {}


async def test_parked_tasks_of_several_types_start_in_the_order_they_were_parked(bench: Bench) -> None:
    bench.together()
    for name in ("b1", "a1", "c1", "b2", "a2"):
        await bench.submit(name, type=name[0])
    await bench.claim(types=("other",))
    assert await bench.claimed_ids(3, types=("a", "b")) == ["b1", "a1", "b2"]
    assert await bench.claimed_ids(3, types=("a", "b", "c")) == ["c1", "a2"]


async def test_front_goes_before_side_and_side_before_main(bench: Bench) -> None:
    bench.together()
    lease = await bench.start("front")
    await bench.submit("side", type="strange")
    await bench.claim()
    await bench.submit("main")
    await bench.end(Released(lease))
    assert await bench.claimed_ids(types=("job", "strange")) == ["front", "side", "main"]


async def test_a_parked_high_task_goes_before_a_normal_one(bench: Bench) -> None:
    bench.together()
    await bench.submit("high", type="strange", priority=10)
    await bench.submit("low", type="strange", priority=1)
    await bench.claim()
    await bench.submit("normal")
    assert await bench.claimed_ids(types=("job", "strange")) == ["high", "normal", "low"]


async def test_a_front_task_of_unknown_type_does_not_block_the_lane(bench: Bench) -> None:
    await bench.submit("strange", type="strange")
    (grant,) = await bench.claim(types=("strange",))
    await bench.end(Released(grant.lease))
    await bench.submit("known")
    assert await bench.claimed_ids() == ["known"]
    assert await bench.facts("strange") == ["task.submitted", "task.claimed", "task.released", "task.parked"]
    assert await bench.claimed_ids(types=("strange",)) == ["strange"]


async def test_known_tasks_behind_strange_ones_keep_their_queues_rank(bench: Bench) -> None:
    """Strange heads that fill a whole look at the first queue must not let the second queue pass."""
    bench.together()
    await bench.submit_many(5, "s", queue="a", type="strange")
    await bench.submit_many(5, "first", queue="a")
    await bench.submit_many(5, "second", queue="b")
    assert await bench.claimed_ids(3, queues=("a", "b")) == ["first0", "first1", "first2"]


async def test_known_tasks_behind_strange_ones_keep_their_band(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(5, "s", queue="a", type="strange", priority=10)
    await bench.submit("high", queue="a", priority=10)
    await bench.submit_many(5, "low", queue="b", priority=1)
    assert await bench.claimed_ids(2, queues=("b", "a")) == ["high", "low0"]


async def test_strange_tasks_of_a_queue_that_was_not_reached_stay_where_they_are(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(3, "s", queue="a", type="strange")
    await bench.submit_many(3, "first", queue="a")
    await bench.submit("untouched", queue="b", type="strange")
    await bench.submit("second", queue="b")
    assert await bench.claimed_ids(3, queues=("a", "b")) == ["first0", "first1", "first2"]
    assert await bench.facts("untouched") == ["task.submitted"]


@pytest.mark.parametrize("limit", [1, 10, 300])
async def test_known_tasks_behind_more_strange_ones_than_a_claim_may_park(bench: Bench, limit: int) -> None:
    bench.together()
    strange = await bench.submit_many(2 * PARK_MAX + 50, "s", type="strange")
    await bench.submit("known")
    claims, found = 0, list[str]()
    while not found:
        found = await bench.claimed_ids(limit)
        claims += 1
        parked = (await bench.store.queries.stats()).parked.get(("default", "strange"), 0)
        assert parked <= claims * PARK_MAX, "one claim does a bounded amount of work"
        assert claims <= 3, "and each one comes nearer"
    assert found == ["known"]
    assert await bench.claimed_ids(400, types=("strange",)) == strange, "none was lost, and their order holds"


async def test_a_claim_that_could_not_look_at_everything_asks_to_be_sent_again(bench: Bench) -> None:
    await bench.submit("later", delay=60_000)
    await bench.submit_many(PARK_MAX + 50, "s", type="strange")
    await bench.submit("known")
    first = await bench.store.tasks.claim(bench.new_claim(5))
    if not first.grants:
        assert first.next_due_in == 0
        second = await bench.store.tasks.claim(bench.new_claim(5))
        assert ([grant.spec.id for grant in second.grants], second.next_due_in) == (["known"], 60_000)


async def test_a_strange_high_backlog_holds_up_low_tasks_for_a_bounded_number_of_claims(bench: Bench) -> None:
    await bench.submit_many(PARK_MAX + 1, "s", type="strange", priority=10)
    await bench.submit("low", priority=1, queue="other")
    queues = ("default", "other")
    found = await bench.claimed_ids(5, queues=queues) or await bench.claimed_ids(5, queues=queues)
    assert found == ["low"]


# --- pauses


async def test_a_paused_queue_gives_nothing_and_loses_nothing(bench: Bench) -> None:
    await bench.submit("held", queue="a")
    await bench.submit("free", queue="b")
    await bench.store.operators.pause("queue", "a")
    assert await bench.claimed_ids(queues=("a", "b")) == ["free"]
    assert await bench.facts("held") == ["task.submitted"]
    assert await bench.store.operators.resume("queue", "a") is True
    assert await bench.claimed_ids(queues=("a", "b")) == ["held"]


async def test_a_paused_queue_still_takes_in_and_promotes(bench: Bench) -> None:
    await bench.store.operators.pause("queue", "default")
    await bench.submit("later", delay=1000)
    bench.clock.advance(1)
    assert await bench.claimed_ids() == []
    assert await bench.status("later") is Status.READY


async def test_a_paused_type_is_parked_and_the_rest_goes_on(bench: Bench) -> None:
    await bench.submit("held", type="mail")
    await bench.submit("free")
    await bench.store.operators.pause("type", "mail")
    assert await bench.claimed_ids(types=("job", "mail")) == ["free"]
    assert await bench.status("held") is Status.READY
    assert (await bench.store.queries.stats()).parked == {("default", "mail"): 1}


async def test_a_resumed_type_starts_before_what_came_later(bench: Bench) -> None:
    await bench.submit("held", type="mail")
    await bench.store.operators.pause("type", "mail")
    await bench.claim(types=("mail",))
    await bench.submit("later", type="mail")
    await bench.store.operators.resume("type", "mail")
    assert await bench.claimed_ids(types=("mail",)) == ["held", "later"]


async def test_a_pause_does_not_touch_what_runs(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.store.operators.pause("queue", "default")
    await bench.store.operators.pause("type", "job")
    assert await bench.store.tasks.extend([lease], 30_000) == ["held"]
    assert await bench.end(Succeeded(lease)) == "done"


async def test_a_queue_and_a_type_of_one_name_are_paused_apart(bench: Bench) -> None:
    await bench.submit("it", queue="mail", type="job")
    await bench.store.operators.pause("type", "mail")
    assert await bench.claimed_ids(queues=("mail",)) == ["it"]
    assert await bench.store.operators.resume("queue", "mail") is False
    assert await bench.store.operators.resume("type", "mail") is True
    assert await bench.store.operators.resume("type", "mail") is False


# --- leaving a lane without running


async def test_a_cancelled_ready_task_never_starts(bench: Bench) -> None:
    await bench.submit_many(3)
    assert await bench.cancel("t1", False) is Status.READY
    assert await bench.claimed_ids() == ["t0", "t2"]


async def test_a_cancelled_parked_task_never_starts(bench: Bench) -> None:
    await bench.submit_many(3, type="strange")
    await bench.claim()
    assert await bench.cancel("t1", False) is Status.READY
    assert (await bench.store.queries.stats()).parked == {("default", "strange"): 2}
    assert await bench.claimed_ids(types=("strange",)) == ["t0", "t2"]


async def test_a_cancelled_front_task_never_starts(bench: Bench) -> None:
    await bench.end(Released(await bench.start("front")))
    await bench.submit("main")
    await bench.cancel("front", False)
    assert await bench.claimed_ids() == ["main"]


async def test_a_parked_task_that_was_cancelled_and_retried_goes_to_the_front(bench: Bench) -> None:
    await bench.submit("it", type="strange")
    await bench.claim()
    await bench.submit("main")
    await bench.cancel("it", False)
    await bench.retry("it")
    assert await bench.claimed_ids(types=("job", "strange")) == ["it", "main"]


async def test_nothing_starts_twice(bench: Bench) -> None:
    await bench.submit_many(20)
    leases: list[Lease] = []
    for worker in ("w1", "w2", "w3", "w4"):
        leases += [grant.lease for grant in await bench.claim(7, worker=worker)]
    assert len({lease.id for lease in leases}) == len(leases) == 20


# --- why a task waits aside


async def test_a_parked_task_says_that_its_type_is_unknown(bench: Bench) -> None:
    await bench.submit("it", type="strange")
    assert (await bench.record("it")).parked is None
    await bench.claim()
    assert (await bench.record("it")).parked is ParkReason.TYPE_UNKNOWN
    assert await bench.claimed_ids(types=("strange",)) == ["it"]
    assert (await bench.record("it")).parked is None


async def test_a_parked_task_says_that_its_type_is_paused(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(2, "known")
    await bench.submit("strange", type="strange")
    await bench.store.operators.pause("type", "job")
    await bench.store.operators.pause("type", "strange")
    await bench.claim(5)
    for task_id in ("known0", "known1", "strange"):
        assert (await bench.record(task_id)).parked is ParkReason.TYPE_PAUSED
    await bench.store.operators.resume("type", "job")
    assert await bench.claimed_ids(1) == ["known0"]
    assert (await bench.record("known0")).parked is None
    assert (await bench.record("known1")).parked is ParkReason.TYPE_PAUSED, "it waits there still"


async def test_a_parked_task_that_ends_or_comes_back_waits_aside_no_more(bench: Bench) -> None:
    await bench.submit("it", type="strange")
    await bench.claim()
    await bench.cancel("it", False)
    assert (await bench.record("it")).parked is None
    await bench.retry("it")
    assert (await bench.record("it")).parked is None
    await bench.claim()
    assert (await bench.record("it")).parked is ParkReason.TYPE_UNKNOWN
    (grant,) = await bench.claim(types=("strange",))
    await bench.end(Released(grant.lease))
    assert (await bench.record("it")).parked is None
