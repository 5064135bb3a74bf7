from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.apps import Gate, Make, eventually
from tickwork import FixedDelay, Scheduler, Status, TaskFailed, TickworkError
from tickwork.testing import AppMaker, ManualClock, drain, run, submitted, wait_for


async def test_days_pass_in_milliseconds(tickwork_app: AppMaker, tickwork_clock: ManualClock) -> None:
    app = tickwork_app()
    ran: list[str] = []

    @app.task(max_retry=1, retry=FixedDelay(86_400))
    async def remind(user: str) -> str:
        ran.append(user)
        if len(ran) == 1:
            raise OSError("the mail server is away")
        return f"reminded {user}"

    loop = asyncio.get_running_loop()
    started = loop.time()
    async with app:
        handle = await remind.options(delay=timedelta(days=3)).submit("ann")
        await drain(app)
        assert ran == []
        tickwork_clock.advance(timedelta(days=3) - timedelta(milliseconds=1))
        await drain(app)
        assert ran == []
        tickwork_clock.advance(0.001)
        await drain(app)
        assert ran == ["ann"]
        tickwork_clock.advance(timedelta(days=1))
        await drain(app)
        assert await handle.result(timeout=1) == "reminded ann"
    assert loop.time() - started < 5


async def test_the_clock_can_be_set_to_a_date(tickwork_app: AppMaker, tickwork_clock: ManualClock) -> None:
    app = tickwork_app()
    fired: list[int] = []

    @app.periodic("0 0 1 1 *")
    async def new_year() -> None:
        fired.append(tickwork_clock.now())

    tickwork_clock.set(datetime(2030, 12, 31, 23, 59, 59, tzinfo=UTC))
    async with app:
        await drain(app)
        assert fired == []
        tickwork_clock.set(datetime(2031, 1, 1, tzinfo=UTC))
        await drain(app)
        assert len(fired) == 1


async def test_drain_follows_what_handlers_submit_and_dependants(app: Scheduler) -> None:
    done: list[int] = []

    @app.task
    async def countdown(n: int) -> None:
        done.append(n)
        if n:
            first = await countdown.submit(n - 1)
            await app.submit(after, None, depends_on=[first])

    @app.task
    async def after() -> None:
        done.append(-1)

    async with app:
        await countdown.submit(5)
        await drain(app)
    assert sorted(done) == [-1] * 5 + [0, 1, 2, 3, 4, 5]


async def test_drain_says_what_is_left(app: Scheduler) -> None:
    gate = Gate()

    @app.task
    async def stuck() -> None:
        await gate.pass_through()

    async with app:
        handle = await stuck.submit()
        await eventually(lambda: gate.entered)
        with pytest.raises(TimeoutError, match=rf"(?s)within 0.1 s: 1 running.*stuck {handle.id}: It is running on"):
            await drain(app, timeout=timedelta(milliseconds=100))
        gate.open()
        await drain(app)


async def test_drain_says_that_nobody_works(app: Scheduler) -> None:
    @app.task
    async def idle() -> None: ...

    handle = await idle.submit()
    with pytest.raises(TimeoutError, match=rf"(?s)1 ready.*idle {handle.id}: No worker is up"):
        await drain(app, timeout=0.05)


async def test_drain_says_which_schedule_is_due(make: Make, clock: ManualClock, url: str) -> None:
    app = make(url, clock=clock)

    @app.task
    async def job() -> None: ...

    await app.schedules.put("hourly", "job", cron="@hourly")
    clock.advance(3600)
    with pytest.raises(TimeoutError, match="schedule hourly is due"):
        await drain(app, timeout=0.05)


async def test_wait_for_a_status(app: Scheduler) -> None:
    gate = Gate()

    @app.task(max_retry=0)
    async def work() -> None:
        await gate.pass_through()
        raise ValueError("no luck")

    async with app:
        handle = await work.submit()
        assert (await wait_for(app, handle.id, "running")).status is Status.RUNNING
        with pytest.raises(TimeoutError, match=f"task {handle.id} is running, and was not success within 0.05 s"):
            await wait_for(app, handle.id, Status.SUCCESS, timeout=timedelta(seconds=0.05))
        gate.open()
        with pytest.raises(AssertionError, match=r"is dead \(ValueError: no luck"):
            await wait_for(app, handle.id, "completed")
        with pytest.raises(TaskFailed):
            await handle.result(1)
        with pytest.raises(TimeoutError, match="task nobody is not there"):
            await wait_for(app, "nobody", "success", timeout=0.05)


def test_programs_without_pytest_may_import_it() -> None:
    code = "import sys, tickwork.testing as t; print('pytest' in sys.modules, hasattr(t, 'tickwork_app'), t.drain)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("False False <function drain")


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


async def test_what_was_submitted_is_seen_without_being_run(clock: ManualClock) -> None:
    app = Scheduler("redis://127.0.0.1:1/0")

    @app.task
    async def work(n: int) -> None: ...

    async with run(app, clock=clock, start=False):
        for n in range(3):
            await work.submit(n)
        await app.submit("elsewhere", "x")
        assert [task.payload for task in await submitted(app, "work")] == [{"n": 0}, {"n": 1}, {"n": 2}]
        assert [task.type for task in await submitted(app)] == ["work", "work", "work", "elsewhere"]
        assert {task.status for task in await submitted(app)} == {Status.READY}


async def test_a_scheduler_that_runs_cannot_be_put_on_another_store() -> None:
    async with Scheduler("memory://") as app:
        with pytest.raises(TickworkError, match="close it first"):
            async with run(app):
                raise AssertionError("it has a store in use")
