"""A small application, and a walk through everything that it does; the same on every kind of Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.integration.apps import FAST, SOON_LED, eventually
from tickwork import Scheduler, Status, TaskCancelled

NAMESPACE = "shop"


def shop(store: Any, **options: Any) -> Scheduler:
    app = Scheduler(store, **{"namespace": NAMESPACE, **FAST, **SOON_LED, **options})

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task
    async def tick() -> str:
        return "tock"

    return app


@asynccontextmanager
async def running(store: Any, **options: Any) -> AsyncIterator[Scheduler]:
    app = shop(store, **options)
    async with app:
        yield app


async def work_through(app: Scheduler, count: int = 20, ticks: bool = False, audit: bool = True) -> list[str]:
    """Submit, run, wait, cancel, schedule, count and audit; the ids of the tasks that ran. With `ticks` the schedule's
    own time has to come, else it is triggered."""
    handles = await app.submit_many("add", [{"a": number, "b": 1} for number in range(count)])
    assert [await handle.result(10) for handle in handles] == list(range(1, count + 1))
    late = await app.submit("add", {"a": 1, "b": 2}, delay=3600)
    await app.cancel(late.id)
    try:
        await late.result(5)
    except TaskCancelled:
        pass
    else:
        raise AssertionError("a cancelled task has a result")
    soon = await app.submit("add", {"a": 2, "b": 2}, delay=0.05)
    assert await soon.result(10) == 4
    await app.schedules.put("ticks", "tick", cron="@every 1s")
    fired = await eventually(lambda: _fired(app)) if ticks else await app.schedules.trigger("ticks")
    assert await app.handle(fired).result(10) == "tock"
    await app.schedules.delete("ticks")
    await eventually(lambda: _all_ended(app), what="all tasks have ended")
    counts = (await app.status()).tasks
    assert counts[Status.CANCELLED] == 1
    assert counts[Status.SUCCESS] >= count + 2
    if audit:
        assert await app.audit() == []
    return [handle.id for handle in handles]


async def _fired(app: Scheduler) -> str | None:
    return (await app.schedules.get("ticks")).last_task_id


async def _all_ended(app: Scheduler) -> bool:
    return set((await app.status()).tasks) <= {Status.SUCCESS, Status.CANCELLED}
