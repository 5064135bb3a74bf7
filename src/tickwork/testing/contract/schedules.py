"""Recurring definitions: written once, fired by whoever comes first."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tickwork.model.outcomes import Succeeded
from tickwork.model.schedules import Misfire, Overlap, Schedule
from tickwork.model.tasks import Spec, Status
from tickwork.store.contract import SCHEDULES_PAGE, Advance
from tickwork.testing.contract.bench import START, Bench

FULL_SCHEDULE = Schedule(
    id="nightly",
    name="Nightly report",
    cron="0 0 * * *",
    timezone="Asia/Shanghai",
    dst="instant",
    task=Spec(id="", type="report", nonce="n1", payload=b"{}", tags={"env": "prod"}, priority=10),
    overlap=Overlap.QUEUE,
    misfire=Misfire.ALL,
    misfire_grace=5,
    misfire_cap=7,
    on_exhausted="stop",
    next_at=START + 60_000,
)


def schedule(schedule_id: str = "s", **fields: Any) -> Schedule:
    fields.setdefault("task", Spec(id="", type="job", nonce="n"))
    fields.setdefault("cron", "@hourly")
    fields.setdefault("next_at", START + 1000)
    return Schedule(id=schedule_id, **fields)


# --- put


async def test_what_was_put_is_read_back_whole(bench: Bench) -> None:
    stored = await bench.put(FULL_SCHEDULE)
    assert stored == replace(FULL_SCHEDULE, created_at=START, updated_at=START)
    assert await bench.store.schedules.get("nightly") == stored
    assert await bench.schedules() == [stored]


async def test_schedules_are_listed_by_name(bench: Bench) -> None:
    for name in ("b", "c", "a"):
        await bench.put(schedule(name))
    assert [found.id for found in await bench.schedules()] == ["a", "b", "c"]


async def test_many_schedules_are_listed_in_pages(bench: Bench) -> None:
    names = [f"s{number:04}" for number in range(2 * SCHEDULES_PAGE + 100)]
    for name in names:
        await bench.put(schedule(name, cron=None, next_at=None))
    found, pages, cursor = list[str](), 0, None
    while cursor is not None or not pages:
        page, cursor = await bench.store.schedules.page(cursor)
        shown = [each.id for each in page]
        assert shown == sorted(shown)
        assert len(shown) < 2 * SCHEDULES_PAGE
        found, pages = found + shown, pages + 1
    assert sorted(set(found)) == names
    assert pages > 1


async def test_a_page_goes_on_though_the_last_one_of_the_page_before_is_gone(bench: Bench) -> None:
    for number in range(SCHEDULES_PAGE + 200):
        await bench.put(schedule(f"s{number:04}", cron=None, next_at=None))
    first, cursor = await bench.store.schedules.page()
    assert cursor is not None
    await bench.store.schedules.drop(first[-1].id)
    second, _ = await bench.store.schedules.page(cursor)
    assert len({each.id for each in first + second}) == SCHEDULES_PAGE + 200


async def test_a_schedule_that_is_not_there(bench: Bench) -> None:
    store = bench.store
    assert await store.schedules.get("nobody") is None
    assert await store.schedules.drop("nobody") is False
    assert await store.schedules.advance("nobody", None, Advance(5)) is None
    assert await store.schedules.change("nobody", paused=True) is False
    assert await store.schedules.report_run("nobody", "t", Status.SUCCESS) is None
    assert await bench.schedules() == []


async def test_replacing_keeps_the_history(bench: Bench) -> None:
    await bench.put(schedule(misfire_cap=1))
    await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000, fired="s@1", fire_at=START + 1000))
    await bench.store.schedules.report_run("s", "s@1", Status.SUCCESS)
    bench.clock.advance(5)
    new = await bench.put(schedule(misfire_cap=2, created_at=1, last_task_id="made up"))
    assert (new.misfire_cap, new.created_at, new.updated_at) == (2, START, START + 5000)
    assert (new.last_fire_at, new.last_task_id, new.last_status) == (START + 1000, "s@1", "success")


async def test_a_definition_that_was_seen_is_replaced_by_another(bench: Bench) -> None:
    seen = await bench.put(schedule())
    new = await bench.store.schedules.put(replace(seen, misfire_cap=3), seen=seen)
    assert new is not None
    assert (new.misfire_cap, await bench.store.schedules.get("s")) == (3, new)


async def test_ticks_and_pauses_do_not_hinder_who_has_seen_the_definition(bench: Bench) -> None:
    schedules = bench.store.schedules
    seen = await bench.put(schedule())
    await schedules.advance("s", START + 1000, Advance(START + 2000, fired="s@1", fire_at=START + 1000))
    await schedules.report_run("s", "s@1", Status.SUCCESS)
    await schedules.change("s", paused=True)
    new = await schedules.put(replace(seen, misfire_cap=3), seen=seen)
    assert new is not None
    assert (new.misfire_cap, new.paused, new.next_at) == (3, True, START + 2000)
    assert (new.last_task_id, new.last_status) == ("s@1", "success")


@pytest.mark.parametrize("change", [{"cron": "@daily"}, {"name": "other"}, {"enabled": False}, {"misfire_cap": 9}])
async def test_a_definition_that_is_another_by_now_is_left_alone(bench: Bench, change: dict[str, Any]) -> None:
    seen = await bench.put(schedule())
    now = await bench.put(schedule(**change))
    assert await bench.store.schedules.put(replace(seen, misfire_cap=3), seen=seen) is None
    assert await bench.store.schedules.get("s") == now


async def test_a_schedule_that_was_seen_and_is_gone_is_not_made_again(bench: Bench) -> None:
    seen = await bench.put(schedule())
    await bench.store.schedules.drop("s")
    assert await bench.store.schedules.put(replace(seen, misfire_cap=3), seen=seen) is None
    assert await bench.store.schedules.get("s") is None


async def test_the_next_tick_stays_while_the_time_line_is_the_same(bench: Bench) -> None:
    await bench.put(schedule())
    new = await bench.put(schedule(next_at=START + 999_000, name="renamed"))
    assert (new.name, new.next_at) == ("renamed", START + 1000)


@pytest.mark.parametrize("change", [{"cron": "@daily"}, {"timezone": "Asia/Tokyo"}, {"dst": "instant"}], ids=str)
async def test_another_time_line_brings_its_own_next_tick(bench: Bench, change: dict[str, Any]) -> None:
    await bench.put(schedule())
    new = await bench.put(schedule(next_at=START + 999_000, **change))
    assert new.next_at == START + 999_000


async def test_a_schedule_that_had_no_next_tick_gets_one(bench: Bench) -> None:
    await bench.put(schedule(next_at=None))
    assert (await bench.put(schedule())).next_at == START + 1000


async def test_an_equal_definition_changes_nothing_when_asked_so(bench: Bench) -> None:
    old = await bench.put(schedule())
    bench.clock.advance(5)
    again = schedule(next_at=START + 999_000, task=Spec(id="", type="job", nonce="another process"))
    assert await bench.put(again, if_changed=True) == old
    assert await bench.store.schedules.get("s") == old
    assert await bench.facts() == ["schedule.put"]


async def test_an_equal_definition_changes_nothing_after_fires_either(bench: Bench) -> None:
    await bench.put(schedule())
    await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000, fired="s@1", fire_at=START + 1000))
    await bench.store.schedules.report_run("s", "s@1", Status.DEAD)
    await bench.store.schedules.change("s", stopped="retries spent", paused=True)
    before = await bench.store.schedules.get("s")
    bench.clock.advance(5)
    assert await bench.put(schedule(), if_changed=True) == before


async def test_a_changed_definition_is_written_when_asked_so(bench: Bench) -> None:
    await bench.put(schedule())
    changed = schedule(task=Spec(id="", type="job", nonce="n", payload=b"2"))
    assert (await bench.put(changed, if_changed=True)).task.payload == b"2"
    assert await bench.facts() == ["schedule.put", "schedule.put"]


async def test_a_new_definition_does_not_wake_a_paused_schedule(bench: Bench) -> None:
    await bench.put(schedule())
    await bench.store.schedules.change("s", paused=True)
    renamed = await bench.put(schedule(name="renamed"))
    assert (renamed.active, renamed.paused) == (False, True)


async def test_drop_removes_it_for_good(bench: Bench) -> None:
    await bench.put(schedule())
    assert await bench.store.schedules.drop("s") is True
    assert await bench.store.schedules.drop("s") is False
    assert await bench.store.schedules.get("s") is None
    bench.clock.advance(60)
    assert await bench.store.schedules.due(10) == ([], None)
    new = await bench.put(schedule())
    assert (new.created_at, new.last_task_id) == (START + 60_000, None)


# --- due


async def test_due_ones_come_in_order_of_their_time(bench: Bench) -> None:
    for name, second in (("c", 1), ("a", 3), ("b", 2), ("later", 10)):
        await bench.put(schedule(name, next_at=START + second * 1000))
    assert await bench.store.schedules.due(10) == ([], 1000)
    bench.clock.advance(3)
    due, next_in = await bench.store.schedules.due(10)
    assert ([found.id for found in due], next_in) == (["c", "b", "a"], 7000)


async def test_a_schedule_is_due_to_the_millisecond(bench: Bench) -> None:
    await bench.put(schedule())
    bench.clock.advance(0.999)
    assert await bench.store.schedules.due(10) == ([], 1)
    bench.clock.advance(0.001)
    due, next_in = await bench.store.schedules.due(10)
    assert ([found.id for found in due], next_in) == (["s"], None)


async def test_those_behind_one_that_stays_due(bench: Bench) -> None:
    for name, second in (("a", 2), ("b", 1), ("c", 2), ("d", 3), ("e", 4), ("later", 10)):
        await bench.put(schedule(name, next_at=START + second * 1000))
    bench.clock.advance(5)

    async def due(limit: int, after: str) -> tuple[list[str], int | None]:
        found, later = await bench.store.schedules.due(limit, after)
        return [each.id for each in found], later

    assert await due(2, "b") == (["a", "c"], 0)
    assert await due(2, "a") == (["c", "d"], 0)
    assert await due(2, "c") == (["d", "e"], 5000)
    assert await due(2, "e") == ([], 5000)
    await bench.store.schedules.drop("a")
    assert await due(2, "a") == (["b", "c"], 0), "nothing is behind one that is gone, so all are"


async def test_when_more_are_due_than_asked_for_the_rest_is_due_now(bench: Bench) -> None:
    for name in ("b", "a", "c"):
        await bench.put(schedule(name))
    bench.clock.advance(5)
    due, next_in = await bench.store.schedules.due(2)
    assert ([found.id for found in due], next_in) == (["a", "b"], 0)


async def test_paused_ones_and_ones_without_a_time_are_never_due(bench: Bench) -> None:
    await bench.put(schedule("paused", enabled=False))
    await bench.put(schedule("by hand", cron=None, next_at=None))
    bench.clock.advance(3600)
    assert await bench.store.schedules.due(10) == ([], None)


# --- advance


async def test_of_two_advancers_one_wins(bench: Bench) -> None:
    await bench.put(schedule())
    bench.clock.advance(1)
    first = Advance(START + 2000, fired="s@1", fire_at=START + 1000)
    second = Advance(START + 9000, fired="s@2", fire_at=START + 1000)
    assert await bench.store.schedules.advance("s", START + 1000, first) is not None
    assert await bench.store.schedules.advance("s", START + 1000, second) is None
    found = await bench.store.schedules.get("s")
    assert found is not None
    assert (found.next_at, found.last_fire_at, found.last_task_id) == (START + 2000, START + 1000, "s@1")
    assert (await bench.facts()).count("schedule.fired") == 1
    assert await bench.store.schedules.due(10) == ([], 1000)


async def test_a_fire_clears_the_last_outcome(bench: Bench) -> None:
    await bench.put(schedule())
    await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000, fired="s@1", fire_at=1))
    await bench.store.schedules.report_run("s", "s@1", Status.DEAD)
    await bench.store.schedules.advance("s", START + 2000, Advance(START + 3000, fired="s@2", fire_at=2))
    found = await bench.store.schedules.get("s")
    assert found is not None
    assert (found.last_task_id, found.last_status) == ("s@2", "")


async def test_a_skip_keeps_the_last_fire_and_says_why(bench: Bench) -> None:
    await bench.put(schedule())
    await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000, fired="s@1", fire_at=1))
    await bench.store.schedules.advance("s", START + 2000, Advance(START + 3000, skipped="s@1 still runs"))
    found = await bench.store.schedules.get("s")
    assert found is not None
    assert (found.last_task_id, found.next_at) == ("s@1", START + 3000)
    last = (await bench.events())[-1]
    assert (last.kind, last.id, last.detail) == ("schedule.skipped", "s", "s@1 still runs")


async def test_missed_ticks_are_written_before_the_fire(bench: Bench) -> None:
    await bench.put(schedule())
    await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000, fired="s@1", fire_at=1, missed=5))
    missed, fired = (await bench.events())[-2:]
    assert (missed.kind, missed.detail) == ("schedule.missed", "5 ticks")
    assert (fired.kind, fired.detail) == ("schedule.fired", "s@1")


async def test_a_schedule_may_come_to_its_last_tick(bench: Bench) -> None:
    await bench.put(schedule())
    assert await bench.store.schedules.advance("s", START + 1000, Advance(None)) is not None
    bench.clock.advance(3600)
    assert await bench.store.schedules.due(10) == ([], None)
    assert await bench.store.schedules.advance("s", START + 1000, Advance(START + 5)) is None
    assert await bench.store.schedules.advance("s", None, Advance(START + 5)) is not None


# --- ticks


def tick(number: int, **fields: Any) -> Spec:
    return Spec(
        id=f"s@{number}", type="job", nonce="tick", schedule_id="s", scheduled_at=number, run_after="end", **fields
    )


async def test_the_tasks_of_ticks_are_created_with_the_step(bench: Bench) -> None:
    await bench.put(schedule())
    step, ticks = Advance(START + 2000, missed=1), (tick(1), tick(2, depends_on=("s@1",)))
    assert await bench.store.schedules.advance("s", START + 1000, step, ticks) == Advance(
        START + 2000, "s@2", 2, missed=1
    )
    found = await bench.store.schedules.get("s")
    assert found is not None
    assert (found.next_at, found.last_task_id, found.last_fire_at) == (START + 2000, "s@2", 2)
    assert [await bench.status(name) for name in ("s@1", "s@2")] == [Status.READY, Status.BLOCKED]
    told = [(event.kind, event.detail) for event in await bench.events() if event.id == "s"]
    assert told[-2:] == [("schedule.missed", "1 ticks"), ("schedule.fired", "s@2")]


async def test_a_step_that_comes_too_late_creates_nothing(bench: Bench) -> None:
    await bench.put(schedule())
    assert await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000), (tick(1),)) is not None
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease))
    await bench.propagate()
    await bench.delete("s@1")
    assert await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000), (tick(1),)) is None
    assert await bench.store.schedules.advance("nobody", START + 1000, Advance(START + 2000), (tick(1),)) is None
    assert await bench.walk() == []


async def test_a_tick_whose_forerunner_is_gone_waits_for_nobody(bench: Bench) -> None:
    await bench.put(schedule())
    await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000), (tick(1, depends_on=("s@0",)),))
    assert await bench.claimed_ids() == ["s@1"]


async def test_ticks_whose_dedup_key_is_held_are_skipped(bench: Bench) -> None:
    bench.together()
    await bench.put(schedule())
    await bench.submit("holder", dedup_key="k", dedup_ttl=60_000)
    ticks = tuple(tick(number, dedup_key="k", dedup_ttl=60_000) for number in (1, 2))
    done = await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000), ticks)
    assert done == Advance(START + 2000, skipped="holder", missed=1)
    found = await bench.store.schedules.get("s")
    assert found is not None
    assert (found.next_at, found.last_task_id) == (START + 2000, None)
    assert await bench.claimed_ids() == ["holder"]
    told = [(event.kind, event.detail) for event in await bench.events() if event.id == "s"]
    assert told[-2:] == [("schedule.missed", "1 ticks"), ("schedule.skipped", "holder")]


async def test_of_ticks_with_a_dedup_key_the_first_is_fired(bench: Bench) -> None:
    bench.together()
    await bench.put(schedule())
    ticks = tuple(tick(number, dedup_key="k", dedup_ttl=60_000) for number in (1, 2))
    done = await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000), ticks)
    assert done == Advance(START + 2000, "s@1", 1)
    assert await bench.claimed_ids() == ["s@1"]


async def test_more_ticks_than_one_call_carries(bench: Bench) -> None:
    await bench.put(schedule())
    ticks = tuple(tick(number) for number in range(250))
    done = await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000), ticks)
    assert done == Advance(START + 2000, "s@249", 249)
    assert len(await bench.claimed_ids(1000)) == 250


# --- set and report


async def test_pause_and_resume(bench: Bench) -> None:
    await bench.put(schedule())
    bench.clock.advance(5)
    assert await bench.store.schedules.change("s", paused=True) is True
    assert await bench.store.schedules.due(10) == ([], None)
    paused = await bench.store.schedules.get("s")
    assert paused is not None
    assert (paused.active, paused.next_at, paused.updated_at) == (False, START + 1000, START + 5000)
    assert await bench.store.schedules.change("s", paused=False, next_at=START + 60_000) is True
    assert await bench.store.schedules.due(10) == ([], 55_000)


async def test_a_stop_is_written_with_its_reason_and_a_resume_clears_it(bench: Bench) -> None:
    await bench.put(schedule())
    await bench.store.schedules.change("s", paused=True, stopped="retries spent")
    stopped = await bench.store.schedules.get("s")
    assert stopped is not None
    assert (stopped.active, stopped.stopped) == (False, "retries spent")
    last = (await bench.events())[-1]
    assert (last.kind, last.detail) == ("schedule.stopped", "retries spent")
    await bench.store.schedules.change("s", paused=False, stopped="")
    resumed = await bench.store.schedules.get("s")
    assert resumed is not None
    assert (resumed.active, resumed.stopped) == (True, "")
    assert (await bench.facts())[-1] == "schedule.put"


async def test_a_run_is_reported_once_it_is_the_last_one(bench: Bench) -> None:
    await bench.put(schedule())
    await bench.store.schedules.advance("s", START + 1000, Advance(START + 2000, fired="s@1", fire_at=1))
    await bench.store.schedules.advance("s", START + 2000, Advance(START + 3000, fired="s@2", fire_at=2))
    old = await bench.store.schedules.report_run("s", "s@1", Status.DEAD)
    assert old is not None
    assert old.last_status == "", "a late report does not speak for the newer run"
    new = await bench.store.schedules.report_run("s", "s@2", Status.SUCCESS)
    assert new is not None
    assert new.last_status == "success"
    assert await bench.store.schedules.get("s") == new


async def test_create_refuses_to_replace(bench: Bench) -> None:
    first = await bench.store.schedules.put(schedule(name="first"), create=True)
    assert first is not None
    assert await bench.store.schedules.put(schedule(name="second"), create=True) is None
    assert await bench.store.schedules.get("s") == first


async def test_a_definition_that_is_enabled_again_runs_again(bench: Bench) -> None:
    off = await bench.put(schedule(enabled=False))
    on = await bench.put(schedule(enabled=True))
    assert (off.active, on.active) == (False, True)
