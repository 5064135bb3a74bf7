"""The log tells every task's story in order, and hints wake whoever wants to look again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tickwork.model.facts import Event, Facts
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Failed, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Lease, Spec, Status
from tickwork.store.hints import CONTROL, EVENTS, OUTBOX, SCHEDULES, WORK
from tickwork.store.rules import SPAN
from tickwork.testing.contract.bench import Bench

# --- stories


async def take(bench: Bench, worker: str = "w1") -> Lease:
    (grant,) = await bench.claim(worker=worker)
    return grant.lease


async def test_the_story_of_a_success(bench: Bench) -> None:
    lease = await bench.start("it", queue="default")
    bench.clock.advance(2)
    await bench.end(Succeeded(lease, duration=1.5))
    submitted, claimed, succeeded = await bench.events("it")
    now = bench.clock.now()
    assert (submitted.kind, submitted.at, submitted.attempt, submitted.worker_id) == (
        "task.submitted",
        now - 2000,
        0,
        "",
    )
    assert (claimed.kind, claimed.at, claimed.attempt, claimed.worker_id) == ("task.claimed", now - 2000, 1, "w1")
    assert (succeeded.kind, succeeded.at, succeeded.attempt, succeeded.duration) == ("task.succeeded", now, 1, 1.5)
    assert {(event.id, event.type, event.queue) for event in (submitted, claimed, succeeded)} == {
        ("it", "job", "default")
    }


async def test_the_story_of_retries_death_and_a_second_life(bench: Bench) -> None:
    await bench.submit("it", delay=1000)
    bench.clock.advance(1)
    await bench.end(Failed(await take(bench), "first", 5000))
    bench.clock.advance(5)
    await bench.end(Failed(await take(bench), "second", 5000))
    await bench.run_now("it")
    await bench.end(Aborted(await take(bench), "third"))
    await bench.retry("it")
    await bench.end(Succeeded(await take(bench)))
    await bench.delete("it")
    events = await bench.events("it")
    assert [(event.kind.removeprefix("task."), event.attempt, event.detail) for event in events] == [
        ("submitted", 0, ""),
        ("due", 0, ""),
        ("claimed", 1, ""),
        ("retrying", 1, "first"),
        ("due", 1, ""),
        ("claimed", 2, ""),
        ("retrying", 2, "second"),
        ("hastened", 2, ""),
        ("claimed", 3, ""),
        ("died", 3, "third"),
        ("retried", 0, ""),
        ("claimed", 1, ""),
        ("succeeded", 1, ""),
        ("deleted", 1, ""),
    ]


async def test_the_story_of_losses_a_release_and_a_snooze(bench: Bench) -> None:
    await bench.submit("it")
    await take(bench, "first")
    await bench.store.tasks.reclaim(10, gone=("first",), why="killed")
    await bench.end(Released(await take(bench, "second")))
    await bench.end(Snoozed(await take(bench, "third"), delay=1000))
    bench.clock.advance(1)
    await bench.end(Succeeded(await take(bench, "fourth")))
    events = await bench.events("it")
    assert [(event.kind.removeprefix("task."), event.worker_id) for event in events] == [
        ("submitted", ""),
        ("claimed", "first"),
        ("lost", "first"),
        ("claimed", "second"),
        ("released", "second"),
        ("claimed", "third"),
        ("snoozed", "third"),
        ("due", "third"),
        ("claimed", "fourth"),
        ("succeeded", "fourth"),
    ]
    assert "killed" in events[2].detail


async def test_the_story_of_a_poison_task(bench: Bench) -> None:
    await bench.submit("it")
    for _ in range(3):
        await take(bench)
        await bench.store.tasks.reclaim(10, gone=("w1",))
    kinds = await bench.facts("it")
    assert kinds == ["task.submitted", *["task.claimed", "task.lost"] * 2, "task.claimed", "task.died"]
    assert "3 lost workers" in (await bench.events("it"))[-1].detail


async def test_the_story_of_a_forced_cancel(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.cancel("it", True, "operator")
    await bench.end(Stopped(lease))
    events = await bench.events("it")
    assert [event.kind for event in events[1:]] == ["task.claimed", "task.cancel_asked", "task.cancelled"]
    assert events[2].detail == "operator"


async def test_the_story_of_dependants(bench: Bench) -> None:
    await bench.submit("up")
    await bench.submit("good", depends_on=("up",), run_after="end")
    await bench.submit("bad", depends_on=("up",))
    await bench.end(Aborted(await take(bench), "boom"))
    await bench.propagate()
    assert await bench.facts("good") == ["task.submitted", "task.resolved"]
    assert await bench.facts("bad") == ["task.submitted", "task.cancelled"]
    assert (await bench.events("good"))[-1].detail == "up"


async def test_the_story_of_a_parked_task(bench: Bench) -> None:
    await bench.submit("it", type="strange")
    await bench.claim()
    (grant,) = await bench.claim(types=("strange",))
    await bench.end(Succeeded(grant.lease))
    assert await bench.facts("it") == ["task.submitted", "task.parked", "task.claimed", "task.succeeded"]


async def test_the_stories_of_all_else(bench: Bench) -> None:
    store = bench.store
    await store.operators.pause("queue", "mail", "maintenance")
    await store.operators.resume("queue", "mail")
    await store.operators.pause("type", "send")
    await store.operators.resume("type", "send")
    bench.clock.advance(0.001)  # facts of different partitions are in order to the millisecond
    await store.members.beat(Worker(id="w1"))
    await store.members.beat(Worker(id="w1"))
    await store.members.leave("w1")
    await store.members.leave("w1")
    leader = await store.members.campaign("n1", 1000)
    await store.members.campaign("n1", 1000)
    await store.members.resign("n1", leader.term)
    await store.schedules.put(Schedule(id="s", cron="@daily", task=Spec(id="", type="job", nonce="")))
    await store.schedules.drop("s")
    assert [(event.kind, event.id, event.detail) for event in await bench.events()] == [
        ("queue.paused", "mail", "maintenance"),
        ("queue.resumed", "mail", ""),
        ("type.paused", "send", ""),
        ("type.resumed", "send", ""),
        ("worker.joined", "w1", ""),
        ("worker.left", "w1", ""),
        ("leader.elected", "n1", "term 1"),
        ("leader.resigned", "n1", "term 1"),
        ("schedule.put", "s", "@daily"),
        ("schedule.dropped", "s", ""),
    ]


async def test_a_tasks_story_is_not_mixed_with_that_of_a_namesake(bench: Bench) -> None:
    """Queues, types, workers and schedules may have any task's name."""
    await bench.submit("it", queue="it", type="it")
    await bench.store.operators.pause("queue", "it")
    await bench.store.operators.pause("type", "it")
    await bench.store.members.beat(Worker(id="it"))
    assert await bench.facts("it") == ["task.submitted"]


