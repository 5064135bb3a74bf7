"""Submitting: what exists already, what belongs together, and batches that are refused half way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.integration.apps import Make, facts, status_of, store_of
from tickwork import ConfigError, DuplicateTask, Scheduler, StoreUnavailable, Task, TaskExists, TaskNotFound
from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.contract import SUBMIT_MAX, Receipt
from tickwork.testing import ManualClock, drain


@pytest.fixture
def app(make: Make, url: str) -> Scheduler:
    app = make(url)

    @app.task
    async def work(n: int = 0) -> int:
        return n

    return app


# --- what exists already


async def test_the_handle_of_a_task_that_exists(app: Scheduler) -> None:
    first = await app.submit("work", 1, id="one")
    again = await app.submit("work", 2, id="one", if_exists="return")
    assert again.id == first.id
    assert (await again.info()).payload == {"n": 1}, "a task is never overwritten"
    assert (await app.submit_task(Task(type="work", id="one", if_exists="return"))).id == "one"
    new = await app.submit("work", 3, id="two", if_exists="return")
    assert (await new.info()).payload == {"n": 3}
    for options in ({}, {"if_exists": "raise"}):
        with pytest.raises(TaskExists):
            await app.submit("work", 2, id="one", **options)  # type: ignore[arg-type]


async def test_the_handle_of_the_task_that_holds_the_key(app: Scheduler) -> None:
    first = await app.submit("work", 1, dedup_key="k")
    assert (await app.submit("work", 2, dedup_key="k", if_exists="return")).id == first.id
    with pytest.raises(DuplicateTask):
        await app.submit("work", 2, dedup_key="k")


async def test_the_handle_of_a_schedule_that_exists(app: Scheduler) -> None:
    first = await app.submit("work", 1, id="s", cron="@daily")
    again = await app.submit("work", 2, id="s", cron="@hourly", if_exists="return")
    assert again.id == first.id
    assert (await app.schedules.get("s")).cron == "@daily"
    with pytest.raises(TaskExists):
        await app.submit("work", 2, id="s", cron="@hourly")


# --- what belongs together


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timezone": "Europe/Paris"}, "timezone is that of a cron line; give cron with it"),
        ({"timezone": "Nope"}, "timezone is that of a cron line"),
        ({"dedup_ttl": 60}, "dedup_ttl says how long a dedup_key is held; give dedup_key with it"),
        ({"if_exists": "ignore"}, "if_exists must be one of raise, return, not 'ignore'"),
        ({"if_exists": "ignore", "cron": "@daily"}, "if_exists must be one of raise, return"),
    ],
)
async def test_an_option_without_the_one_that_it_is_for(make: Make, options: dict[str, Any], message: str) -> None:
    app = make("memory://")

    @app.task
    async def work() -> None: ...

    with pytest.raises(ConfigError, match=message):
        await app.submit("work", **options)
    if "cron" not in options:
        with pytest.raises(ConfigError, match=message):
            await app.submit_many("work", [None], **options)


# --- a dedup key of a schedule


async def test_a_dedup_key_counts_for_each_run_of_a_schedule(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    ran: list[int] = []

    @app.task
    async def tick() -> None:
        ran.append(clock.now())

    async with app:
        handle = await app.submit("tick", id="s", cron="@hourly", dedup_key="k", dedup_ttl=timedelta(hours=2.5))
        for _ in range(6):
            (following,) = await app.schedules.next_runs("s", 1)
            clock.set(following)
            await drain(app)
        hour = 3_600_000
        assert [at - ran[0] for at in ran] == [0, 3 * hour]
        skipped = [event for event in await app.events.read(limit=1000) if event.kind == "schedule.skipped"]
        assert [event.detail for event in skipped] == [f"s@{ran[0]}"] * 2 + [f"s@{ran[1]}"] * 2
        assert (await app.schedules.get(handle.id)).last_task_id == f"s@{ran[1]}"
        with pytest.raises(DuplicateTask) as caught:
            await app.submit("tick", dedup_key="k")
        assert caught.value.existing_id == f"s@{ran[1]}"
        with pytest.raises(DuplicateTask):
            await app.schedules.trigger("s")


# --- batches


async def test_a_batch_that_is_refused_half_way_says_what_was_created(
    app: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await store_of(app)
    submit, calls = store.tasks.submit, list[int]()

    async def once(specs: list[Spec], durability: Durability | None = None) -> list[Receipt]:
        calls.append(len(specs))
        if len(calls) == 2:
            raise StoreUnavailable("the wire is cut")
        return await submit(specs, durability)

    monkeypatch.setattr(store.tasks, "submit", once)
    count = SUBMIT_MAX + 5
    with pytest.raises(StoreUnavailable, match=f"the wire is cut; {SUBMIT_MAX:,} of {count:,} tasks were") as caught:
        await app.submit_many("work", range(count))
    assert len(caught.value.submitted) == SUBMIT_MAX
    assert await status_of(app, caught.value.submitted[-1].id) == "ready"
    assert (await app.status()).tasks == {"ready": SUBMIT_MAX}


async def test_a_batch_whose_dependency_goes_away(app: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await app.submit("work", delay=60)
    store = await store_of(app)
    submit, calls = store.tasks.submit, list[int]()

    async def dropping(specs: list[Spec], durability: Durability | None = None) -> list[Receipt]:
        calls.append(len(specs))
        if len(calls) == 2:
            await first.cancel()
            await app.delete(first.id)
        return await submit(specs, durability)

    monkeypatch.setattr(store.tasks, "submit", dropping)
    with pytest.raises(TaskNotFound) as caught:
        await app.submit_many("work", range(SUBMIT_MAX + 5), depends_on=[first])
    assert len(caught.value.submitted) == SUBMIT_MAX
    assert (await facts(app, caught.value.submitted[0].id))[0] == "task.submitted"


async def test_an_error_of_one_submission_has_submitted_nothing(app: Scheduler) -> None:
    await app.submit("work", id="one")
    with pytest.raises(TaskExists) as caught:
        await app.submit("work", id="one")
    assert list(caught.value.submitted) == []
