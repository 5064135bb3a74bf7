"""Lists, counts and pauses: what operators and the dashboard see."""

from __future__ import annotations

from typing import Any

import pytest

from tickwork.errors import StoreError
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Failed, Released, Succeeded
from tickwork.model.tasks import Band, Place, Status
from tickwork.store.contract import AHEAD_MAX, PAGE_MAX, Pause, Query
from tickwork.testing.contract.bench import Bench

# --- how long queues wait


async def test_a_queue_waits_since_its_first_ready_task_was_due(bench: Bench) -> None:
    assert await bench.store.queries.waiting_since() == {}
    await bench.submit("first", queue="a")
    since = (await bench.record("first")).submitted_at
    await bench.pass_time(5)
    await bench.submit("second", queue="a", priority=10)
    await bench.submit("later", queue="b", delay=2000)
    await bench.submit("blocked", queue="c", depends_on=("first",))
    assert await bench.store.queries.waiting_since() == {"a": since}
    await bench.pass_time(3)
    await bench.store.tasks.promote(100)
    due = (await bench.record("later")).due_at
    assert await bench.store.queries.waiting_since() == {"a": since, "b": due}


async def test_tasks_in_front_and_side_lanes_wait_too(bench: Bench) -> None:
    lease = await bench.start("given-back")
    await bench.submit("unknown", type="nobody-has-it", queue="b")
    assert await bench.claimed_ids(queues=("b",)) == []
    assert (await bench.record("unknown")).place == Place.SIDE
    await bench.end(Released(lease))
    assert (await bench.record("given-back")).place == Place.FRONT
    expected = {"default": "given-back", "b": "unknown"}
    assert await bench.store.queries.waiting_since() == {
        queue: (await bench.record(task_id)).due_at for queue, task_id in expected.items()
    }


async def test_a_time_that_was_over_at_the_submit_counts_from_the_submit(bench: Bench) -> None:
    await bench.submit("it", at=1000)
    assert await bench.store.queries.waiting_since() == {"default": (await bench.record("it")).submitted_at}


# --- pages


async def test_pages_are_newest_first(bench: Bench) -> None:
    await bench.submit_many(3)
    records, cursor = await bench.store.queries.page(Query())
    assert cursor is None
    assert bench.in_page_order([record.id for record in records], ["t2", "t1", "t0"])


async def test_a_page_holds_whole_records(bench: Bench) -> None:
    await bench.end(Succeeded(await bench.start("it", tags={"a": "b"}), b"1"))
    (records, _) = await bench.store.queries.page(Query())
    assert records == [await bench.record("it")]


async def test_an_empty_store_has_an_empty_page(bench: Bench) -> None:
    assert await bench.store.queries.page(Query()) == ([], None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["job-b-dev", "mail-b-prod", "mail-a-prod", "job-a-prod"]),
        ({"type": "mail"}, ["mail-b-prod", "mail-a-prod"]),
        ({"queue": "a"}, ["mail-a-prod", "job-a-prod"]),
        ({"tags": {"env": "prod"}}, ["mail-b-prod", "mail-a-prod", "job-a-prod"]),
        ({"tags": {"env": "prod", "queue": "b"}}, ["mail-b-prod"]),
        ({"tags": {"env": "prod", "missing": "x"}}, []),
        ({"tags": {}}, ["job-b-dev", "mail-b-prod", "mail-a-prod", "job-a-prod"]),
        ({"type": "mail", "queue": "b", "tags": {"env": "prod"}}, ["mail-b-prod"]),
        ({"type": "nothing"}, []),
        ({"status": Status.READY, "type": "job"}, ["job-b-dev"]),
        ({"status": Status.CANCELLED}, ["job-a-prod"]),
        ({"status": Status.CANCELLED, "queue": "a"}, ["job-a-prod"]),
        ({"status": Status.RUNNING}, []),
    ],
    ids=str,
)
@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_filters(bench: Bench, query: dict[str, Any], expected: list[str], limit: int) -> None:
    for name in ("job-a-prod", "mail-a-prod", "mail-b-prod", "job-b-dev"):
        kind, queue, env = name.split("-")
        await bench.submit(name, type=kind, queue=queue, tags={"env": env, "queue": queue})
    await bench.cancel("job-a-prod", False)
    found = await bench.walk(limit=limit, **query)
    assert bench.in_page_order(found, expected) if "status" not in query else sorted(found) == sorted(expected)


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.ASSIGNED, Status.FAILED)], ids=str)
async def test_every_status_can_be_listed(bench: Bench, status: Status) -> None:
    await bench.bring(status)
    assert "it" in await bench.walk(status=status)
    others = [task_id for other in Status if other is not status for task_id in await bench.walk(status=other)]
    assert "it" not in others


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10, 11])
async def test_a_walk_gives_every_task_exactly_once(bench: Bench, limit: int) -> None:
    ids = await bench.submit_many(10)
    assert bench.in_page_order(await bench.walk(limit=limit), ids[::-1])