# --- reading


async def test_numbers_grow_one_by_one(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(3)
    await bench.claim(2)
    await bench.cancel("t2", False)
    events = await bench.events()
    assert len(events) == 6
    assert bench.follow_each_other([event.seq for event in events])
    assert bench.follow_each_other([events[-2].seq, await bench.store.log.last()])
    assert await bench.store.log.read(await bench.store.log.last(), 10) == ([], 0)


async def test_a_log_begins_ahead_of_all_that_were_told_in_another_life(bench: Bench) -> None:
    """Whoever has followed one that was lost goes on with what is new, and is not told that it missed anything."""
    await bench.submit_many(3)
    numbers = [event.seq for event in await bench.events()]
    assert bench.clock.now() // 1000 * SPAN < numbers[0]
    assert numbers[-1] < 2**53, "it must be a number wherever it is read"
    for seen in (0, 5_000, (bench.clock.now() // 1000 - 3600) * SPAN + 17):
        events, dropped = await bench.store.log.read(seen, 10)
        assert ([event.seq for event in events], dropped) == (numbers, 0)


async def test_an_empty_log(bench: Bench) -> None:
    assert await bench.store.log.read(0, 10) == ([], 0)
    assert await bench.store.log.last() == 0


async def test_reading_goes_on_where_it_stopped(bench: Bench) -> None:
    await bench.submit_many(10)
    everything = await bench.events()
    seen, after = [], 0
    while piece := (await bench.store.log.read(after, 3))[0]:
        assert len(piece) <= 3
        seen += piece
        after = piece[-1].seq
    assert seen == everything
    await bench.submit("late")
    ((late,), _) = await bench.store.log.read(after, 3)
    assert late.id == "late"
    assert bench.follow_each_other([after, late.seq])


def check_groups(groups: list[Facts], events: list[Event]) -> None:
    assert [event for facts in groups for event in facts.events()] == events
    assert all(len(facts.numbers) == len(facts.ids) == len(facts.durations) > 0 for facts in groups)


async def test_groups_have_the_same_facts(bench: Bench) -> None:
    bench.together()
    await bench.submit_many(20)
    await bench.submit("other", type="another", queue="elsewhere")
    grants = await bench.claim(20)
    outcomes: list[Outcome] = [Succeeded(grant.lease, duration=0.5 + place) for place, grant in enumerate(grants[:10])]
    outcomes += [Failed(grant.lease, "no", 1000, 0.25) for grant in grants[10:]]
    await bench.store.tasks.finish(outcomes)
    await bench.store.operators.pause("queue", "default", "by hand")
    events = await bench.events()
    assert len(events) == 62
    for after in (0, *(event.seq for event in events)):  # also from the middle of what was told together
        groups, missed = await bench.store.log.read_groups(after, 1000)
        check_groups(groups, [event for event in events if event.seq > after])
        assert missed == 0


async def test_reading_groups_goes_on_where_it_stopped(bench: Bench) -> None:
    for first in range(0, 60, 6):
        await bench.submit_many(6, prefix=f"t{first}-")
    after, seen = 0, list[Facts]()
    while groups := (await bench.store.log.read_groups(after, 10))[0]:
        count = sum(len(facts.ids) for facts in groups)
        seen += groups
        after = groups[-1].numbers[-1]
        assert count >= min(10, 60 - sum(len(facts.ids) for facts in seen) + count)
    check_groups(seen, await bench.events())
    assert await bench.store.log.read_groups(await bench.store.log.last() + 100, 10) == ([], 0)


@pytest.mark.parametrize("policy", [Policy(events_max=10)], ids=["ten"])
async def test_groups_of_a_bounded_log(bench: Bench, policy: Policy) -> None:
    await bench.submit_many(35)
    for after in (0, (await bench.events())[4].seq):
        events, dropped = await bench.store.log.read(after, 100)
        groups, missed = await bench.store.log.read_groups(after, 100)
        check_groups(groups, events)
        assert missed == dropped


async def test_reading_one_tasks_facts_goes_on_too(bench: Bench) -> None:
    await bench.submit("it")
    for number in range(3):
        await bench.end(Released(await take(bench)))
        await bench.submit(f"noise{number}")
    whole = [event for event in await bench.events() if event.id == "it"]
    assert len(whole) == 7
    (first, _) = await bench.store.log.read(0, 2, "it")
    (rest, _) = await bench.store.log.read(first[-1].seq, 100, "it")
    assert first + rest == whole


async def test_a_limit_counts_the_facts_asked_for(bench: Bench) -> None:
    await bench.submit_many(20)
    await bench.submit("it")
    assert [event.id for event in (await bench.store.log.read(0, 1, "it"))[0]] == ["it"]


async def test_reading_beyond_the_end_is_empty(bench: Bench) -> None:
    await bench.submit("it")
    assert await bench.store.log.read(await bench.store.log.last() + 100, 10) == ([], 0)


def check_bounded(bench: Bench, events: list[Event], dropped: int, ids: list[str]) -> None:
    """Of the facts on these tasks, in this order, the log has the last ten and says how many it has not. Several
    partitions keep at least those, and say whether any is gone."""
    found = [event.id for event in events]
    if bench.store.capabilities.partitions == 1:
        assert (found, dropped) == (ids[-10:], len(ids) - 10)
    else:
        assert set(ids[-10:]) <= set(found)
        assert (dropped > 0) == (len(found) < len(ids))


@pytest.mark.parametrize("policy", [Policy(events_max=10)], ids=["ten"])
@pytest.mark.parametrize("pruned", [False, True], ids=["as-is", "pruned"])
async def test_a_bounded_log_says_how_much_it_dropped(bench: Bench, policy: Policy, pruned: bool) -> None:
    await bench.submit_many(25)
    if pruned:
        await bench.store.operators.prune(100)
    events, dropped = await bench.store.log.read(0, 1000)
    check_bounded(bench, events, dropped, [f"t{number}" for number in range(25)])
    assert await bench.store.log.read(await bench.store.log.last(), 10) == ([], 0)


@pytest.mark.parametrize("policy", [Policy(events_max=10)], ids=["ten"])
async def test_a_reader_that_fell_behind_can_tell(bench: Bench, policy: Policy) -> None:
    await bench.submit_many(5)
    seen, dropped = await bench.store.log.read(0, 1000)
    assert dropped == 0
    later = await bench.submit_many(30, "later")
    await bench.store.operators.prune(100)
    after = seen[-1].seq
    events, dropped = await bench.store.log.read(after, 1000)
    check_bounded(bench, events, dropped, later)
    assert bench.follow_each_other([event.seq for event in events])
    assert bench.follow_each_other([after + dropped, events[0].seq])


@pytest.mark.parametrize("policy", [Policy(events_max=10)], ids=["ten"])
async def test_numbers_go_on_after_the_log_was_cut(bench: Bench, policy: Policy) -> None:
    await bench.submit("first")
    first = await bench.store.log.last()
    for round_ in range(5):
        await bench.submit_many(7, f"r{round_}-")
        await bench.store.operators.prune(100)
        last = await bench.store.log.last()
        assert bench.follow_each_other([first + 7 * (round_ + 1) - 1, last])


@pytest.mark.parametrize("policy", [Policy(events_max=0)], ids=["none"])
async def test_a_log_without_room_counts_facts_and_keeps_none(bench: Bench, policy: Policy) -> None:
    await bench.submit_many(5)
    last = await bench.store.log.last()
    await bench.submit_many(5, "more")
    one = bench.store.capabilities.partitions == 1
    assert await bench.store.log.read(0, 10) == ([], 10 if one else 1)
    assert await bench.store.log.read(last, 10) == ([], 5 if one else 1)
    assert bench.follow_each_other([last + 4, await bench.store.log.last()])


@pytest.mark.parametrize("policy", [Policy(events=False)], ids=["off"])
async def test_a_log_that_is_off_holds_nothing(bench: Bench, policy: Policy) -> None:
    await bench.end(Succeeded(await bench.start("it")))
    await bench.store.operators.pause("queue", "mail")
    await bench.store.members.beat(Worker(id="w1"))
    await bench.store.members.campaign("n1", 1000)
    assert await bench.store.log.read(0, 10) == ([], 0)
    assert await bench.store.log.last() == 0


# --- hints: a hint that is lost costs latency, so they are tested, but nothing is built on them

PATIENCE = 10.0  # seconds until a hint that does not come fails the test


async def do_submit(bench: Bench) -> None:
    await bench.submit("new")


async def do_resolve(bench: Bench) -> None:
    await bench.resolve("blocked", "pending", True)


async def do_promote(bench: Bench) -> None:
    await bench.store.tasks.promote(10)


async def do_run_now(bench: Bench) -> None:
    await bench.run_now("pending")


async def do_reschedule(bench: Bench) -> None:
    await bench.reschedule("pending", bench.clock.now() + 1000)


async def do_release(bench: Bench) -> None:
    await bench.end(Released((await bench.record("running")).lease))


async def do_reclaim(bench: Bench) -> None:
    await bench.store.tasks.reclaim(10, gone=("w1",))


async def do_retry(bench: Bench) -> None:
    await bench.retry("dead")


async def do_resume(bench: Bench) -> None:
    await bench.store.operators.resume("queue", "closed")


async def crowd(bench: Bench) -> None:
    await bench.bring(Status.DEAD, "dead")
    await bench.bring(Status.RUNNING, "running")
    await bench.bring(Status.PENDING, "pending")
    await bench.submit("blocked", depends_on=("pending",))
    await bench.store.operators.pause("queue", "closed")
    bench.clock.advance(60)  # the pending one is due; moving the clock raises every hint, so not later


MAKES_WORK = pytest.mark.parametrize(
    "act", [do_submit, do_resolve, do_promote, do_run_now, do_reschedule, do_release, do_reclaim, do_retry, do_resume]
)


@MAKES_WORK
async def test_whatever_may_give_work_raises_the_work_hint(
    bench: Bench, act: Callable[[Bench], Awaitable[None]]
) -> None:
    await crowd(bench)
    with bench.store.hint(WORK) as hint:
        assert await hint.wait(0) is False
        await act(bench)
        assert await hint.wait(PATIENCE) is True, "raised before anyone waited, it is kept"
        assert await hint.wait(0) is False, "and it is lowered by being seen"


@MAKES_WORK
async def test_the_work_hint_wakes_who_waits(bench: Bench, act: Callable[[Bench], Awaitable[None]]) -> None:
    await crowd(bench)
    with bench.store.hint(WORK) as hint:
        waiting = asyncio.create_task(hint.wait(PATIENCE))
        await asyncio.sleep(0)
        await act(bench)
        assert await waiting is True


async def test_who_waits_for_a_task_is_told_of_every_end(bench: Bench) -> None:
    await bench.submit("it")
    with bench.store.hint("it") as hint:
        await bench.listens(hint)
        await bench.store.queries.get("it", hint)
        (grant,) = await bench.claim()
        await bench.end(Aborted(grant.lease, "boom"))
        await bench.retry("it")  # before the waiter has looked
        assert await hint.wait(5)
        assert await bench.status("it") is Status.READY  # what others see is what is there now
        await bench.store.queries.get("it", hint)  # this is the end that was told
        await bench.store.queries.get("it", hint)
        (grant,) = await bench.claim()
        await bench.end(Succeeded(grant.lease))
        assert await hint.wait(5)


async def test_a_forced_cancel_raises_the_control_hint(bench: Bench) -> None:
    await bench.start("it")
    with bench.store.hint(CONTROL) as hint:
        await bench.listens(hint)
        await bench.cancel("it", False)
        assert await hint.wait(0) is False
        await bench.cancel("it", True)
        assert await hint.wait(PATIENCE) is True


async def test_every_fact_raises_the_events_hint(bench: Bench) -> None:
    with bench.store.hint(EVENTS) as hint:
        await bench.store.operators.pause("queue", "mail")
        assert await hint.wait(PATIENCE) is True
        await bench.submit("it")
        assert await hint.wait(PATIENCE) is True


async def test_an_end_that_others_wait_for_raises_the_outbox_hint(bench: Bench) -> None:
    lease = await bench.start("up")
    await bench.submit("it", depends_on=("up",))
    with bench.store.hint(OUTBOX) as hint:
        await bench.end(Aborted(lease, "boom"))
        assert await hint.wait(PATIENCE) is True
        await bench.submit("late", depends_on=("up",))
        assert await hint.wait(PATIENCE) is True


async def test_an_end_that_nobody_waits_for_does_not_raise_it(bench: Bench) -> None:
    lease = await bench.start("it")
    with bench.store.hint(OUTBOX) as hint:
        await bench.listens(hint)
        await bench.end(Succeeded(lease))
        assert await hint.wait(0) is False


async def test_a_new_or_changed_schedule_raises_its_hint(bench: Bench) -> None:
    schedule = Schedule(id="s", cron="@daily", task=Spec(id="", type="job", nonce=""))
    with bench.store.hint(SCHEDULES) as hint:
        await bench.store.schedules.put(schedule)
        assert await hint.wait(PATIENCE) is True
        await bench.store.schedules.change("s", paused=True)
        assert await hint.wait(PATIENCE) is True


@pytest.mark.parametrize("how", ["success", "death", "stop", "cancel", "loss"])
async def test_the_end_of_a_task_wakes_who_waits_for_it(bench: Bench, how: str) -> None:
    lease = await bench.start("it")
    await bench.submit("other")
    with bench.store.hint("it") as hint, bench.store.hint("other") as other:
        await bench.listens(hint, other)
        await bench.store.queries.get("it", hint)  # who waits for a task looks at it first
        match how:
            case "success":
                await bench.end(Succeeded(lease))
            case "death":
                await bench.end(Aborted(lease, "boom"))
            case "stop":
                await bench.end(Stopped(lease))
            case "loss":
                await bench.cancel("it", True)
                await bench.store.tasks.reclaim(10, gone=("w1",))
            case _:
                await bench.end(Snoozed(lease))
                await bench.cancel("it", False)
        assert await hint.wait(PATIENCE) is True
        assert await other.wait(0) is False
        assert await bench.store.queries.get("it", hint) == await bench.store.queries.get("it")


async def test_a_retry_is_no_end(bench: Bench) -> None:
    lease = await bench.start("it")
    with bench.store.hint("it") as hint:
        await bench.listens(hint)
        await bench.store.queries.get("it", hint)
        await bench.end(Failed(lease, "boom", 1000))
        assert await hint.wait(0) is False


async def test_a_hint_that_is_not_raised_runs_out(bench: Bench) -> None:
    with bench.store.hint(CONTROL) as hint:
        await bench.listens(hint)
        assert await hint.wait(0.01) is False


async def test_several_may_wait_on_one_topic(bench: Bench) -> None:
    with bench.store.hint(WORK) as first, bench.store.hint(WORK) as second:
        await bench.submit("it")
        assert await first.wait(PATIENCE) is True
        assert await second.wait(PATIENCE) is True


async def test_leaving_a_hint_leaves_the_others(bench: Bench) -> None:
    with bench.store.hint(WORK) as stays:
        with bench.store.hint(WORK):
            pass
        await bench.submit("it")
        assert await stays.wait(PATIENCE) is True


async def test_moving_the_clock_wakes_everybody(bench: Bench) -> None:
    with bench.store.hint(WORK) as hint:
        bench.clock.advance(1)
        assert await hint.wait(PATIENCE) is True
