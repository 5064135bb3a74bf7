"""Assignments: tasks in the inboxes of workers, and tasks that only some workers may run."""

from __future__ import annotations

from typing import Literal

import pytest

from tickwork.model.members import Worker
from tickwork.model.outcomes import Succeeded
from tickwork.model.tasks import ParkReason, Place, Status
from tickwork.store.contract import Aside, Assignment, Look
from tickwork.store.hints import ASSIGN, WORK
from tickwork.testing.contract.bench import Bench

# --- needs: labels and targets


async def test_only_a_worker_with_the_labels_gets_a_task(bench: Bench) -> None:
    await bench.submit("render", requires={"gpu": "a100", "zone": "eu"})
    assert await bench.claimed_ids() == []
    assert await bench.claimed_ids(labels={"gpu": "a100"}) == []
    assert await bench.claimed_ids(labels={"gpu": "a10", "zone": "eu"}) == []
    assert await bench.claimed_ids(labels={"gpu": "a100", "zone": "eu", "disk": "ssd"}) == ["render"]


async def test_a_task_waits_aside_for_its_labels_and_holds_up_no_other(bench: Bench) -> None:
    bench.together()
    await bench.submit("render", requires={"gpu": "a100"})
    await bench.submit("plain")
    assert await bench.claimed_ids() == ["plain"]
    record = await bench.record("render")
    assert (record.status, record.place, record.parked) == (Status.READY, Place.SIDE, ParkReason.LABELS_MISSING)
    assert record.spec.requires == {"gpu": "a100"}
    assert await bench.store.queries.audit() == []
    await bench.submit("later", requires={"gpu": "a100"})
    assert await bench.claimed_ids(labels={"gpu": "a100"}) == ["render", "later"]


async def test_a_type_without_a_handler_is_the_reason_before_labels(bench: Bench) -> None:
    await bench.submit("render", type="render", requires={"gpu": "a100"})
    await bench.claimed_ids(labels={"gpu": "a100"})
    assert (await bench.record("render")).parked is ParkReason.TYPE_UNKNOWN
    assert await bench.claimed_ids(types=("render",)) == []
    assert await bench.claimed_ids(types=("render",), labels={"gpu": "a100"}) == ["render"]


async def test_a_paused_type_is_paused_whatever_its_tasks_need(bench: Bench) -> None:
    await bench.store.operators.pause("type", "job")
    await bench.submit("render", requires={"gpu": "a100"})
    assert await bench.claimed_ids(labels={"gpu": "a100"}) == []
    assert (await bench.record("render")).parked is ParkReason.TYPE_PAUSED
    await bench.store.operators.resume("type", "job")
    assert await bench.claimed_ids() == []
    assert await bench.claimed_ids(labels={"gpu": "a100"}) == ["render"]


@pytest.mark.parametrize("target", ["w2", "w2#5f3a"])
async def test_a_task_may_name_the_one_worker_that_runs_it(bench: Bench, target: str) -> None:
    await bench.submit("mine", target=target)
    assert await bench.claimed_ids(worker="w1") == []
    assert await bench.claimed_ids(worker="w20") == []
    assert await bench.claimed_ids(worker="w2#5f3a") == ["mine"]


async def test_a_target_of_an_executor_is_no_worker(bench: Bench) -> None:
    await bench.submit("call", executor="http", target="crm")
    assert await bench.claimed_ids(worker="w1") == ["call"]


async def test_tasks_with_needs_are_listed_by_their_type(bench: Bench) -> None:
    await bench.submit("render", requires={"gpu": "a100"}, key="k")
    await bench.claimed_ids()
    assert await bench.walk(type="job") == ["render"]
    assert (await bench.store.queries.stats()).parked == {("default", "job"): 1}
    assert {event.type for event in await bench.events("render")} == {"job"}
    await bench.store.operators.index(True)
    await bench.submit("second", requires={"gpu": "a100"})
    assert sorted(await bench.walk(type="job")) == ["render", "second"]
    assert await bench.store.queries.audit() == []