async def test_a_page_never_holds_more_than_its_limit(bench: Bench) -> None:
    await bench.submit_many(10)
    cursor: str | None = None
    for expected in (4, 4, 2):
        records, cursor = await bench.store.queries.page(Query(limit=4, cursor=cursor))
        assert len(records) == expected
    assert cursor is None


@pytest.mark.parametrize("query", [{}, {"queue": "default"}, {"status": Status.READY}], ids=str)
async def test_a_full_last_page_has_no_cursor(bench: Bench, query: dict[str, Any]) -> None:
    await bench.submit_many(4)
    first, cursor = await bench.store.queries.page(Query(limit=2, **query))
    assert cursor is not None
    second, cursor = await bench.store.queries.page(Query(limit=2, cursor=cursor, **query))
    assert (len(first), len(second), cursor) == (2, 2, None)


@pytest.mark.parametrize("query", [{}, {"queue": "default"}, {"status": Status.READY}], ids=str)
async def test_a_walk_over_more_than_one_look(bench: Bench, query: dict[str, Any]) -> None:
    ids = await bench.submit_many(2 * PAGE_MAX + 300)
    found = await bench.walk(limit=400, **query)
    assert bench.in_page_order(found, ids[::-1]) if "status" not in query else sorted(found) == sorted(ids)


@pytest.mark.parametrize("query", [{}, {"queue": "default"}, {"status": Status.READY}], ids=str)
async def test_no_call_looks_at_more_than_it_may_however_large_the_limit(bench: Bench, query: dict[str, Any]) -> None:
    ids = await bench.submit_many(PAGE_MAX + 5)
    records, cursor = await bench.store.queries.page(Query(limit=10 * PAGE_MAX, **query))
    assert len(records) <= PAGE_MAX
    assert cursor is not None
    assert sorted(await bench.walk(limit=10 * PAGE_MAX, **query)) == sorted(ids)


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.ASSIGNED, Status.FAILED)], ids=str)
@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_a_walk_over_one_status_gives_each_of_it_once(bench: Bench, status: Status, limit: int) -> None:
    """Each status may have an order of its own, and many of them may share one moment."""
    for number in range(5):
        await bench.submit("upstream", delay=3_600_000)
        await bench.bring(status, f"it{number}")
        if number == 2:
            bench.clock.advance(0.001)
    found = await bench.walk(status=status, limit=limit)
    assert sorted(task_id for task_id in found if task_id != "upstream") == [f"it{number}" for number in range(5)]


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.DEAD, Status.CANCELLED], ids=str)
@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_an_end_is_listed_by_the_order_in_which_they_ended(bench: Bench, status: Status, limit: int) -> None:
    """Whatever the order of submits, and though the clock goes back or stands still."""
    bench.together()
    await bench.submit_many(4)
    leases = {grant.spec.id: grant.lease for grant in await bench.claim(4 if status is not Status.CANCELLED else 0)}
    for task_id, seconds in (("t2", 1), ("t0", -5), ("t3", 0), ("t1", 0)):
        if status is Status.CANCELLED:
            await bench.cancel(task_id, False)
        else:
            lease = leases[task_id]
            await bench.end(Succeeded(lease) if status is Status.SUCCESS else Aborted(lease, "boom"))
        bench.clock.advance(seconds)
    assert await bench.walk(status=status, limit=limit) == ["t1", "t3", "t0", "t2"]


