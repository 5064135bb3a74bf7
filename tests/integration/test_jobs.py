"""Live objects that run later in this very process."""

from __future__ import annotations

import asyncio
import functools
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.apps import Make, eventually
from tickwork import ConfigError, FixedDelay, Job, Scheduler, Status, TaskContext, TaskExists
from tickwork.testing import ManualClock, drain

MIDNIGHT = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(MIDNIGHT)


@pytest.fixture
def app(make: Make, clock: ManualClock) -> Scheduler:
    return make("memory://", clock=clock)


class Mail:
    def __init__(self, id: str) -> None:
        self.id = id
        self.sent: list[str] = []
        self.thread: int | None = None

    def run(self, ctx: TaskContext) -> str:
        self.sent.append(ctx.task_id)
        self.thread = threading.get_ident()
        return "sent"


class AsyncMail(Mail):
    async def run(self, ctx: TaskContext) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().run(ctx)


async def test_job_objects(app: Scheduler, clock: ManualClock) -> None:
    blocking, on_loop = Mail("mail-1"), AsyncMail("mail-2")
    assert isinstance(blocking, Job)
    async with app:
        first = await app.schedule(blocking, MIDNIGHT + timedelta(days=2))
        second = await app.schedule_after(on_loop, timedelta(hours=1))
        assert (first.id, second.id) == ("mail-1", "mail-2")
        clock.advance(3600)
        await drain(app)
        assert (blocking.sent, on_loop.sent) == ([], ["mail-2"])
        clock.advance(timedelta(days=2))
        await drain(app)
        assert blocking.sent == ["mail-1"]
        assert await first.result(1) == "sent"
        assert on_loop.thread == threading.get_ident() != blocking.thread
        with pytest.raises(TaskExists):
            await app.schedule_after(blocking, 1)


async def test_callables(app: Scheduler, clock: ManualClock) -> None:
    live = object()  # nothing that could be encoded
    seen: list[Any] = []

    async def on_loop() -> None:
        seen.append(live)

    async with app:
        await app.schedule_after(lambda: seen.append(1), 10)
        await app.schedule_after(on_loop, 20)
        await app.schedule_after(functools.partial(seen.append, live), 30)
        await app.schedule_after(functools.partial(on_loop), 40)
        for _ in range(4):
            clock.advance(10)
            await drain(app)
    assert seen == [1, live, live, live]


async def test_jobs_are_retried_cancelled_and_kept_apart(make: Make, clock: ManualClock) -> None:
    app = make("memory://", clock=clock, max_retry=1, retry=FixedDelay(60))
    tries: list[int] = []

    def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("no")
        return "second time"

    async with app:
        handle = await app.schedule_after(flaky, 0)
        await drain(app)
        clock.advance(60)
        await drain(app)
        assert await handle.result(1) == "second time"
        gone = await app.schedule_after(lambda: tries.append(9), 60)
        await gone.cancel()
        clock.advance(60)
        await drain(app)
        assert 9 not in tries


async def test_finished_jobs_are_let_go(app: Scheduler, clock: ManualClock) -> None:
    """Objects of jobs that have ended must not pile up."""
    async with app:
        for _ in range(300):
            await app.schedule_after(lambda: None, 0)
        kept = [await app.schedule_after(lambda: "kept", 60) for _ in range(50)]
        await drain(app)
        for _ in range(2000):
            await (await app.schedule_after(lambda: None, 60)).cancel()
        assert len(app._jobs._waiting) <= 500
        clock.advance(60)
        await drain(app)
        assert [await handle.result(1) for handle in kept] == ["kept"] * 50


async def test_a_job_of_an_id_that_waits_is_refused(app: Scheduler, clock: ManualClock) -> None:
    first, second = Mail("same"), Mail("same")
    async with app:
        await app.schedule_after(first, 60)
        with pytest.raises(TaskExists):
            await app.schedule_after(second, 60)
        clock.advance(60)
        await drain(app)
    assert (first.sent, second.sent) == (["same"], []), "the one that was refused must not take its place"


async def test_jobs_from_another_thread(make: Make) -> None:
    """A worker may start a job before the thread that submits it goes on."""
    app = make("memory://", max_retry=0)
    async with app:
        handles = await asyncio.to_thread(lambda: [app.sync.schedule_after(lambda: "ran", 0) for _ in range(200)])
        for handle in handles:
            assert (await app.get_task(handle.id)).last_error is None
            await eventually(functools.partial(_succeeded, app, handle.id), what="the job ran")


async def _succeeded(app: Scheduler, task_id: str) -> bool:
    info = await app.get_task(task_id)
    assert info.last_error is None
    return info.status is Status.SUCCESS


async def test_retry_of_a_dead_job(app: Scheduler, clock: ManualClock) -> None:
    broken = [True]

    def work() -> str:
        if broken[0]:
            raise ValueError("no")
        return "well"

    async with app:
        handle = await app.schedule_after(work, 0)
        for _ in range(5):
            await drain(app)
            clock.advance(1)
        broken[0] = False
        await app.dlq.retry(handle.id)
        assert await handle.result(5) == "well"


async def test_other_stores_refuse_live_objects(make: Make, file_url: str) -> None:
    app = make(file_url)
    with pytest.raises(ConfigError, match=r"needs memory://; on other stores register a handler and submit a payload"):
        await app.schedule_after(lambda: None, 1)
    with pytest.raises(ConfigError, match="needs memory://"):
        await app.schedule(Mail("m"), MIDNIGHT)


async def test_jobs_that_are_refused(app: Scheduler) -> None:
    with pytest.raises(ConfigError, match="a job must be callable, or have an id and a method run"):
        await app.schedule_after(3, 1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="must know its zone"):
        await app.schedule(lambda: None, datetime(2030, 1, 1))
    with pytest.raises(ConfigError, match="delay must not be negative"):
        await app.schedule_after(lambda: None, -1)
    assert (await app.status()).tasks == {}


async def test_a_job_right_now(make: Make) -> None:
    app = make("memory://")
    ran: list[int] = []
    async with app:
        for number in range(50):
            await app.schedule_after(functools.partial(ran.append, number), 0)
        await eventually(lambda: len(ran) == 50)
    assert sorted(ran) == list(range(50)), "a job that starts at once must find its object"
