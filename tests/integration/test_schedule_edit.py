"""Schedules that are changed in part, while they fire and while others change them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.apps import Make, eventually, store_of
from tickwork import (
    ConfigError,
    FixedDelay,
    PayloadError,
    RetryPolicy,
    ScheduleInfo,
    ScheduleNotFound,
    Scheduler,
    StoreUnavailable,
)
from tickwork.client import schedules
from tickwork.client.editing import ScheduleChanges
from tickwork.store.contract import Advance, Worker
from tickwork.testing import ManualClock, drain

# For each option that may be changed: what it is changed to, and how that is read back.
CHANGES: dict[str, tuple[Any, Any]] = {
    "type": ("other", "other"),
    "payload": ({"n": 2}, {"n": 2}),
    "cron": ("0 4 * * *", "0 4 * * *"),
    "timezone": ("Asia/Tokyo", "Asia/Tokyo"),
    "name": ("Nightly", "Nightly"),
    "dst": ("instant", "instant"),
    "overlap": ("allow", "allow"),
    "misfire": ("all", "all"),
    "misfire_grace": (timedelta(minutes=1), 60.0),
    "misfire_cap": (7, 7),
    "on_exhausted": ("stop", "stop"),
    "enabled": (False, False),
    "queue": ("slow", "slow"),
    "priority": (9, 9),
    "max_retry": (7, 7),
    "timeout": (timedelta(seconds=9), 9.0),
    "retry": (FixedDelay(4), FixedDelay(4)),
    "key": ("customer-7", "customer-7"),
    "tags": ({"env": "prod"}, {"env": "prod"}),
    "context": ({"trace": "t"}, {"trace": "t"}),
    "serializer": ("msgpack", "msgpack"),
    "executor": ("elsewhere", "elsewhere"),
    "target": ("w1", "w1"),
    "requires": ({"gpu": "a100"}, {"gpu": "a100"}),
    "dedup_key": ("one", "one"),
    "dedup_ttl": (5, 5.0),
    "unique": ("queued", "queued"),
    "retention": (60, 60.0),
}
READ_ONLY = {
    "id", "description", "next_at", "last_fire_at", "last_task_id", "last_status", "stopped", "created_at",
    "updated_at",
}  # fmt: skip


@dataclass
class Report:
    kind: str


def make_app(make: Make, url: str, **options: Any) -> Scheduler:
    app = make(url, **options)
    app.executors.register("elsewhere", None)
    for name in ("job", "other"):
        app.task(name)(lambda n: None)
    return app


def test_all_that_can_be_changed_is_read_back() -> None:
    """An option that is added to one of them must be added to the others, and to the samples above."""
    editable = set(ScheduleChanges.__annotations__)
    assert editable == set(CHANGES)
    assert editable == set(ScheduleInfo.__struct_fields__) - READ_ONLY


@pytest.mark.parametrize("name", CHANGES)
async def test_one_change_leaves_the_rest(make: Make, url: str, name: str) -> None:
    app = make_app(make, url)
    beside: Any = {"dedup_key": "before"} if name in ("dedup_ttl", "unique") else {}
    before = await app.schedules.put("s", "job", {"n": 1}, cron="0 3 * * *", timezone="Europe/Berlin", **beside)
    value, shown = CHANGES[name]
    changes: Any = {name: value}
    if name == "target":
        await (await store_of(app)).members.beat(Worker(id="w1", node="n1"))
    after = await app.schedules.edit("s", **changes)
    assert after == await app.schedules.get("s")
    assert getattr(after, name) == shown
    follows = {
        "cron": {"description", "next_at"},
        "timezone": {"next_at"},
        "enabled": {"next_at"},
        "dedup_key": {"dedup_ttl"},
        "unique": {"dedup_ttl"},
    }
    for other in set(ScheduleInfo.__struct_fields__) - {name, "updated_at"} - follows.get(name, set()):
        assert getattr(after, other) == getattr(before, other), other


async def test_several_changes_at_once_also_for_blocking_code(make: Make, url: str) -> None:
    app = make_app(make, url)
    await app.schedules.put("s", "job", {"n": 1}, cron="0 3 * * *")
    found = await asyncio.to_thread(app.sync.schedules.edit, "s", payload={"n": 3}, retry=RetryPolicy(2, 5))
    assert (found.payload, found.max_retry, found.cron) == ({"n": 3}, 2, "0 3 * * *")
    assert found.retry == RetryPolicy(2, 5).backoff


async def test_history_pause_and_next_tick_are_kept(make: Make, url: str) -> None:
    app = make_app(make, url)
    await app.schedules.put("s", "job", {"n": 1}, cron="0 0 * * *")
    store = await store_of(app)
    stored = await store.schedules.get("s")
    assert stored is not None
    next_at = (stored.next_at or 0) + 86_400_000
    await store.schedules.advance("s", stored.next_at, Advance(next_at, fired="s@1", fire_at=stored.next_at))
    await app.schedules.pause("s")
    before = await store.schedules.get("s")
    await app.schedules.edit("s", payload={"n": 2})
    after = await store.schedules.get("s")
    assert before is not None
    assert after is not None
    for name in ("paused", "next_at", "last_task_id", "last_fire_at", "created_at"):
        assert getattr(after, name) == getattr(before, name), name
    assert (after.paused, after.next_at, after.last_task_id) == (True, next_at, "s@1")
    await app.schedules.edit("s", cron="0 12 * * *")
    moved = await store.schedules.get("s")
    assert moved is not None
    assert moved.next_at != next_at
    assert (moved.paused, moved.last_task_id) == (True, "s@1")


async def test_ticks_after_an_edit_run_what_it_says(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[int] = []

    @app.task
    async def job(n: int) -> None:
        ran.append(n)

    async with app:
        await app.schedules.put("s", "job", {"n": 1}, cron="* * * * *")
        clock.advance(60)
        await eventually(lambda: len(ran) == 1)
        await app.schedules.edit("s", payload={"n": 2})
        clock.advance(60)
        await eventually(lambda: len(ran) == 2)
        await drain(app)
    assert ran == [1, 2]


async def test_a_tick_between_reading_and_writing_is_not_lost(
    make: Make, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(make, url)
    await app.schedules.put("s", "job", {"n": 1}, cron="0 0 * * *")
    store = await store_of(app)
    found = await store.schedules.get("s")
    assert found is not None
    seen = found.next_at

    async def tick() -> None:
        await store.schedules.advance("s", seen, Advance((seen or 0) + 86_400_000, fired="s@1", fire_at=seen))

    find = schedules.Schedules._find

    async def find_then_tick(self: Any, schedule_id: str) -> Any:
        result = await find(self, schedule_id)
        await tick()
        return result

    monkeypatch.setattr(schedules.Schedules, "_find", find_then_tick)
    info = await app.schedules.edit("s", payload={"n": 2})
    assert (info.payload, info.last_task_id) == ({"n": 2}, "s@1")
    assert info.next_at is not None
    assert round(info.next_at.timestamp() * 1000) == (seen or 0) + 86_400_000


async def test_changes_of_others_at_the_same_time_are_kept(
    make: Make, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(make, url)
    await app.schedules.put("s", "job", {"n": 1}, cron="0 0 * * *")
    names = ("queue", "priority", "max_retry", "tags", "cron", "overlap", "payload", "name")
    changes: list[Any] = [{name: CHANGES[name][0]} for name in names]
    await asyncio.gather(*(app.schedules.edit("s", **change) for change in changes))
    found = await app.schedules.get("s")
    for name in names:
        assert getattr(found, name) == CHANGES[name][1], name

    find = schedules.Schedules._find
    deleted = False

    async def find_then_delete(self: Any, schedule_id: str) -> Any:
        nonlocal deleted
        result = await find(self, schedule_id)
        if not deleted:
            deleted = True
            await app.schedules.delete("s")
        return result

    monkeypatch.setattr(schedules.Schedules, "_find", find_then_delete)
    with pytest.raises(ScheduleNotFound):
        await app.schedules.edit("s", queue="again")


async def test_an_edit_that_is_always_overtaken_says_so(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(make, "memory://")
    await app.schedules.put("s", "job", {"n": 1})
    find, count = schedules.Schedules._find, 0

    async def find_then_put(self: Any, schedule_id: str) -> Any:
        nonlocal count
        result = await find(self, schedule_id)
        count += 1
        await app.schedules.put("s", "job", {"n": 100 + count})
        return result

    monkeypatch.setattr(schedules.Schedules, "_find", find_then_put)
    with pytest.raises(StoreUnavailable, match="changed by others all the time"):
        await app.schedules.edit("s", queue="slow")


async def test_none_takes_an_option_back_to_its_default(make: Make, url: str) -> None:
    app = make_app(make, url)
    options: Any = {name: CHANGES[name][0] for name in ("queue", "priority", "max_retry", "retry", "tags", "retention")}
    await app.schedules.put("s", "job", {"n": 1}, cron="0 3 * * *", timezone="Asia/Tokyo", dedup_key="k", **options)
    changes: Any = dict.fromkeys([*options, "cron", "timezone", "dedup_key"])
    found = await app.schedules.edit("s", **changes)
    assert (found.queue, found.priority, found.max_retry, found.retry) == ("default", 5, None, None)
    assert (found.tags, found.retention, found.dedup_key, found.dedup_ttl) == ({}, None, None, None)
    assert (found.cron, found.timezone, found.next_at) == (None, "UTC", None)


async def test_how_long_a_dedup_key_is_held(make: Make) -> None:
    app = make_app(make, "memory://")
    await app.schedules.put("s", "job", {"n": 1}, dedup_key="k", dedup_ttl=5)

    async def held(**changes: Any) -> tuple[Any, ...]:
        found = await app.schedules.edit("s", **changes)
        return found.dedup_key, found.dedup_ttl, found.unique

    assert await held(dedup_key="other") == ("other", 5.0, None)
    assert await held(unique="unfinished") == ("other", None, "unfinished")
    assert await held(dedup_key="k") == ("k", None, "unfinished")
    assert await held(dedup_ttl=9) == ("k", 9.0, None)
    assert await held(dedup_ttl=None) == ("k", 3600.0, None)
    with pytest.raises(ConfigError, match="give only one of them"):
        await held(dedup_ttl=9, unique="queued")
    assert await held(dedup_key=None) == (None, None, None)
    with pytest.raises(ConfigError, match="give dedup_key with it"):
        await held(unique="queued")


async def test_a_key_that_the_handler_finds_in_the_payload_follows_it(make: Make) -> None:
    app = make("memory://")

    @app.task(key="n")
    async def job(n: int) -> None: ...

    await app.schedules.put("s", "job", {"n": 1})
    assert (await app.schedules.edit("s", payload={"n": 2})).key == "2"


class TestRefused:
    async def test_a_name_that_nobody_knows(self, make: Make, url: str) -> None:
        app = make_app(make, url)
        await app.schedules.put("s", "job", {"n": 1})
        wrong: Any = {"chron": "0 3 * * *"}
        with pytest.raises(ConfigError, match="unknown option 'chron'; did you mean 'cron'"):
            await app.schedules.edit("s", **wrong)
        for handler_only in ({"retry_on": ValueError}, {"abort_on": ValueError}):
            wrong = handler_only
            with pytest.raises(ConfigError, match="is an option of the handler"):
                await app.schedules.edit("s", **wrong)

    async def test_a_schedule_that_is_not_there(self, make: Make, url: str) -> None:
        with pytest.raises(ScheduleNotFound):
            await make_app(make, url).schedules.edit("nobody", queue="slow")

    @pytest.mark.parametrize(
        "changes",
        [
            {"cron": "61 * * * *"},
            {"timezone": "Nowhere/Town"},
            {"overlap": "maybe"},
            {"enabled": "yes"},
            {"misfire_cap": 0},
            {"priority": 11},
            {"queue": "a b"},
            {"executor": "nobody"},
            {"target": "w1"},
            {"retry": lambda retry, error: 1},
            {"timeout": "soon"},
        ],
    )
    async def test_values_that_cannot_be_used(self, make: Make, changes: Any) -> None:
        app = make_app(make, "memory://")
        before = await app.schedules.put("s", "job", {"n": 1}, cron="0 3 * * *")
        with pytest.raises(ConfigError):
            await app.schedules.edit("s", **changes)
        assert await app.schedules.get("s") == before

    async def test_a_payload_that_does_not_fit(self, make: Make) -> None:
        app = make("memory://")

        @app.task
        async def job(n: int) -> None: ...

        @app.task
        async def report(what: Report) -> None: ...

        await app.schedules.put("s", "job", {"n": 1})
        with pytest.raises(PayloadError):
            await app.schedules.edit("s", payload={"n": "many"})
        with pytest.raises(PayloadError):
            await app.schedules.edit("s", type="report")
        found = await app.schedules.edit("s", type="report", payload={"what": {"kind": "daily"}})
        assert (found.type, found.payload) == ("report", {"what": {"kind": "daily"}})
        with pytest.raises(PayloadError, match="the limit is"):
            await app.schedules.edit("s", payload={"what": {"kind": "x" * 300_000}})
