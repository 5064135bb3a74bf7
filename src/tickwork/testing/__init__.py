"""Helpers for the tests of programs that use Tickwork: own the clock, let everything run, look at what became of it.

A scheduler takes a clock; one that stands still until it is moved lets a test travel days in milliseconds:

    async def test_reminder_comes_after_three_days(tickwork_app, tickwork_clock):
        app = tickwork_app()  # on memory://, with tickwork_clock

        @app.task
        async def remind(user: str) -> str:
            return f"reminded {user}"

        async with app:
            handle = await remind.options(delay=timedelta(days=3)).submit("ann")
            tickwork_clock.advance(timedelta(days=3))
            await drain(app)
            assert await handle.result(timeout=1) == "reminded ann"

Only the store's clock is moved: it decides what is due, which retry's time has come, which tick fires. A handler's
timeout, its `asyncio.sleep` and the beats of a worker go by real time.

pytest finds the fixtures `tickwork_app` and `tickwork_clock` by itself, as they come with the installed package.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from tickwork.clock import ManualClock
from tickwork.errors import TaskNotFound
from tickwork.handlers.options import wait_limit
from tickwork.model.tasks import Status
from tickwork.store.hints import EVENTS
from tickwork.store.opening import make_store

if TYPE_CHECKING:
    from tickwork.clock import Clock
    from tickwork.model.info import TaskInfo
    from tickwork.scheduler import Scheduler
    from tickwork.store.contract import Store

__all__ = ["AppMaker", "ManualClock", "drain", "run", "submitted", "wait_for"]

LOOK_AGAIN = 0.05  # behind the hint that something has happened
NAMED_MAX = 5  # tasks told one by one when `drain` gives up
STARTED = (Status.READY, Status.ASSIGNED, Status.RUNNING)


@contextlib.asynccontextmanager
async def run(app: Scheduler, *, clock: Clock | None = None, start: bool = True) -> AsyncIterator[Scheduler]:
    """Run an application's own scheduler on an empty store in memory, whatever store it names, and put that back.

        async with run(shop.app, clock=ManualClock()) as app:
            await shop.place_order(7)
            await drain(app)

    With `start=False` nothing is run: tasks are only taken, so that a test can look at what was `submitted`.
    """
    config = replace(app.config, durability="memory", partitions=1)
    with app._on_store(make_store("memory://", config, clock)):
        if start:
            async with app:
                yield app
        else:
            try:
                yield app
            finally:
                await app.close()


async def submitted(app: Scheduler, type: str | None = None) -> list[TaskInfo]:
    """All tasks that the store has, or those of a type, in the order in which they were submitted.

    (mail,) = await submitted(app, "send_mail")
    assert mail.payload == {"to": "ann@example.org"}
    """
    found: list[TaskInfo] = []
    cursor: str | None = None
    while True:
        page = await app.list_tasks(type=type, limit=1000, cursor=cursor)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found[::-1]


async def drain(app: Scheduler, timeout: float | timedelta = 10) -> None:
    """Return when nothing is ready, running, due, or still to be told to dependants and schedules.

    What waits for a later time stays: move the clock to it and drain again. Raises `TimeoutError` after `timeout`
    of real time, naming what is left and why.

        clock.advance(3600)
        await drain(app)
    """
    store = await app._open()
    patience = wait_limit("timeout", timeout)
    deadline = time.monotonic() + patience
    quiet: object = None
    with store.hint(EVENTS) as hint:
        while True:
            left, mark = await _look(store)
            if not left and mark == quiet:  # two looks and nothing happened in between: it was all true at once
                return
            quiet = None if left else mark
            if left and time.monotonic() >= deadline:
                raise TimeoutError(f"not drained within {patience:g} s: {', '.join(left)}{await _named(app)}")
            if left:
                await hint.wait(LOOK_AGAIN)


async def wait_for(app: Scheduler, task_id: str, status: Status | str, timeout: float | timedelta = 10) -> TaskInfo:
    """Return the task once it has that status.

    Raises `AssertionError` when it ends in another way, and `TimeoutError` after `timeout` of real time.

        await wait_for(app, handle.id, "running")
    """
    wanted = Status.parse(status) if isinstance(status, str) else status
    store = await app._open()
    patience = wait_limit("timeout", timeout)
    deadline = time.monotonic() + patience
    with store.hint(EVENTS) as hint:
        while True:
            found = "is not there"
            try:
                info = await app.get_task(task_id)
            except TaskNotFound:  # the run of a schedule may be yet to come
                pass
            else:
                if info.status is wanted:
                    return info
                found = f"is {info.status}" + (f" ({info.last_error})" if info.last_error else "")
                if info.status.ended:
                    raise AssertionError(f"task {task_id} {found} and will not become {wanted}")
            if time.monotonic() >= deadline:
                raise TimeoutError(f"task {task_id} {found}, and was not {wanted} within {patience:g} s")
            await hint.wait(LOOK_AGAIN)


async def _look(store: Store) -> tuple[list[str], object]:
    """What is left to do, and a mark that differs when anything has happened since the last look."""
    statuses = (await store.queries.stats()).statuses
    left = [f"{statuses[status]} {status}" for status in STARTED if statuses.get(status)]
    if await store.tasks.promote(100) == 0:
        left.append("delayed tasks that are due")
    if untold := await store.tasks.outbox(100):
        left.append(f"{len(untold)} ends not told to dependants and schedules yet")
    schedules, _ = await store.schedules.due(100)
    left += [f"schedule {schedule.id} is due" for schedule in schedules[:NAMED_MAX]]
    return left, (await store.log.last(), statuses)


async def _named(app: Scheduler) -> str:
    lines = []
    for status in STARTED:
        page = await app.list_tasks(status, limit=NAMED_MAX)
        lines += [f"\n  {info.type} {info.id}: {await app.explain(info.id)}" for info in page]
    return "".join(lines[:NAMED_MAX])


class AppMaker(Protocol):
    """What the fixture `tickwork_app` gives: a `Scheduler`, with the options of one."""

    def __call__(self, store: str = "memory://", **options: Any) -> Scheduler: ...


if "pytest" in sys.modules:  # a program that imports this for `drain` alone need not have pytest
    import pytest

    pytest.register_assert_rewrite("tickwork.testing.contract")

    @pytest.fixture
    def tickwork_clock() -> ManualClock:
        """A clock that stands still until the test moves it: `advance(seconds)`, `set(moment)`."""
        return ManualClock()

    @pytest.fixture
    def tickwork_app(tickwork_clock: ManualClock) -> AppMaker:
        """Makes schedulers on `memory://` that go by `tickwork_clock`; `async with` starts and stops them."""

        def make(store: str = "memory://", **options: Any) -> Scheduler:
            from tickwork.scheduler import Scheduler

            return Scheduler(store, **{"clock": tickwork_clock, "shutdown_timeout": 2, **options})

        return make
