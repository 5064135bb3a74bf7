"""What is done to all tasks that a filter matches."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.apps import Make
from tickwork import Abort, BulkResult, ConfigError, Scheduler, Status, StoreUnavailable, TaskFilter
from tickwork.client.bulk import PAGE
from tickwork.clock import ManualClock
from tickwork.testing import drain, wait_for

MANY = PAGE + 50


@pytest.fixture(params=[1, 3], ids=["one", "partitions"])
def app(make: Make, url: str, request: pytest.FixtureRequest) -> Scheduler:
    if request.param > 1 and not url.startswith("redis"):
        pytest.skip("only Redis has partitions")
    app = make(url, partitions=request.param)

    @app.task(max_retry=0)
    async def bad() -> None:
        raise Abort("boom")

    @app.task
    async def good(n: int = 0) -> None: ...

    @app.task
    async def stays() -> None:
        await asyncio.sleep(3600)

    return app


async def count(app: Scheduler, status: Status) -> int:
    return (await (await app._open()).queries.stats()).statuses[status]


async def after_each(app: Scheduler, part: str, method: str, then: Callable[[], Any]) -> None:
    """Have something done after each call of a method of the store."""
    store: Any = await app._open()
    honest = getattr(getattr(store, part), method)

    async def call(*args: Any) -> Any:
        answer = await honest(*args)
        await then()
        return answer

    setattr(getattr(store, part), method, call)


async def test_all_that_match_are_cancelled_over_many_pages(app: Scheduler) -> None:
    await app.submit_many("good", range(MANY), delay=3600, queue="a")
    await app.submit_many("good", range(MANY), queue="b")
    await app.submit("bad", delay=3600, id="other")
    await app.submit("good", depends_on=["other"], id="blocked")
    told: list[tuple[int, int]] = []
    result = await app.tasks.cancel(TaskFilter(type="good"), progress=lambda done, seen: told.append((done, seen)))
    assert result == BulkResult(2 * MANY + 1, 2 * MANY + 1)
    assert told[-1] == (2 * MANY + 1, 2 * MANY + 1)
    assert told == sorted(told)
    assert await count(app, Status.CANCELLED) == 2 * MANY + 1
    assert (await app.get_task("other")).status is Status.PENDING
    assert await app.tasks.cancel(TaskFilter(type="good")) == BulkResult()


async def test_a_dry_run_counts_and_changes_nothing(app: Scheduler) -> None:
    await app.submit_many("good", range(MANY), delay=3600)
    await app.submit("good", id="ready")
    assert await app.tasks.run_now(TaskFilter(type="good"), dry_run=True) == BulkResult(MANY, MANY, dry_run=True)
    assert (await app.tasks.cancel(TaskFilter(status="ready"), dry_run=True)).done == 1
    assert (await app.tasks.delete(TaskFilter(all=True), dry_run=True)).matched == 0
    assert await count(app, Status.PENDING) == MANY
    assert (await app.get_task("ready")).status is Status.READY


async def test_every_part_of_a_filter_counts(app: Scheduler) -> None:
    await app.submit("good", id="it", delay=60, queue="q", key="k", tags={"a": "1", "b": "2"})
    await app.schedules.put("nightly", "good", cron="@yearly")
    await app.schedules.trigger("nightly")
    for wrong in (
        {"type": "bad"}, {"status": "retrying"}, {"queue": "other"}, {"key": "other"}, {"tags": {"a": "2"}},
        {"schedule_id": "weekly"}, {"older_than": 3600}, {"older_than": datetime(2020, 1, 1, tzinfo=UTC)},
    ):  # fmt: skip
        fits: dict[str, Any] = {"type": "good", "queue": "q", "key": "k", "tags": {"b": "2"}, **wrong}
        assert (await app.tasks.cancel(TaskFilter(**fits))).matched == 0
    later = datetime.now(UTC) + timedelta(days=1)
    fit = TaskFilter(type="good", status=Status.PENDING, queue="q", key="k", tags={"b": "2"}, older_than=later)
    assert (await app.tasks.cancel(fit)).done == 1
    assert (await app.get_task("it")).status is Status.CANCELLED
    assert (await app.tasks.cancel(TaskFilter(schedule_id="nightly"))).done == 1


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (TaskFilter(), r"names nothing, so it would mean every task; TaskFilter\(all=True\) says that"),
        (TaskFilter(tags={}), "names nothing"),
        (TaskFilter(all=True, type="good"), "so type cannot be given beside it"),
        (TaskFilter(status="gone"), "unknown status 'gone'"),
        (TaskFilter(status="success"), "cancel is for tasks that are .* or running, not for those that are success"),
        (TaskFilter(status="running"), "by force only"),
        (TaskFilter(type=5), "type must be a text, not 5"),  # type: ignore[arg-type]
        (TaskFilter(schedule_id=5), "the id of a schedule is a text"),  # type: ignore[arg-type]
        (TaskFilter(older_than=-1), "older_than must not be negative"),
        (TaskFilter(older_than=datetime(2020, 1, 1)), "older_than must know its zone"),
    ],
)
async def test_a_filter_that_cannot_be_meant_is_refused(make: Make, wrong: TaskFilter, why: str) -> None:
    app = make("memory://")
    with pytest.raises(ConfigError, match=why):
        await app.tasks.cancel(wrong)


async def test_what_is_for_filters_is_refused_with_ids(make: Make) -> None:
    app: Any = make("memory://")
    with pytest.raises(ConfigError, match="dry_run and progress are for a TaskFilter"):
        await app.tasks.delete(["it"], dry_run=True)
    with pytest.raises(ConfigError, match="dry_run and progress are for a TaskFilter"):
        app.sync.tasks.delete(["it"], progress=print)


async def test_running_tasks_are_told_of_and_cancelled_by_force(app: Scheduler) -> None:
    async with app:
        await app.submit("stays", id="runs")
        await wait_for(app, "runs", "running")
        result = await app.tasks.cancel(TaskFilter(type="stays"))
        assert (result.matched, result.done, result.refused["running"].examples) == (1, 0, ("runs",))
        assert "force=True (--force) asks its handler to stop" in result.refused["running"].why
        assert (await app.tasks.cancel(TaskFilter(type="stays"), dry_run=True)).refused == result.refused
        assert (await app.tasks.cancel(TaskFilter(type="stays"), force=True)).done == 1
        await wait_for(app, "runs", "cancelled")


async def test_what_runs_is_refused_only_where_the_filter_means_it(app: Scheduler) -> None:
    """Not where the filter names another status, and not with force, by which it was cancelled."""
    async with app:
        await app.submit("stays", id="runs")
        await wait_for(app, "runs", "running")
        await app.submit("stays", id="ready", queue="nobody")
        assert await app.tasks.cancel(TaskFilter(status="ready", type="stays")) == BulkResult(1, 1)
        await app.submit("stays", id="later", delay=3600)
        let_it_end = await hold_back_ends(app)
        assert await app.tasks.cancel(TaskFilter(type="stays"), force=True) == BulkResult(2, 2)
        let_it_end()
        await wait_for(app, "runs", "cancelled")


async def hold_back_ends(app: Scheduler) -> Callable[[], None]:
    """No run ends in the store before the function is called that this answers."""
    store: Any = await app._open()
    finish, over = store.tasks.finish, asyncio.Event()

    async def late(outcomes: Any, *more: Any) -> Any:
        if outcomes:
            await over.wait()
        return await finish(outcomes, *more)

    store.tasks.finish = late
    return over.set


async def test_tasks_that_come_meanwhile_are_left_alone(app: Scheduler) -> None:
    await app.submit_many("good", range(MANY), delay=60)

    async def submit() -> None:
        await asyncio.sleep(0.002)  # the clock must move on: times are in milliseconds
        await app.submit_many("good", range(5), delay=60)

    await after_each(app, "queries", "time", submit)
    await after_each(app, "queries", "page", submit)
    assert (await app.tasks.cancel(TaskFilter(type="good"))).done == MANY
    assert await count(app, Status.CANCELLED) == MANY
    assert await count(app, Status.PENDING) >= 10


async def test_the_status_counts_at_the_moment_of_the_change(app: Scheduler) -> None:
    await app.submit_many("good", range(3), delay=60)
    await app.submit("good", delay=60, id="moves")
    await after_each(app, "queries", "page", lambda: app.run_now("moves"))
    assert (await app.tasks.cancel(TaskFilter(status="pending"))).done == 3
    assert (await app.get_task("moves")).status is Status.READY


async def test_a_task_that_moved_on_meanwhile_is_cancelled_in_its_new_status(app: Scheduler) -> None:
    await app.submit("good", delay=60, id="moves")
    await after_each(app, "queries", "page", lambda: app.tasks.run_now(["moves"]))
    assert (await app.tasks.cancel(TaskFilter(type="good"))).done == 1


async def test_each_dead_task_is_retried_once_though_it_dies_again(app: Scheduler) -> None:
    async with app:
        ids = [(await app.submit("bad")).id for _ in range(MANY)]
        await drain(app, 60)
        assert (await app.tasks.retry(TaskFilter(type="bad"))).done == MANY
        await drain(app, 60)
        infos = [await app.get_task(each) for each in ids]
        assert {(info.status, len(info.attempts)) for info in infos} == {(Status.DEAD, 1)}


async def test_a_chain_of_dead_tasks_is_retried_whole(app: Scheduler) -> None:
    async with app:
        await app.submit("bad", id="z-first")
        await drain(app)
        for name, upstream in (("m", "z-first"), ("a", "m")):
            await app.submit("good", id=name, depends_on=[upstream])
            await drain(app)
        assert [(await app.get_task(each)).status for each in ("m", "a")] == ["cancelled"] * 2
        result = await app.tasks.retry(TaskFilter(status="cancelled"))
        assert (result.matched, result.done, result.refused["upstream"].count) == (2, 0, 2)
        assert "depends on task" in result.refused["upstream"].why
    await app.retry("z-first")
    assert (await app.tasks.retry(TaskFilter(status="cancelled"))).done == 2
    assert (await app.get_task("a")).waiting_for == ("m",)


async def test_a_chain_is_retried_by_one_filter_though_the_dependant_comes_first(app: Scheduler) -> None:
    """What is refused because of its upstream is tried again once that was retried by the same call."""
    names = ["first", "second", "third", "fourth"]
    await app.submit("good", id="first", delay=3600)
    for upstream, name in itertools.pairwise(names):
        await app.submit("good", id=name, depends_on=[upstream])
    for name in reversed(names):  # they are retried in the order in which they have ended
        await app.cancel(name)
    assert await app.tasks.retry(TaskFilter(status="cancelled")) == BulkResult(4, 4)
    assert [(await app.get_task(name)).waiting_for for name in names[1:]] == [(name,) for name in names[:-1]]


async def test_a_retry_without_a_status_means_what_has_failed(app: Scheduler) -> None:
    async with app:
        for name in ("good", "bad"):
            await app.submit(name, id=name)
        await drain(app)
        await app.submit("good", id="unwanted", delay=60)
        await app.cancel("unwanted")
        assert (await app.tasks.retry(TaskFilter(all=True))).done == 1
        await drain(app)
        assert (await app.tasks.delete(TaskFilter(status="success"))).done == 1
        assert sorted(task.id for task in await app.list_tasks()) == ["bad", "unwanted"]
        assert (await app.tasks.delete(TaskFilter(all=True))).done == 2


async def test_cascade_counts_what_came_back(app: Scheduler) -> None:
    async with app:
        await app.submit("bad", id="up")
        await app.submit("good", id="down", depends_on=["up"])
        await drain(app)
    result = await app.tasks.retry(TaskFilter(type="bad"), cascade=True)
    assert (result.done, result.brought_back) == (1, 1)


async def test_an_outage_says_how_far_it_came_and_the_call_can_be_repeated(app: Scheduler) -> None:
    await app.submit_many("good", range(MANY), delay=60)
    store: Any = await app._open()
    honest, calls = store.operators.cancel, 0

    async def fail_later(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StoreUnavailable("out of reach")
        return await honest(*args)

    store.operators.cancel = fail_later
    with pytest.raises(StoreUnavailable, match=r"out of reach; [1-9][0-9]* tasks were cancelled before"):
        await app.tasks.cancel(TaskFilter(type="good"))
    await app.tasks.cancel(TaskFilter(type="good"))
    assert await count(app, Status.CANCELLED) == MANY


async def test_blocking_code_has_it_too(make: Make, url: str) -> None:
    app = make(url)
    told: list[int] = []

    def work() -> list[BulkResult]:
        app.sync.submit_many("good", [1, 2, 3], delay=60)
        run = app.sync.tasks
        results = [
            run.run_now(TaskFilter(type="good"), progress=lambda done, seen: told.append(seen)),
            run.cancel(TaskFilter(type="good")),
            run.retry(TaskFilter(status="cancelled"), dry_run=True),
            run.delete(TaskFilter(type="good")),
        ]
        assert run.delete(["nobody"])[0].status is None
        app.sync.close()
        return results

    app.registry.register("good", _good)
    assert [result.done for result in await asyncio.to_thread(work)] == [3] * 4
    assert told[-1] == 3


async def _good(n: int) -> None: ...


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_age_goes_by_the_time_of_the_submit(make: Make, kind: str, sqlite_url: str, clock: ManualClock) -> None:
    app = make("memory://" if kind == "memory" else sqlite_url, clock=clock)
    app.registry.register("good", _good)
    await app.submit("good", 1, id="old", delay=86_400)
    clock.advance(100)
    middle = datetime.fromtimestamp(clock.now() / 1000, UTC)
    await app.submit("good", 1, id="new", delay=86_400)

    async def matched(older_than: Any) -> int:
        return (await app.tasks.cancel(TaskFilter(older_than=older_than), dry_run=True)).matched

    assert [await matched(age) for age in (0, 1, 100, timedelta(seconds=100), 101)] == [2, 1, 1, 1, 0]
    assert [await matched(middle + timedelta(seconds=each)) for each in (-100, -99, 0, 1, 9)] == [0, 1, 1, 2, 2]
