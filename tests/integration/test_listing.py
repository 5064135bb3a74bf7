"""Tasks found by their key, and what is shown of one task alone: its earlier runs and its log lines."""

from __future__ import annotations

import pytest

from tests.integration.apps import Make
from tickwork import ConfigError, FixedDelay, Scheduler, Status, TaskContext, TaskNotFound
from tickwork.store.contract import SCHEDULES_PAGE


@pytest.fixture
def app(make: Make, url: str) -> Scheduler:
    app = make(url)

    @app.task
    async def work(n: int = 0) -> int:
        return n

    @app.task(max_retry=2, retry=FixedDelay(0.01))
    async def shaky(ctx: TaskContext) -> int:
        ctx.logger.warning("attempt %d", ctx.attempt)
        if ctx.attempt < 3:
            raise ValueError(f"not yet {ctx.attempt}")
        return ctx.attempt

    return app


@pytest.mark.parametrize("on", [False, True], ids=["without", "indexed"])
async def test_tasks_are_found_by_their_key(app: Scheduler, on: bool) -> None:
    if on:
        assert await app.index_tasks() is True
        assert await app.index_tasks() is False
    wanted = [(await app.submit("work", n, key="customer:1")).id for n in range(3)]
    await app.submit("work", 9, key="customer:2")
    await app.submit("work", 9)
    found = [info.id for info in await app.list_tasks(key="customer:1")]
    assert found == wanted[::-1] if on else sorted(found) == sorted(wanted)
    assert {info.key for info in await app.list_tasks(key="customer:2")} == {"customer:2"}
    assert [info.id for info in await app.list_tasks(Status.READY, type="work", key="nobody")] == []


async def test_schedules_come_in_pages_one_after_the_other(app: Scheduler) -> None:
    for number in range(SCHEDULES_PAGE + 100):
        await app.schedules.put(f"s{number:04}", "work", number)
    first = await app.schedules.list()
    assert first.cursor is not None
    second = await app.schedules.list(cursor=first.cursor)
    assert second.cursor is None
    found = [schedule.id async for schedule in app.schedules]
    assert found == [schedule.id for schedule in (*first, *second)]
    assert sorted(found) == [f"s{number:04}" for number in range(SCHEDULES_PAGE + 100)]
    with pytest.raises(ConfigError, match="cursor must be a text, not 5"):
        await app.schedules.list(cursor=5)  # type: ignore[arg-type]


async def test_a_key_is_a_text(app: Scheduler) -> None:
    with pytest.raises(ConfigError, match="key must be a text, not 5"):
        await app.list_tasks(key=5)  # type: ignore[arg-type]


async def test_the_index_reports_and_is_switched_off(app: Scheduler) -> None:
    await app.submit_many("work", [1, 2, 3])
    told: list[int] = []
    assert await app.index_tasks(True, told.append)
    assert told[-1] == 3
    assert await app.index_tasks(False)
    assert not await app.index_tasks(False)


async def test_a_task_shows_its_earlier_runs_and_lines_where_it_is_asked_for_alone(app: Scheduler) -> None:
    async with app:
        handle = await app.submit("shaky")
        assert await handle.result(10) == 3
        info = await handle.info()
    assert [(run.number, run.end) for run in info.attempts] == [(1, "failed"), (2, "failed")]
    for run in info.attempts:
        assert run.error is not None
        assert f"not yet {run.number}" in run.error
        assert "Traceback" in run.error
        assert run.worker_id == info.worker_id
        assert run.started_at <= run.finished_at
        assert run.duration is not None
    assert [line.rpartition(" ")[2] for line in info.log] == ["1", "2", "3"]
    (listed,) = await app.list_tasks()
    assert (listed.attempts, listed.log) == ((), ())


async def test_a_task_that_is_not_there_has_none(app: Scheduler) -> None:
    with pytest.raises(TaskNotFound):
        await app.get_task("nobody")
