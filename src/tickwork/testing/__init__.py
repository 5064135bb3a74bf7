"""Helpers for the tests of programs that use Tickwork: own the clock, let everything run, look at what became of it.

A scheduler takes a clock; one that stands still until it is moved lets a test travel days in milliseconds:

    async def test_reminder_comes_after_three_days(tickwork_app, tickwork_clock):
        app = tickwork_app()  # on memory://, with tickwork_clock

        @app.task
        async def remind(user: str) -> str:
            return f"reminded {user}"

        async with app:
            handle = await remind.options(delay=timedelta(days=3)).submit("ann")
            await drain(app, until=timedelta(days=3))
            assert await handle.result(timeout=1) == "reminded ann"

Only the store's clock is moved: it decides what is due, which retry's time has come, which tick fires. A handler's
timeout, its `asyncio.sleep` and the beats of a worker go by real time.

pytest finds the fixtures `tickwork_app` and `tickwork_clock` by itself, as they come with the installed package.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

from tickwork.clock import ManualClock
from tickwork.testing.contexts import RecordingContext, make_context
from tickwork.testing.draining import drain, wait_for
from tickwork.testing.running import FOR_EVER, Run, run
from tickwork.testing.submits import SubmittedFields, assert_not_submitted, assert_submitted, submitted

if TYPE_CHECKING:
    from tickwork.scheduler import Scheduler

__all__ = [
    "AppMaker",
    "ManualClock",
    "RecordingContext",
    "Run",
    "SubmittedFields",
    "assert_not_submitted",
    "assert_submitted",
    "drain",
    "make_context",
    "run",
    "submitted",
    "wait_for",
]


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

            defaults = {"clock": tickwork_clock, "shutdown_timeout": 2, "retention": FOR_EVER}
            return Scheduler(store, **{**defaults, **options})

        return make
