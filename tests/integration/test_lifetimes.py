"""How long a task may wait, holds its key and is kept: `expires`, `unique` and `retention`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from tests.integration.apps import Make, store_of
from tickwork import ConfigError, DuplicateTask, Fact, ScheduleHandle, Scheduler, Task, TaskCancelled
from tickwork.handlers.options import deadline
from tickwork.testing import ManualClock, drain


@pytest.fixture
def app(make: Make, url: str) -> Scheduler:
    app = make(url)

    @app.task
    async def work(n: int = 0) -> int:
        return n

    return app


# --- expires


async def test_a_task_that_does_not_start_in_time_is_cancelled_by_a_running_node(app: Scheduler) -> None:
    handle = await app.submit("work", queue="nobody", expires=0.3)
    async with app:
        with pytest.raises(TaskCancelled, match="it did not start in time"):
            await handle.result(10)
        kinds = [event.kind for event in await app.events.read(task_id=handle.id)]
        assert kinds == [Fact.TASK_SUBMITTED, Fact.TASK_EXPIRED]


async def test_a_task_that_starts_in_time_runs(app: Scheduler) -> None:
    async with app:
        assert await (await app.submit("work", 1, expires=60)).result(10) == 1


async def test_its_time_is_shown(app: Scheduler) -> None:
    info = await (await app.submit("work", delay=60, expires=timedelta(minutes=1))).info()
    assert info.expires_at == info.submitted_at + timedelta(minutes=2)
    moment = datetime(2100, 1, 1, tzinfo=UTC)
    assert (await (await app.submit("work", expires=moment)).info()).expires_at == moment
    assert (await (await app.submit("work")).info()).expires_at is None


async def test_tasks_given_as_records_and_in_batches_expire_too(app: Scheduler) -> None:
    first = await app.submit_task(Task(type="work", expires=60))
    (second,) = await app.submit_many("work", [1], expires=60)
    for handle in (first, second):
        info = await handle.info()
        assert info.expires_at == info.submitted_at + timedelta(minutes=1)


@pytest.mark.parametrize("value", [-1, "soon", datetime(2030, 1, 1), float("nan"), True], ids=str)
async def test_what_is_no_such_time_is_refused(app: Scheduler, value: Any) -> None:
    with pytest.raises(ConfigError, match="expires must"):
        await app.submit("work", expires=value)


async def test_a_schedule_has_no_deadline(app: Scheduler) -> None:
    with pytest.raises(ConfigError, match="expires cannot be given together with cron"):
        await app.submit("work", cron="@daily", expires=60)


def test_a_moment_before_all_time_is_the_first_one() -> None:
    assert deadline({"expires": datetime(1900, 1, 1, tzinfo=UTC)}) == {"expires_at": 0}


# --- unique


@pytest.mark.parametrize("unique", ["queued", "unfinished"])
async def test_a_unique_task_is_one_until_it_has_run(app: Scheduler, unique: Literal["queued", "unfinished"]) -> None:
    first = await app.submit("work", dedup_key="k", unique=unique)
    with pytest.raises(DuplicateTask) as error:
        await app.submit("work", dedup_key="k", unique=unique)
    assert error.value.existing_id == first.id
    info = await first.info()
    assert (info.unique, info.dedup_key, info.dedup_ttl) == (unique, "k", None)
    async with app:
        await first.result(10)
        await (await app.submit("work", dedup_key="k", unique=unique)).result(10)


async def test_unique_needs_a_key_and_no_time(app: Scheduler) -> None:
    with pytest.raises(ConfigError, match="unique says how long a dedup_key is held; give dedup_key with it"):
        await app.submit("work", unique="queued")
    with pytest.raises(ConfigError, match="unique and dedup_ttl both say how long"):
        await app.submit("work", unique="queued", dedup_key="k", dedup_ttl=60)
    with pytest.raises(ConfigError, match="unique must be one of queued, unfinished, not 'always'"):
        await app.submit("work", unique="always", dedup_key="k")  # type: ignore[arg-type]


async def test_the_runs_of_a_schedule_may_be_unique(app: Scheduler) -> None:
    handle = await app.submit("work", cron="@daily", dedup_key="k", unique="unfinished")
    assert isinstance(handle, ScheduleHandle)
    info = await app.schedules.get(handle.id)
    assert (info.dedup_key, info.unique, info.dedup_ttl) == ("k", "unfinished", None)


# --- retention


async def test_a_type_a_schedule_and_a_task_may_say_how_long_they_are_kept(app: Scheduler) -> None:
    @app.task(retention=timedelta(hours=1))
    async def brief(n: int = 0) -> int:
        return n

    assert (await (await brief.submit(1)).info()).retention == 3600
    assert (await (await brief.submit(1)).info()).retention == 3600, "also for the second of the same kind"
    assert (await (await brief.options(retention=5).submit(1)).info()).retention == 5
    assert (await (await app.submit("work")).info()).retention is None
    (handle,) = await app.submit_many("work", [1], retention=7)
    assert (await handle.info()).retention == 7
    schedule = await app.schedules.put("s", "work", cron="@daily", retention=60)
    assert schedule.retention == 60
    assert (await app.get_task(await app.schedules.trigger("s"))).retention == 60


async def test_a_task_is_kept_as_long_as_it_says(make: Make, clock: ManualClock) -> None:
    app = make("memory://", clock=clock, retention=3600)

    @app.task(retention=10)
    async def brief() -> None: ...

    async with app:
        await brief.submit()
        await drain(app)
        store = await store_of(app)
        clock.advance(9)
        assert await store.operators.prune(10) == 0
        clock.advance(1)
        assert await store.operators.prune(10) == 1


async def test_a_retention_that_is_none_is_refused_where_it_is_said(app: Scheduler) -> None:
    with pytest.raises(ConfigError, match="retention must not be negative"):
        await app.submit("work", retention=-1)
    with pytest.raises(ConfigError, match="retention must be a number of seconds"):
        app.task(retention="long")  # type: ignore[call-overload]