@pytest.mark.parametrize("status", [Status.PENDING, Status.RETRYING], ids=str)
@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_a_delayed_status_is_listed_by_time(bench: Bench, status: Status, limit: int) -> None:
    """Whatever the order of submits, which decides between those of one moment."""
    bench.together()
    waits = {"mid": 2000, "soon": 1000, "late": 3000, "also-mid": 2000, "never": 4000}
    for task_id, wait in waits.items():
        if status is Status.PENDING:
            await bench.submit(task_id, delay=wait)
        else:
            await bench.end(Failed(await bench.start(task_id), "boom", wait))
    await bench.cancel("never", False)
    other = bench.spec("other", delay=1500) if status is Status.RETRYING else bench.spec("other")
    await bench.store.tasks.submit([other])
    assert await bench.walk(status=status, limit=limit) == ["soon", "mid", "also-mid", "late"]
    bench.clock.advance(1.2)
    await bench.store.tasks.promote(10)
    assert await bench.walk(status=status, limit=limit) == ["mid", "also-mid", "late"]


async def test_a_walk_over_delayed_tasks_goes_on_while_they_come_and_go(bench: Bench) -> None:
    bench.together()
    for number in range(6):
        await bench.submit(f"t{number}", delay=1000 * (number + 1))
    first, cursor = await bench.store.queries.page(Query(Status.PENDING, limit=2))
    assert [record.id for record in first] == ["t0", "t1"]
    await bench.submit("new", delay=3500)
    await bench.submit("late", delay=500)
    await bench.cancel("t4", False)
    rest: list[str] = []
    while cursor is not None:
        records, cursor = await bench.store.queries.page(Query(Status.PENDING, limit=2, cursor=cursor))
        rest += [record.id for record in records]
    if bench.store.capabilities.submit_order:  # elsewhere a cursor counts places, and those move
        assert rest == ["t2", "new", "t3", "t5"]
    else:
        assert {"t2", "t3", "t5"} <= set(rest)


async def test_no_call_looks_at_more_ends_than_it_may(bench: Bench) -> None:
    bench.together()
    await bench.submit("needle", type="rare")
    await bench.cancel("needle", False)
    for task_id in await bench.submit_many(PAGE_MAX + 5):
        await bench.cancel(task_id, False)
    records, cursor = await bench.store.queries.page(Query(status=Status.CANCELLED, type="rare"))
    assert (records, cursor is None) == ([], False)
    assert await bench.walk(status=Status.CANCELLED, type="rare") == ["needle"]


async def test_a_needle_far_down_is_found_by_a_walk(bench: Bench) -> None:
    await bench.submit("needle", type="rare", tags={"find": "me"})
    await bench.submit_many(2 * PAGE_MAX)
    assert await bench.walk(type="rare") == ["needle"]
    assert await bench.walk(tags={"find": "me"}, limit=1) == ["needle"]
    records, cursor = await bench.store.queries.page(Query(type="rare"))
    assert records or cursor, "an empty page with a cursor says: look further"


async def test_a_walk_goes_on_while_tasks_come_and_go(bench: Bench) -> None:
    await bench.submit_many(6)
    records, cursor = await bench.store.queries.page(Query(limit=2))
    seen = [record.id for record in records]
    unseen = [f"t{number}" for number in range(5, -1, -1) if f"t{number}" not in seen]
    await bench.submit("new")
    for task_id in (seen[-1], unseen[0]):  # the one the cursor stands on, and the next
        await bench.cancel(task_id, False)
        await bench.delete(task_id)
    rest: list[str] = []
    while cursor is not None:
        records, cursor = await bench.store.queries.page(Query(limit=2, cursor=cursor))
        rest += [record.id for record in records if record.id != "new" or bench.store.capabilities.submit_order]
    assert bench.in_page_order(rest, unseen[1:])