async def test_many_kinds_of_needs_are_all_found(bench: Bench) -> None:
    for number in range(40):
        await bench.submit(f"t{number}", requires={"shelf": str(number)})
    assert await bench.claimed_ids() == []
    for number in (0, 17, 39):
        assert await bench.claimed_ids(labels={"shelf": str(number)}) == [f"t{number}"]


# --- inboxes


async def test_an_assigned_task_is_for_its_worker_alone(bench: Bench) -> None:
    await bench.submit("it")
    assert await bench.assign("it", "w1")
    record = await bench.record("it")
    assert (record.status, record.worker_id, record.attempt) == (Status.ASSIGNED, "w1", 0)
    assert record.lease_until == bench.clock.now() + 10_000
    assert await bench.claimed_ids(worker="w2", inboxes=("w2",)) == []
    assert await bench.claimed_ids(worker="w1") == [], "a claim that does not name its inbox gets nothing from it"
    (grant,) = await bench.claim(worker="w1", inboxes=("w1",))
    assert (grant.spec.id, grant.worker_id, grant.attempt) == ("it", "w1", 1)
    assert await bench.facts("it") == ["task.submitted", "task.assigned", "task.claimed"]
    assert await bench.store.queries.audit() == []


async def test_a_task_from_the_inbox_of_another_is_held_in_its_name(bench: Bench) -> None:
    await bench.submit("it")
    await bench.assign("it", "remote")
    (grant,) = await bench.claim(worker="node", queues=(), inboxes=("other", "remote"))
    assert grant.worker_id == "remote"
    assert (await bench.record("it")).worker_id == "remote"
    assert (await bench.look(workers=("node", "remote"))).loads == {"node": 0, "remote": 1}
    assert await bench.end(Succeeded(grant.lease, b"1")) == "done"
    assert (await bench.look(workers=("remote",))).loads == {"remote": 0}


async def test_an_inbox_is_taken_by_band_and_then_in_order(bench: Bench) -> None:
    bench.together()
    for name, priority in (("low", 1), ("first", 5), ("second", 5), ("high", 10)):
        await bench.submit(name, priority=priority)
    for name in ("low", "second", "first", "high"):
        await bench.assign(name, "w1")
    await bench.submit("shared", priority=10)
    assert await bench.claimed_ids(3, inboxes=("w1",)) == ["high", "first", "second"]
    assert await bench.claimed_ids(3, inboxes=("w1",)) == ["low", "shared"]


@pytest.mark.parametrize("place", list(Place))
async def test_an_assigned_task_is_in_no_lane_any_more(bench: Bench, place: Place) -> None:
    await bench.submit("it", key="tenant-7", **({"fair": 1000} if place is Place.FAIR else {}))
    if place is Place.FRONT:
        await bench.assign("it", "w1")
        assert await bench.store.tasks.unassign(["w1"], 1) == ["it"]
    elif place is Place.SIDE:
        assert await bench.claimed_ids(types=("other",)) == []
    assert (await bench.record("it")).place is place
    stats = await bench.store.queries.stats()
    assert (sum(stats.ready.values()), stats.statuses[Status.READY]) == (1, 1)
    assert await bench.assign("it", "w1")
    stats = await bench.store.queries.stats()
    assert (stats.ready, stats.parked, stats.statuses[Status.READY]) == ({}, {}, 0)
    assert (await bench.look()).aside == set()
    assert await bench.store.queries.audit() == []


async def test_assigning_twice_is_once(bench: Bench) -> None:
    await bench.submit("it")
    assert await bench.assign("it", "w1")
    assert await bench.assign("it", "w1")
    assert not await bench.assign("it", "w2")
    assert not await bench.assign("nobody", "w1")
    assert (await bench.facts("it")).count("task.assigned") == 1


