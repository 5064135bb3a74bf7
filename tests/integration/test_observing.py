"""What observers hear of a scheduler."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.integration.apps import Make, eventually, store_of
from tickwork import Fact, Retry, StoreUnavailable, TickworkError
from tickwork.model.tasks import Lease
from tickwork.node import services
from tickwork.observe import (
    LeadershipChanged,
    LeasesRenewed,
    LoopLagged,
    ScheduleTicked,
    ServiceFailed,
    StoreCalled,
    TaskEnded,
    TasksClaimed,
    TaskStarted,
    TaskSubmitted,
)


async def test_the_life_of_a_task(make: Make, url: str) -> None:
    app, seen = make(url), list[Any]()
    app.observe(seen.append, TaskSubmitted, TaskStarted, TaskEnded)

    @app.task(max_retry=1)
    async def work(number: int) -> None:
        if number == 1:
            raise ValueError("no")

    async with app:
        good, bad = await work.submit(0), await work.submit(1)
        await good.result(10)
        await eventually(lambda: any(isinstance(each, TaskEnded) and each.fact is Fact.TASK_DIED for each in seen))
    submitted = [each for each in seen if isinstance(each, TaskSubmitted)]  # may be told after the start
    assert submitted == [TaskSubmitted(task.id, "work", "default", "created") for task in (good, bad)]
    started, ended = [each for each in seen if each.id == good.id and each not in submitted]
    assert isinstance(started, TaskStarted)
    assert started.waited is not None
    assert 0 <= started.waited < 10
    assert (ended.fact, ended.error, ended.attempt) == (Fact.TASK_SUCCEEDED, None, 1)
    of_bad = [each for each in seen if each.id == bad.id and each not in submitted]
    assert [each.attempt for each in of_bad] == [1, 1, 2, 2]
    first, last = of_bad[1], of_bad[3]
    assert (first.fact, last.fact, of_bad[2].waited) == (Fact.TASK_RETRYING, Fact.TASK_DIED, None)
    assert (str(first.error), first.retry_in, last.retry_in) == ("no", 0.01, None)
    assert last.detail.startswith("ValueError: no")


async def test_submits_of_every_kind(make: Make, url: str) -> None:
    app, seen = make(url), list[TaskSubmitted]()
    app.observe(seen.append, TaskSubmitted)

    @app.task
    async def work(number: int) -> None: ...

    handles = await app.submit_many("work", [1, 2], queue="other")
    await work.options(dedup_key="k", priority=10).submit(3)
    with pytest.raises(TickworkError):
        await work.options(dedup_key="k").submit(4)
    await app.close()
    assert [(each.type, each.queue, each.verdict, each.priority) for each in seen] == [
        ("work", "other", "created", 5), ("work", "other", "created", 5),
        ("work", "default", "created", 10), ("work", "default", "duplicate", 5),
    ]  # fmt: skip
    assert [each.id for each in seen[:2]] == [handle.id for handle in handles]


async def test_calls_to_the_store_with_their_time_and_their_error(
    make: Make, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, seen, let_go = make(url), list[StoreCalled](), asyncio.Event()
    app.observe(seen.append, StoreCalled)

    @app.task
    async def work() -> None:
        await let_go.wait()

    async def fails() -> Any:
        raise StoreUnavailable("away")

    monkeypatch.setattr(app._store.queries, "stats", fails)
    async with app:
        handle = await work.submit()
        await eventually(lambda: any(each.method == "extend" for each in seen), what="the heart is heard too")
        let_go.set()
        await handle.result(10)

        with pytest.raises(StoreUnavailable):
            await app.queue_stats()
    calls = {f"{each.part}.{each.method}" for each in seen}
    assert {"tasks.submit", "tasks.claim", "tasks.finish", "members.beat", "members.campaign"} <= calls
    assert all(0 <= each.seconds < 10 for each in seen)
    (failed,) = [each for each in seen if each.method == "stats"]
    assert isinstance(failed.error, StoreUnavailable)


async def test_claims_say_what_was_asked_for_and_granted(make: Make, url: str) -> None:
    app, seen = make(url, concurrency=3), list[TasksClaimed]()
    app.observe(seen.append, TasksClaimed)

    @app.task
    async def work() -> None: ...

    async with app:
        for handle in await app.submit_many("work", [None] * 7):
            await handle.result(10)
        await eventually(lambda: sum(each.granted for each in seen) == 7)
    assert {each.worker_id for each in seen} == {app.id}
    assert all(each.granted <= each.asked <= 3 for each in seen)


async def test_leases_that_are_renewed_and_lost(make: Make, url: str) -> None:
    app, seen, let_go = make(url), list[LeasesRenewed](), asyncio.Event()
    app.observe(seen.append, LeasesRenewed)

    @app.task
    async def work() -> None:
        await let_go.wait()

    async with app:
        handles = [await work.submit(), await work.submit()]
        await eventually(lambda: any(each == LeasesRenewed(2, 0, 0) for each in seen), 30)
        await (await store_of(app)).tasks.extend([Lease(handles[0].id, 99, "of another")], 1000)
        await eventually(lambda: any(each == LeasesRenewed(0, 1, 0) for each in seen), 30)
        let_go.set()
        for handle in handles:
            await handle.result(30)


async def test_ticks_leadership_and_their_tasks(make: Make) -> None:
    app, seen = make("memory://"), list[Any]()
    app.observe(seen.append, ScheduleTicked, LeadershipChanged, TaskSubmitted)

    @app.periodic("* * * * * *")
    async def tick() -> None: ...

    async with app:
        await eventually(lambda: any(isinstance(each, ScheduleTicked) for each in seen))
    changes = [each for each in seen if isinstance(each, LeadershipChanged)]
    assert [(each.term, each.leads) for each in changes] == [(1, True), (1, False)]
    assert {each.node for each in changes} == {app._identity}
    fired = next(each for each in seen if isinstance(each, ScheduleTicked))
    assert (fired.fact, fired.id, fired.type) == (Fact.SCHEDULE_FIRED, "tick", "tick")
    assert 0 <= fired.late < 10
    assert fired.detail in {each.id for each in seen if isinstance(each, TaskSubmitted)}


async def test_a_loop_that_is_kept_busy(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "LAG_INTERVAL", 0.01)
    app, seen = make("memory://"), list[LoopLagged]()
    app.observe(seen.append, LoopLagged)

    @app.task
    async def block() -> None:
        time.sleep(0.2)  # noqa: ASYNC251

    async with app:
        await (await block.submit()).result(10)
        await eventually(lambda: any(each.seconds >= 0.15 for each in seen))
    assert all(each.seconds >= 0 for each in seen)


async def test_services_that_fail(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    app, seen = make("memory://"), list[ServiceFailed]()
    app.observe(seen.append, ServiceFailed)
    left = [2]

    async def campaign(*args: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise RuntimeError("a defect")
        await asyncio.Event().wait()

    monkeypatch.setattr((await store_of(app)).members, "campaign", campaign)
    async with app:
        await eventually(lambda: len(seen) == 2)
    assert [(each.name, each.vital, each.restarts) for each in seen] == [
        ("the candidate for leadership", False, 0), ("the candidate for leadership", False, 1),
    ]  # fmt: skip
    assert str(seen[0].error) == "a defect"


async def test_nothing_stands_between_a_scheduler_and_a_store_that_nobody_observes(make: Make) -> None:
    app = make("memory://")
    app.observe(lambda seen: None, TaskEnded)
    assert await store_of(app) is app._store
    app.observe(lambda seen: None, StoreCalled)
    assert await store_of(app) is not app._store


async def test_an_observer_hears_each_life_of_a_scheduler_once(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    app, seen = make("memory://"), list[TaskEnded]()
    app.observe(seen.append, TaskEnded)

    @app.task(max_retry=1)
    async def work() -> None:
        if len(runs) % 2 == 0:
            runs.append(1)
            raise Retry(0.01)
        runs.append(1)

    runs = list[int]()
    for life in range(2):
        async with app:
            await (await work.submit()).result(10)
        assert [each.fact for each in seen[2 * life :]] == [Fact.TASK_RETRYING, Fact.TASK_SUCCEEDED]
    assert sum(record.message.startswith("Task retry") for record in caplog.records) == 2, (
        "logging is told once as well"
    )


async def test_an_observer_comes_before_the_start(make: Make) -> None:
    app = make("memory://")
    async with app:
        with pytest.raises(TickworkError, match=r"observe\(\) comes before a scheduler is started"):
            app.observe(print)