@pytest.mark.parametrize("cursor", ["abc", "1.5", "9" * 40, "-1", "'; DROP TABLE tasks"])
async def test_a_cursor_that_was_never_given_is_refused_or_leads_nowhere_new(bench: Bench, cursor: str) -> None:
    await bench.submit_many(3)
    try:
        records, _ = await bench.store.queries.page(Query(cursor=cursor))
    except StoreError:
        return
    assert {record.id for record in records} <= {"t0", "t1", "t2"}


# --- counts


async def test_counts_of_an_empty_store(bench: Bench) -> None:
    stats = await bench.store.queries.stats()
    assert stats.statuses == dict.fromkeys(Status, 0)
    assert (stats.ready, stats.parked, stats.workers, stats.dropped) == ({}, {}, 0, 0)


async def test_counts_by_status(bench: Bench) -> None:
    await bench.bring(Status.SUCCESS, "done")
    await bench.bring(Status.DEAD, "dead")
    await bench.bring(Status.RETRYING, "retrying")
    await bench.bring(Status.RUNNING, "running")
    await bench.submit("pending", delay=1000)
    await bench.submit("blocked", depends_on=("pending",))
    await bench.submit_many(2, "ready")
    await bench.submit("cancelled")
    await bench.cancel("cancelled", False)
    assert (await bench.store.queries.stats()).statuses == {
        Status.PENDING: 1,
        Status.BLOCKED: 1,
        Status.READY: 2,
        Status.ASSIGNED: 0,
        Status.RUNNING: 1,
        Status.RETRYING: 1,
        Status.SUCCESS: 1,
        Status.FAILED: 0,
        Status.DEAD: 1,
        Status.CANCELLED: 1,
    }


async def test_ready_tasks_are_counted_by_queue_and_band(bench: Bench) -> None:
    for queue, priority in (("a", 10), ("a", 10), ("a", 3), ("b", 5), ("b", 9)):
        await bench.submit(queue=queue, priority=priority)
    assert (await bench.store.queries.stats()).ready == {("a", Band.HIGH): 2, ("a", Band.LOW): 1, ("b", Band.NORMAL): 2}
    await bench.claim(10, queues=("a", "b"))
    assert (await bench.store.queries.stats()).ready == {}


async def test_parked_tasks_are_counted_by_queue_and_type_over_all_bands(bench: Bench) -> None:
    for queue, kind, priority in (("a", "x", 10), ("a", "x", 1), ("a", "y", 5), ("b", "x", 5)):
        await bench.submit(queue=queue, type=kind, priority=priority)
    await bench.claim(10, queues=("a", "b"))
    stats = await bench.store.queries.stats()
    assert stats.parked == {("a", "x"): 2, ("a", "y"): 1, ("b", "x"): 1}
    assert sum(stats.ready.values()) == 4, "parked tasks are ready tasks"