async def test_what_is_not_taken_in_time_goes_back(bench: Bench) -> None:
    bench.together()
    await bench.submit("it")
    await bench.submit("behind")
    await bench.assign("it", "w1", hold=5000)
    bench.clock.advance(4.999)
    assert (await bench.store.tasks.reclaim(10)).ids == []
    bench.clock.advance(0.001)
    assert (await bench.store.tasks.reclaim(10)).ids == ["it"]
    record = await bench.record("it")
    assert (record.status, record.place, record.worker_id, record.losses) == (Status.READY, Place.FRONT, None, 0)
    assert await bench.claimed_ids(inboxes=("w1",)) == ["it", "behind"]
    assert await bench.facts("it") == ["task.submitted", "task.assigned", "task.unassigned", "task.claimed"]


async def test_the_inbox_of_a_worker_that_is_gone_goes_back_at_once(bench: Bench) -> None:
    await bench.store.members.beat(Worker(id="w1"))
    await bench.submit("it")
    await bench.assign("it", "w1")
    assert (await bench.store.tasks.reclaim(10, gone=("w1",))).ids == ["it"]
    assert await bench.claimed_ids(worker="w2") == ["it"]


async def test_an_inbox_can_be_emptied(bench: Bench) -> None:
    for number in range(3):
        await bench.submit(f"t{number}")
        await bench.assign(f"t{number}", "w1")
    await bench.submit("other")
    await bench.assign("other", "w2")
    taken = await bench.store.tasks.unassign(["w1", "w1"], 2)  # named twice, counted once
    assert len(taken) == 2 or bench.store.capabilities.partitions > 1
    taken += await bench.store.tasks.unassign(["w1"], 2)
    assert sorted(taken) == ["t0", "t1", "t2"]
    assert await bench.store.tasks.unassign(["w1"], 2) == []
    assert await bench.status("other") is Status.ASSIGNED
    assert await bench.store.queries.audit() == []


@pytest.mark.parametrize("kind", ["queue", "type"])
async def test_what_is_paused_does_not_start_from_an_inbox(bench: Bench, kind: Literal["queue", "type"]) -> None:
    await bench.submit("it")
    await bench.assign("it", "w1")
    name = "default" if kind == "queue" else "job"
    await bench.store.operators.pause(kind, name)
    assert await bench.claimed_ids(inboxes=("w1",)) == []
    assert await bench.status("it") is Status.READY
    await bench.store.operators.resume(kind, name)
    assert await bench.claimed_ids() == ["it"]


async def test_an_inbox_is_looked_at_no_further_than_a_claim_goes(bench: Bench) -> None:
    bench.together()
    await bench.submit("first", priority=9)
    await bench.submit("later", type="paused", priority=1)
    for task_id in ("first", "later"):
        await bench.assign(task_id, "w1")
    await bench.store.operators.pause("type", "paused")
    assert await bench.claimed_ids(1, types=("job", "paused"), inboxes=("w1",)) == ["first"]
    assert await bench.status("later") is Status.ASSIGNED
    assert await bench.claimed_ids(1, types=("job", "paused"), inboxes=("w1",)) == []
    assert await bench.status("later") is Status.READY


async def test_an_assigned_task_may_expire(bench: Bench) -> None:
    await bench.submit("it", expires=5000)
    await bench.assign("it", "w1")
    bench.clock.advance(5)
    assert await bench.claimed_ids(inboxes=("w1",)) == []
    record = await bench.record("it")
    assert (record.status, record.worker_id) == (Status.CANCELLED, None)
    assert await bench.store.queries.audit() == []


async def test_assigned_tasks_are_counted_and_listed(bench: Bench) -> None:
    ids = await bench.submit_many(3)
    await bench.assign("t1", "w1")
    assert (await bench.store.queries.stats()).statuses[Status.ASSIGNED] == 1
    assert await bench.walk(status=Status.ASSIGNED) == ["t1"]
    assert sorted(await bench.walk()) == sorted(ids)


async def test_a_claim_sent_again_gets_the_same_from_the_inbox(bench: Bench) -> None:
    await bench.submit("it")
    await bench.assign("it", "w1")
    claim = bench.new_claim(5, inboxes=("w1",))
    first, second = [await bench.store.tasks.claim(claim) for _ in range(2)]
    assert [grant.lease for grant in first.grants] == [grant.lease for grant in second.grants] != []
    assert second.grants[0].worker_id == "w1"


