"""Fair queues: the tasks of one key do not delay those of another."""

from __future__ import annotations

from typing import Any

import pytest

from tickwork.model.outcomes import Failed, Released, Snoozed, Succeeded
from tickwork.model.tasks import Lease, ParkReason, Place, Status
from tickwork.store.contract import Aside, Assignment, Query
from tickwork.store.hints import ASSIGN
from tickwork.store.rules import FAIR_HEADS, PARK_MAX
from tickwork.testing.contract.bench import START, Bench

ONE = 1000  # the cost of a task whose key has the weight 1


async def _submit(bench: Bench, *names: str, cost: int = ONE, **fields: Any) -> None:
    """A task for each name: the key, a digit."""
    for name in names:
        await bench.submit(name, key=name.rstrip("0123456789") or None, fair=cost, **fields)


# --- the order


async def test_keys_take_turns_and_each_keeps_its_own_order(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "a2", "a3", "a4", "b1", "b2", "c1")
    assert await bench.claimed_ids() == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


async def test_turns_are_the_same_taken_one_by_one(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "a2", "a3", "a4", "b1", "b2", "c1")
    found = [task_id for _ in range(7) for task_id in await bench.claimed_ids(1)]
    assert found == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


async def test_one_who_comes_late_starts_soon(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(300, "a", key="a", fair=ONE)
    assert await bench.claimed_ids(50) == [f"a{number}" for number in range(50)]
    await _submit(bench, "b1", "b2")
    assert await bench.claimed_ids(5) == ["a50", "b1", "a51", "b2", "a52"]


async def test_time_without_tasks_saves_nothing_up(bench: Bench) -> None:
    """A key that was idle gets its share from now on, and not what it has left to others."""
    bench.together()
    await _submit(bench, "b1")
    await bench.submit_many(100, "a", key="a", fair=ONE)
    assert len(await bench.claimed_ids(50)) == 50
    await _submit(bench, "b2", "b3", "b4")
    assert await bench.claimed_ids(6) == ["a49", "b2", "a50", "b3", "a51", "b4"]


async def test_a_share_is_that_of_the_weight(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(400, "b", key="b", fair=ONE)
    await bench.submit_many(400, "a", key="a", fair=round(ONE / 3))
    started = await bench.claimed_ids(400)
    assert 298 <= sum(task_id.startswith("a") for task_id in started) <= 302
    for start in range(0, 400, 40):  # and so in every part of it
        assert 29 <= sum(task_id.startswith("a") for task_id in started[start : start + 40]) <= 31


async def test_tasks_without_a_key_share_one(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "1", "2", "3", "a1", "a2")
    assert await bench.claimed_ids() == ["1", "a1", "2", "a2", "3"]


async def test_queues_and_bands_are_fair_each_by_itself(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "a2", "b1", queue="one")
    await _submit(bench, "b2", "b3", "a3", queue="two")
    await _submit(bench, "a4", "a5", "b4", queue="one", priority=10)
    expected = ["a4", "b4", "a5", "a1", "b1", "a2", "b2", "a3", "b3"]
    assert await bench.claimed_ids(queues=("one", "two")) == expected


async def test_fair_lanes_are_found_among_many_queues(bench: Bench) -> None:
    bench.together()
    queues = tuple(f"q{number:02}" for number in range(40))
    for queue in queues:
        await _submit(bench, f"{queue}a", f"{queue}b", queue=queue)
    expected = [f"{queue}{key}" for queue in queues for key in ("a", "b")]
    assert await bench.claimed_ids(30, queues=queues) == expected[:30]
    assert await bench.claimed_ids(50, queues=queues) == expected[30:]
    await _submit(bench, "again", queue="q07")
    assert await bench.claimed_ids(queues=queues) == ["again"]


async def test_what_came_while_the_queue_was_not_fair_starts_first(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "a2", "b1")
    for name in ("a3", "a4"):
        await bench.submit(name, key="a")
    assert await bench.claimed_ids(1) == ["a3"]
    assert await bench.claimed_ids() == ["a4", "a1", "b1", "a2"]


async def test_however_many_tasks_of_one_key_delay_another_by_one_task(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(20_000, "a", key="a", fair=ONE)
    assert len(await bench.claimed_ids(10)) == 10
    await _submit(bench, "b1")
    assert "b1" in await bench.claimed_ids(2)


# --- every way into the lane


async def test_a_task_takes_its_turn_when_it_is_due(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "b1", "b2", delay=1000)
    await _submit(bench, "a1", "a2", "a3")
    assert await bench.claimed_ids(1) == ["a1"]
    bench.clock.advance(1)
    assert await bench.claimed_ids() == ["b1", "a2", "b2", "a3"]


async def test_tasks_that_are_due_together_take_their_turns(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "a2", "b1", "c1", delay=1000)
    bench.clock.advance(1)
    assert await bench.claimed_ids() == ["a1", "b1", "c1", "a2"]


async def test_a_retry_takes_its_turn_when_it_is_due(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "b1", "a1", "a2", "a3", "a4")
    (grant,) = await bench.claim(1)
    await bench.end(Failed(grant.lease, "boom", 1000))
    assert await bench.claimed_ids(2) == ["a1", "a2"]
    bench.clock.advance(1)
    assert await bench.claimed_ids() == ["b1", "a3", "a4"]


async def test_a_snoozed_task_takes_its_turn_again(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "a2", "b1", "b2")
    (grant,) = await bench.claim(1)
    await bench.end(Snoozed(grant.lease, None, 1000, ""))
    bench.clock.advance(1)
    assert await bench.claimed_ids() == ["b1", "a2", "b2", "a1"]


async def test_tasks_that_are_to_run_now_take_their_turns(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "b1", "b2", delay=90_000)
    await _submit(bench, "a1", "a2")
    await bench.store.operators.run_now(["b1", "b2"])
    assert await bench.claimed_ids() == ["b1", "a1", "b2", "a2"]


async def test_a_task_takes_its_turn_when_nothing_blocks_it_any_more(bench: Bench) -> None:
    bench.together()
    lease = await bench.start("first")
    await _submit(bench, "b1", "b2", depends_on=("first",))
    await _submit(bench, "a1", "a2", "a3")
    await bench.end(Succeeded(lease))
    assert await bench.claimed_ids(2) == ["a1", "a2"]
    for name in ("b1", "b2"):
        assert await bench.resolve(name, "first", ok=True)
    assert await bench.claimed_ids() == ["b1", "a3", "b2"]


async def test_a_submit_that_creates_nothing_costs_its_key_nothing(bench: Bench) -> None:
    bench.together()
    spec = bench.spec("a1", key="a", fair=ONE, dedup_key="d", dedup_ttl=90_000)
    plain = bench.spec("a2", key="a", fair=ONE)
    for _ in range(3):
        await bench.store.tasks.submit([spec])
        await bench.submit("a9", key="a", fair=ONE, dedup_key="d", dedup_ttl=90_000)
        await bench.submit("a9", key="a", fair=ONE, depends_on=("nobody",))
        await bench.store.tasks.submit([plain])
    await _submit(bench, "a3", "b1", "b2", "b3")
    assert await bench.claimed_ids() == ["a1", "b1", "a2", "b2", "a3", "b3"]


# --- every way out of it, and the other lanes


async def test_what_comes_back_without_blame_starts_first(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "a2", "b1")
    (grant,) = await bench.claim(1)
    await bench.end(Released(grant.lease))
    assert (await bench.record("a1")).place is Place.FRONT
    assert await bench.claimed_ids() == ["a1", "b1", "a2"]


async def test_a_task_that_nobody_may_start_waits_aside(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", type="strange")
    await _submit(bench, "a2", "b1")
    assert await bench.claimed_ids() == ["b1", "a2"]
    assert (await bench.record("a1")).parked is ParkReason.TYPE_UNKNOWN
    await _submit(bench, "c1")
    assert await bench.claimed_ids(types=("job", "strange")) == ["a1", "c1"]


async def test_one_claim_puts_no_more_aside_than_it_may(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(PARK_MAX + 10, "a", key="a", fair=ONE, type="strange")
    await _submit(bench, "b1")
    claimed = await bench.store.tasks.claim(bench.new_claim(5))
    assert [grant.spec.id for grant in claimed.grants] == ["b1"]
    assert claimed.next_due_in == 0
    assert sum((await bench.store.queries.stats()).parked.values()) == PARK_MAX
    assert await bench.claimed_ids(5) == []
    assert sum((await bench.store.queries.stats()).parked.values()) == PARK_MAX + 10


async def test_a_task_is_taken_out_of_the_middle(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "a2", "a3", "b1", "b2")
    assert await bench.cancel("a2") is Status.READY
    assert await bench.reschedule("b1", START + 90_000) is Status.READY
    assert await bench.claimed_ids() == ["a1", "b2", "a3"]


@pytest.mark.parametrize("how", ["cancelled", "rescheduled"])
async def test_an_empty_lane_forgets_who_had_many_tasks(bench: Bench, how: str) -> None:
    bench.together()
    ids = await bench.submit_many(50, "a", key="a", fair=ONE)
    if how == "cancelled":
        await bench.store.operators.cancel(ids, False)
    else:
        await bench.store.operators.reschedule(ids, START + 90_000)
    await _submit(bench, "b1", "b2", "a90", "a91")
    assert await bench.claimed_ids() == ["b1", "a90", "b2", "a91"]


async def test_pruning_leaves_the_turns_as_they_are(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(20, "a", key="a", fair=ONE)
    await _submit(bench, "c1")
    assert len(await bench.claimed_ids(11)) == 11
    await bench.store.operators.prune(100)
    await _submit(bench, "b1", "b2", "c2", "a90")
    assert await bench.claimed_ids(6) == ["a10", "b1", "c2", "a11", "b2", "a12"]
    await bench.store.operators.prune(1)
    assert (await bench.claimed_ids())[-1] == "a90"


# --- what others see of it


async def test_a_look_shows_tasks_in_the_order_of_claims(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "a2", "a3", "b1", "b2")
    seen = await bench.look()
    assert [each.id for each in seen.waiting] == ["a1", "b1", "a2", "b2", "a3"]
    assert {each.key for each in seen.waiting} == {"a", "b"}
    assert {(each.queue, each.band, each.kind) for each in seen.waiting} == {("default", 1, "job")}
    assert [each.id for each in (await bench.look(slots=2)).waiting] == ["a1", "b1"]


async def test_assigned_tasks_count_as_taken(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "a2", "a3", "a4")
    given = [Assignment("a1", "w1"), Assignment("a2", "w1")]
    assert (await bench.store.tasks.assign(given, 10_000, [Aside("a4", ParkReason.TYPE_UNKNOWN)])).done == [True, True]
    await _submit(bench, "b1", "b2")
    assert [each.id for each in (await bench.look()).waiting] == ["a3", "b1", "b2"]
    assert await bench.claimed_ids(inboxes=("w1",)) == ["a1", "a2", "a4", "a3", "b1", "b2"]


async def test_an_inbox_has_fair_tasks_in_the_order_of_their_assignments(bench: Bench) -> None:
    bench.together()
    await bench.submit("plain")
    await _submit(bench, "a1", "a2")
    for name in ("a2", "plain", "a1"):
        assert await bench.assign(name)
    assert await bench.claimed_ids(inboxes=("w1",)) == ["plain", "a2", "a1"]


async def test_free_slots_wake_whoever_assigns_tasks_of_a_fair_queue(bench: Bench) -> None:
    await bench.look()
    await _submit(bench, "a1")
    with bench.store.hint(ASSIGN) as hint:
        await bench.listens(hint)
        while await hint.wait(0.2):
            pass
        claim = bench.new_claim(queues=(), inboxes=("w1",), assigned=("default",))
        await bench.store.tasks.finish([], claim)
        assert await hint.wait(10)


async def test_it_is_known_how_many_are_ahead(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "c1", priority=10)
    await _submit(bench, "a1", "a2", "a3", "b1", "b2")
    await bench.submit("plain")
    ahead = {}
    for name in ("plain", "a1", "b1", "a2", "b2", "a3", "c1"):
        situation = await bench.store.queries.situation(name)
        assert situation is not None
        ahead[name] = situation.ahead
    assert ahead == {"c1": 0, "plain": 1, "a1": 2, "b1": 3, "a2": 4, "b2": 5, "a3": 6}


async def test_fair_tasks_are_listed_and_counted(bench: Bench) -> None:
    await _submit(bench, "a1", "a2", "b1")
    await bench.submit("plain")
    stats = await bench.store.queries.stats()
    assert (stats.ready, stats.statuses[Status.READY], stats.parked) == ({("default", 1): 4}, 4, {})
    found, cursor = [], None
    while True:
        records, cursor = await bench.store.queries.page(Query(status=Status.READY, limit=1, cursor=cursor))
        found += records
        if cursor is None:
            break
    assert sorted(record.id for record in found) == ["a1", "a2", "b1", "plain"]
    assert {record.id: record.place for record in found} == dict.fromkeys(("a1", "a2", "b1"), Place.FAIR) | {
        "plain": Place.MAIN
    }
    assert {record.id: record.spec.fair for record in found if record.id != "plain"} == dict.fromkeys(
        ("a1", "a2", "b1"), ONE
    )


async def test_the_longest_wait_is_found_behind_a_key_that_came_late(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(2 * FAIR_HEADS, "a", key="a", fair=ONE)
    await bench.claimed_ids(1)
    bench.clock.advance(60)
    await _submit(bench, "b1", "c1", cost=1)
    assert await bench.store.queries.waiting_since() == {"default": START}


async def test_a_grant_of_a_fair_task_says_what_was_asked(bench: Bench) -> None:
    spec = bench.spec("a1", key="a", fair=333, payload=b"[1]", tags={"t": "1"}, requires={"gpu": "a100"}, retention=1)
    await bench.store.tasks.submit([spec])
    (grant,) = await bench.claim(1, labels={"gpu": "a100"})
    assert grant.spec == spec
    assert grant.lease == Lease("a1", grant.lease.fence, grant.lease.nonce)


async def test_a_large_fair_task_starts_like_any_other(bench: Bench) -> None:
    bench.together()
    await _submit(bench, "a1", "b1", payload=b'"' + b"x" * 100_000 + b'"')
    await _submit(bench, "a2", payload=b'"' + b"x" * 2_000 + b'"')
    claimed = await bench.claim(10)
    assert [(grant.spec.id, len(grant.spec.payload)) for grant in claimed] == [
        ("a1", 100_002), ("b1", 100_002), ("a2", 2_002),
    ]  # fmt: skip