async def test_only_living_workers_are_counted(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        await bench.store.members.beat(Worker(id=name))
    await bench.store.members.leave("a")
    await bench.store.tasks.reclaim(10, gone=("b",))
    assert (await bench.store.queries.stats()).workers == 1


# --- pauses


async def test_pauses_are_listed_with_time_and_note(bench: Bench) -> None:
    now = bench.clock.now()
    await bench.store.operators.pause("type", "send", "provider is down")
    await bench.store.operators.pause("queue", "b")
    await bench.store.operators.pause("queue", "a")
    assert await bench.store.queries.paused() == [
        Pause("queue", "a", now),
        Pause("queue", "b", now),
        Pause("type", "send", now, "provider is down"),
    ]


async def test_a_second_pause_replaces_the_note(bench: Bench) -> None:
    await bench.store.operators.pause("queue", "a", "first")
    bench.clock.advance(1)
    await bench.store.operators.pause("queue", "a", "second")
    assert await bench.store.queries.paused() == [Pause("queue", "a", bench.clock.now(), "second")]
    assert await bench.store.operators.resume("queue", "a") is True
    assert await bench.store.queries.paused() == []
    assert await bench.store.operators.resume("queue", "a") is False


async def test_the_clock_is_the_stores(bench: Bench) -> None:
    assert bench.store.now() == bench.clock.now()
    bench.clock.advance(5)
    assert bench.store.now() == bench.clock.now()


# --- what keeps a task from running


async def _ahead(bench: Bench, *ids: str) -> list[int]:
    found = [await bench.store.queries.situation(task_id) for task_id in ids]
    return [-1 if each is None else each.ahead for each in found]


async def test_the_situation_counts_those_that_are_taken_before(bench: Bench) -> None:
    bench.together()
    await bench.submit("low", priority=1)
    await bench.submit_many(4)
    await bench.submit("other", queue="other", priority=10)
    assert await _ahead(bench, "t0", "t1", "t2", "t3", "low") == [0, 1, 2, 3, 4]
    await bench.submit("first", priority=10)
    assert await _ahead(bench, "first", "t0", "low") == [0, 1, 5]


async def test_a_task_in_the_front_lane_has_only_those_before_it(bench: Bench) -> None:
    bench.together()
    leases = [await bench.start("one"), await bench.start("two")]
    await bench.submit("three")
    for lease in leases:
        await bench.end(Released(lease))
    assert await _ahead(bench, "one", "two", "three") == [0, 1, 2]


async def test_a_parked_task_has_those_before_it_that_are_parked_for_its_type(bench: Bench) -> None:
    bench.together()
    await bench.submit("one", type="strange")
    await bench.submit("two", type="odd")
    await bench.submit("three", type="strange")
    assert await bench.claimed_ids() == []
    assert await _ahead(bench, "one", "two", "three") == [0, 0, 1]


async def test_no_more_than_a_thousand_are_counted(bench: Bench) -> None:
    bench.together()
    ids = await bench.submit_many(AHEAD_MAX + 2)
    places = [AHEAD_MAX - 1, AHEAD_MAX, AHEAD_MAX]
    assert await _ahead(bench, *ids[-3:]) == places


async def test_the_situation_has_the_pauses_of_the_task_and_what_workers_run(bench: Bench) -> None:
    await bench.submit_many(3)
    await bench.claim(2, "w1")
    await bench.claim(1, "w2")
    await bench.submit("it")
    for name in ("default", "other"):
        await bench.store.operators.pause("queue", name, "for now")
    for name in ("job", "other"):
        await bench.store.operators.pause("type", name, "for now")
    found = await bench.store.queries.situation("it")
    assert found is not None
    pauses = [(pause.kind, pause.name, pause.note) for pause in found.pauses]
    assert pauses == [("queue", "default", "for now"), ("type", "job", "for now")]
    assert (found.record.id, found.running) == ("it", {"w1": 2, "w2": 1})


async def test_the_situation_of_a_running_task_has_its_lease(bench: Bench) -> None:
    await bench.start("it")
    found = await bench.store.queries.situation("it")
    assert found is not None
    assert found.record == await bench.record("it")
    assert (found.ahead, found.pauses, found.running) == (0, [], {"w1": 1})


async def test_there_is_no_situation_without_a_task(bench: Bench) -> None:
    assert await bench.store.queries.situation("nobody") is None


async def test_the_time_is_not_before_any_submit_that_was_answered(bench: Bench) -> None:
    before = await bench.store.queries.time()
    await bench.submit_many(20)
    after = await bench.store.queries.time()
    times = [(await bench.record(f"t{number}")).submitted_at for number in range(20)]
    assert before <= min(times) <= max(times) <= after
    bench.clock.advance(5)
    assert await bench.store.queries.time() == after + 5000


async def test_how_full_it_is_is_a_share(bench: Bench) -> None:
    await bench.submit("t1")
    assert 0 <= await bench.store.queries.fullness() <= 1