# --- looking


async def test_a_look_shows_what_a_claim_would_take(bench: Bench) -> None:
    bench.together()
    await bench.submit("low", priority=1)
    await bench.submit("first", key="tenant-7")
    await bench.submit("second", type="other", requires={"gpu": "a100"})
    await bench.submit("elsewhere", queue="mail")
    seen = await bench.look()
    assert [(each.id, each.kind, each.band, each.key) for each in seen.waiting] == [
        ("first", "job", 1, "tenant-7"),
        ("second", "other gpu=a100", 1, None),
        ("low", "job", 2, None),
    ]
    assert [(each.type, each.needs) for each in seen.waiting][1] == ("other", "gpu=a100")
    assert [each.id for each in (await bench.look(2)).waiting] == ["first", "second"]
    assert [each.id for each in (await bench.look(1, beyond=1)).waiting] == ["first", "second"]
    assert [each.id for each in (await bench.look(queues=("mail",))).waiting] == ["elsewhere"]


async def test_a_look_shows_nothing_to_workers_without_free_slots(bench: Bench) -> None:
    await bench.submit_many(3)
    await bench.assign("t0", "w1")
    assert len(await bench.claim(inboxes=("w1",))) == 1
    await bench.assign("t1", "w1")
    seen = await bench.look(2, workers=("w1",), beyond=5)
    assert (seen.waiting, seen.loads) == ([], {"w1": 2})
    assert len((await bench.look(3, workers=("w1",), beyond=5)).waiting) == 1


async def test_what_was_put_aside_is_seen_when_its_kind_is_asked_for(bench: Bench) -> None:
    await bench.submit("it", type="render", requires={"gpu": "a100"})
    await bench.store.tasks.assign([], 0, [Aside("it", ParkReason.LABELS_MISSING)])
    assert (await bench.record("it")).parked is ParkReason.LABELS_MISSING
    seen = await bench.look()
    assert seen.waiting == []
    assert seen.aside == {"default/render gpu=a100"}
    assert (await bench.look(lanes=frozenset({"mail/render gpu=a100"}))).waiting == []
    seen = await bench.look(lanes=seen.aside)
    assert [each.id for each in seen.waiting] == ["it"]
    assert await bench.claimed_ids(types=("render",), labels={"gpu": "a100"}) == ["it"]


async def test_a_look_comes_after_the_assignments_of_its_call(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(3)
    look = Look(("default",), {"w1": 5, "w2": 5})
    assigned = await bench.store.tasks.assign([Assignment("t1", "w1")], 1000, look=look)
    assert assigned.seen is not None
    assert (assigned.done, [each.id for each in assigned.seen.waiting]) == ([True], ["t0", "t2"])
    assert assigned.seen.loads == {"w1": 1, "w2": 0}


async def test_a_look_tells_of_pauses(bench: Bench) -> None:
    await bench.submit("it")
    await bench.submit("other", queue="mail")
    await bench.store.operators.pause("type", "job")
    await bench.store.operators.pause("queue", "mail")
    seen = await bench.look(queues=("default", "mail"))
    assert [each.id for each in seen.waiting] == ["it"]
    assert seen.paused == {"job"}


async def test_an_assignment_wakes_its_worker(bench: Bench) -> None:
    await bench.store.tasks.claim(bench.new_claim(queues=(), inboxes=("w1",)))
    with bench.store.hint(WORK) as hint:
        await bench.listens(hint)
        await bench.submit("it")
        await bench.assign("it", "w1")
        assert await hint.wait(10)


async def test_free_slots_wake_whoever_assigns(bench: Bench) -> None:
    await bench.look()
    await bench.submit("it")
    with bench.store.hint(ASSIGN) as hint:
        await bench.listens(hint)
        while await hint.wait(0.2):
            pass
        claim = bench.new_claim(queues=(), inboxes=("w1",), assigned=("default",))
        await bench.store.tasks.finish([], claim)
        assert await hint.wait(10)
