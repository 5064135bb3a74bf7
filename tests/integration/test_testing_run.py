"""`tickwork.testing.run`: an application's own scheduler in a test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.integration import shop_of_tests as shop
from tickwork import ConfigError, Scheduler, Status, TaskContext, TaskFailed, TickworkError
from tickwork.testing import ManualClock, drain, run, submitted

NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def forget_mails() -> None:
    shop.MAILS.clear()


async def test_the_scheduler_of_another_module_runs_on_an_empty_store_each_time(clock: ManualClock) -> None:
    before = shop.app._store, shop.app.url, shop.app._clock
    for user in ("ada", "bob"):
        async with run(shop.app, clock=clock) as app:
            assert app is shop.app
            assert await submitted(app) == []
            await shop.sign_up(user)
            await drain(app, until=timedelta(hours=1))
    assert shop.MAILS == ["ada", "bob"]
    assert (shop.app._store, shop.app.url, shop.app._clock) == before


async def test_it_is_put_back_after_an_exception() -> None:
    before = shop.app._store
    with pytest.raises(ZeroDivisionError):
        async with run(shop.app):
            raise ZeroDivisionError
    assert shop.app._store is before
    async with run(shop.app) as app:
        await shop.send_mail.submit("again")
        await drain(app)
    assert shop.MAILS == ["again"]


async def test_it_is_put_back_when_the_start_fails() -> None:
    @contextlib.asynccontextmanager
    async def lifespan(app: Scheduler) -> AsyncIterator[None]:
        if app.url:
            raise OSError("no database")
        yield

    app = Scheduler(NOWHERE, lifespan=lifespan)
    before = app._store
    with pytest.raises(TickworkError, match="no database"):
        async with run(app):
            raise AssertionError("it must not start")
    assert app._store is before


async def test_two_schedulers_at_once() -> None:
    other = Scheduler(NOWHERE)

    @other.task
    async def bill(user: str) -> None:
        await shop.send_mail.submit(user)

    async with run(other), run(shop.app):
        await bill.submit("ada")
        await drain(other)
        await drain(shop.app)
        assert [task.type for task in await submitted(other)] == ["bill"]
    assert shop.MAILS == ["ada"]


async def test_one_that_runs_is_not_put_on_another_store() -> None:
    async with run(shop.app) as app:
        with pytest.raises(TickworkError, match=r"is running.*shut it down first"):
            async with run(shop.app):
                raise AssertionError("it has a store in use")
        await shop.send_mail.submit("ada")
        await drain(app)
    assert shop.MAILS == ["ada"]


async def test_one_inside_of_another_that_only_takes_tasks() -> None:
    async with run(shop.app, start=False) as app:
        await shop.send_mail.submit("outer")
        async with run(shop.app):
            await shop.send_mail.submit("inner")
            await drain(app)
        assert [task.payload for task in await submitted(app)] == [{"to": "outer"}]
    assert shop.MAILS == ["inner"]


async def test_one_that_was_used_before_finds_its_own_store_as_it_was() -> None:
    app = Scheduler("memory://")

    @app.task
    async def work(n: int) -> None: ...

    kept = await work.submit(1)
    async with run(app):
        assert await submitted(app) == []
        await work.submit(2)
        await drain(app)
    assert [task.id for task in await submitted(app)] == [kept.id]
    await app.close()


async def test_a_scheduler_without_a_store_refuses_submits_before_and_after() -> None:
    app = Scheduler()

    @app.task
    async def work() -> None: ...

    with pytest.raises(ConfigError, match="names no store"):
        await work.submit()
    async with run(app, start=False):
        await work.submit()
    async with run(app):
        await work.submit()
    with pytest.raises(ConfigError, match="names no store"):
        await work.submit()


async def test_blocking_calls_reach_the_same_store() -> None:
    async with run(shop.app) as app:
        shop.send_mail.sync.submit("on the loop")
        await asyncio.to_thread(shop.send_mail.sync.call, "in a thread", timeout=10)
        await drain(app)
        assert len(await submitted(app)) == 2
    assert sorted(shop.MAILS) == ["in a thread", "on the loop"]


def test_without_an_event_loop(clock: ManualClock) -> None:
    with run(shop.app, clock=clock) as app:
        shop.send_mail.sync.options(delay=3600).submit("ada")
        app.sync.run(drain(app, until=timedelta(hours=1)))
        assert shop.MAILS == ["ada"]
    with run(shop.app, start=False) as app:
        shop.send_mail.sync.submit("bob")
        assert [task.status for task in app.sync.list_tasks()] == [Status.READY]
    assert shop.MAILS == ["ada"]
    assert shop.app._store.url.startswith("redis://")


async def test_periodics_and_the_lifespan_are_started_each_time(clock: ManualClock) -> None:
    steps: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(app: Scheduler) -> AsyncIterator[str]:
        steps.append("open")
        yield "pool"
        steps.append("close")

    app = Scheduler(NOWHERE, lifespan=lifespan)

    @app.periodic("@daily")
    async def report(ctx: TaskContext) -> None:
        steps.append(ctx.state)

    for _ in range(2):
        async with run(app, clock=clock):
            await drain(app, until=timedelta(days=1))
    async with run(app, start=False):
        assert (await app.schedules.list()).items == []
    assert steps == ["open", "pool", "close"] * 2


async def test_the_durability_of_the_real_store_may_be_asked_for() -> None:
    app = Scheduler(NOWHERE, durability="replicated")

    @app.task
    async def work(n: int) -> int:
        return n

    async with run(app):
        assert await (await work.options(durability="disk").submit(1)).result(timeout=10) == 1
        handles = await app.submit_many(work, [2, 3], durability="replicated")
        assert [await handle.result(timeout=10) for handle in handles] == [2, 3]


async def test_a_child_process_does_not_reach_the_real_store() -> None:
    """The scheduler of the child names the store of production: a test must never write there."""
    async with run(shop.app) as app:
        assert await shop.double.call(21, timeout=30) == 42
        handle = await shop.submit_in_child.submit()
        with pytest.raises(TaskFailed, match="cannot reach the store in memory"):
            await handle.result(timeout=30)
        await drain(app)


async def test_an_application_of_its_own_store_runs_on_an_empty_one_in_memory(clock: ManualClock) -> None:
    app = Scheduler("redis://127.0.0.1:1/0", durability="replicated", partitions=4)
    ran: list[int] = []

    @app.task
    async def work(n: int) -> None:
        ran.append(n)

    store, url = app._store, app.url
    for n in range(2):
        async with run(app, clock=clock):
            assert await submitted(app) == [], "nothing is left of the test before"
            await work.options(delay=3600).submit(n)
            clock.advance(3600)
            await drain(app)
    assert ran == [0, 1]
    assert (app._store, app.url) == (store, url)
