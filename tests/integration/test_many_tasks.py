"""`app.tasks`: what is done to many tasks at once, and told of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tickwork import Abort, ConfigError, NotCancellable, NotRetryable, Scheduler, Status, Steered, TaskNotFound
from tickwork.errors import TickworkError
from tickwork.store.contract import MANY_MAX
from tickwork.testing import drain


@pytest.fixture(params=["memory", "sqlite"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scheduler]:
    app = Scheduler("memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/tick.db")
    runs: list[int] = []

    @app.task(max_retry=0)
    async def fragile(good: bool = False) -> str:
        """Fails at its first run."""
        runs.append(1)
        if not good and len(runs) == 1:
            raise Abort("boom")
        return "done"

    async with app:
        yield app


def told(steered: list[Steered]) -> list[tuple[str, Status | None, type[TickworkError] | None]]:
    return [(each.id, each.status, type(each.error) if each.error else None) for each in steered]


async def test_a_cancel_is_told_of_each_in_order(app: Scheduler) -> None:
    await app.submit("fragile", True, id="ended")
    await drain(app)
    await app.submit("fragile", id="waits", delay=60)
    steered = await app.tasks.cancel(["waits", "nobody", "ended", "waits", "\n"])
    assert told(steered) == [
        ("waits", Status.PENDING, None),
        ("nobody", None, TaskNotFound),
        ("ended", Status.SUCCESS, NotCancellable),
        ("waits", Status.PENDING, None),
        ("\n", None, TaskNotFound),
    ]
    assert [each.done for each in steered] == [True, False, False, True, False]
    assert (await app.get_task("waits")).status is Status.CANCELLED


async def test_what_is_no_id_is_told_of_and_hinders_no_other(app: Scheduler) -> None:
    await app.submit("fragile", id="waits", delay=60)
    wrong: Any = [["a"], 7, "waits"]
    assert [type(each.error) for each in await app.tasks.run_now(wrong)] == [ConfigError, ConfigError, type(None)]
    with pytest.raises(ConfigError, match="a list of ids or a TaskFilter, not the single text 'waits'"):
        await app.tasks.delete("waits")
    assert await app.tasks.delete([]) == []


async def test_tasks_run_now_and_are_deleted_together(app: Scheduler) -> None:
    handles = await app.submit_many("fragile", [True] * 3, delay=3600)
    ids = [handle.id for handle in handles]
    assert told(await app.tasks.run_now(ids)) == [(each, Status.PENDING, None) for each in ids]
    await drain(app)
    await app.submit("fragile", id="waits", delay=60)
    steered = await app.tasks.delete([*ids, "waits"])
    assert [each.status for each in steered] == [Status.SUCCESS] * 3 + [Status.PENDING]
    assert str(steered[3].error) == "task waits is pending: only ended tasks can be deleted; cancel it first"
    assert [task.id for task in await app.list_tasks()] == ["waits"]


async def test_a_retry_says_what_came_back_and_what_cannot(app: Scheduler) -> None:
    await app.submit("fragile", id="up")
    await app.submit("fragile", True, id="down", depends_on=["up"])
    await app.submit("fragile", True, id="last", depends_on=["down"])
    await drain(app)
    assert [(await app.get_task(each)).status for each in ("up", "down", "last")] == ["dead", "cancelled", "cancelled"]
    (alone,) = await app.tasks.retry(["down"])
    assert isinstance(alone.error, NotRetryable)
    assert "depends on task up, which is dead: retry that one with cascade=True" in str(alone.error)
    up, other = await app.tasks.retry(["up", "nobody"], cascade=True)
    assert (up.done, up.brought_back) == (True, ("down", "last"))
    assert isinstance(other.error, TaskNotFound)
    await drain(app)
    assert {(await app.get_task(each)).status for each in ("up", "down", "last")} == {Status.SUCCESS}


async def test_followers_are_told_with_the_task_with_which_they_were_cancelled(app: Scheduler) -> None:
    for name in ("a", "b"):
        await app.submit("fragile", id=name, delay=60)
        await app.submit("fragile", id=f"after-{name}", depends_on=[name])
    await app.tasks.cancel(["a", "b"])
    await drain(app)
    steered = await app.tasks.retry(["b", "a"], cascade=True)
    assert [(each.id, each.brought_back) for each in steered] == [("b", ("after-b",)), ("a", ("after-a",))]


async def test_more_than_a_store_takes_in_one_call() -> None:
    app = Scheduler("memory://")

    @app.task
    async def job(number: int) -> None: ...

    ids = [handle.id for handle in await app.submit_many(job, range(MANY_MAX + 200), delay=60)]
    sizes: list[int] = []
    store: Any = await app._open()
    honest = store.operators.cancel

    async def count(ids: Any, *args: Any) -> Any:
        sizes.append(len(ids))
        return await honest(ids, *args)

    store.operators.cancel = count
    steered = await app.tasks.cancel(ids)
    assert [each.id for each in steered] == ids
    assert all(each.done for each in steered)
    assert sizes == [MANY_MAX, 200]
    await app.close()


def test_many_are_steered_by_blocking_code() -> None:
    app = Scheduler("memory://")

    @app.task
    async def job() -> None: ...

    handle = app.sync.submit(job, delay=60)
    assert told(app.sync.tasks.cancel([handle.id])) == [(handle.id, Status.PENDING, None)]
    assert told(app.sync.tasks.retry([handle.id])) == [(handle.id, Status.CANCELLED, None)]
    assert told(app.sync.tasks.run_now([handle.id])) == [(handle.id, Status.READY, None)]
    assert app.sync.tasks.delete([handle.id])[0].done is False
    app.sync.close()


async def test_all_dead_letters_are_retried_in_few_calls() -> None:
    app = Scheduler("memory://")

    @app.task(max_retry=0)
    async def job(number: int) -> None:
        raise Abort("boom")

    ids = [handle.id for handle in await app.submit_many(job, range(30))]
    async with app:
        await drain(app)
    store: Any = await app._open()
    calls: list[int] = []
    honest = store.operators.retry

    async def count(ids: Any, only: Any) -> Any:
        calls.append(len(ids))
        return await honest(ids, only)

    store.operators.retry = count
    assert await app.dlq.retry_all() == len(ids)
    assert calls == [len(ids)]
    assert (await app.queue_stats()).dlq_count == 0
    await app.close()
