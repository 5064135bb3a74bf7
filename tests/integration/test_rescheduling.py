"""Tasks that are moved to another time by hand, by programs and on the command line."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from click.testing import CliRunner

from tests.integration.apps import Make
from tickwork import ConfigError, NotReschedulable, Reason, Scheduler, Status, TaskNotFound
from tickwork.cli import commands
from tickwork.testing import ManualClock, drain

LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def app(make: Make, url: str) -> Scheduler:
    app = make(url)

    @app.task
    async def echo(text: str = "") -> str:
        return text

    return app


async def test_a_worker_that_sleeps_until_a_later_time_is_woken_for_the_earlier_one(app: Scheduler) -> None:
    async with app:
        handle = await app.submit("echo", "soon", delay=3600)
        await handle.reschedule(delay=0.2)
        assert await handle.result(30) == "soon"
        assert "task.rescheduled" in [event.kind for event in await app.events.read(0, 100, task_id=handle.id)]


async def test_the_new_time_is_what_the_task_waits_for(app: Scheduler) -> None:
    handle = await app.submit("echo", id="it")
    assert (await handle.info()).status is Status.READY
    await app.reschedule("it", at=LATER.astimezone(timezone(timedelta(hours=5))))
    why = await app.explain("it")
    assert (why.reason, why.until) == (Reason.NOT_DUE, LATER)
    assert (await handle.info()).scheduled_at == LATER


async def test_expires_is_shown_from_the_new_time(app: Scheduler) -> None:
    handle = await app.submit("echo", delay=60, expires=30)
    await handle.reschedule(at=LATER)
    assert (await handle.info()).expires_at == LATER + timedelta(seconds=30)


async def test_what_waits_for_no_time_is_refused(app: Scheduler) -> None:
    await app.submit("echo", id="up", delay=60)
    await app.submit("echo", id="blocked", depends_on=["up"])
    await app.submit("echo", id="ended")
    await app.cancel("ended")
    with pytest.raises(NotReschedulable, match="task blocked is blocked: it waits for other tasks"):
        await app.reschedule("blocked", delay=5)
    with pytest.raises(NotReschedulable, match=r"task ended has ended already \(cancelled\): retry\(\)"):
        await app.reschedule("ended", delay=5)
    with pytest.raises(TaskNotFound):
        await app.reschedule("nobody", delay=5)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({}, "takes the new time as at=..., or as delay=..."),
        ({"at": LATER, "delay": 5}, "takes the new time as"),
        ({"delay": -1}, "delay must not be negative"),
        ({"at": datetime(2100, 1, 1)}, "at must know its zone"),
    ],
)
async def test_a_time_that_cannot_be_meant_is_refused(make: Make, wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        await make("memory://").reschedule("it", **wrong)


async def test_a_schedule_has_no_single_time(make: Make) -> None:
    app = make("memory://")
    app.registry.register("echo", _echo)
    with pytest.raises(TypeError, match="whose times follow from its cron line"):
        await (await app.submit("echo", cron="@daily")).reschedule(delay=5)


async def _echo() -> None: ...


async def test_it_runs_when_the_clock_comes_to_the_new_time(make: Make, clock: ManualClock) -> None:
    app = make("memory://", clock=clock)
    app.registry.register("echo", _echo)
    async with app:
        handle = await app.submit("echo", delay=3600)
        await handle.reschedule(delay=timedelta(hours=3))
        clock.advance(3601)
        await drain(app)
        assert (await handle.info()).status is Status.PENDING
        clock.advance(2 * 3600)
        await drain(app)
        assert (await handle.info()).status is Status.SUCCESS


async def test_blocking_code_has_it_too(app: Scheduler) -> None:
    def work() -> datetime:
        handle = app.sync.submit("echo", "x", delay=60)
        handle.reschedule(delay=60)
        app.sync.reschedule(handle.id, at=LATER)
        due = handle.info().scheduled_at
        app.sync.close()
        return due

    assert await asyncio.to_thread(work) == LATER


def test_the_command_says_the_new_time(sqlite_url: str) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(commands, [*words, "--store", sqlite_url])
        return result.exit_code, result.stdout, result.stderr

    assert run("submit", "echo", "--id", "it", "--delay", "1h")[0] == 0
    code, shown, _ = run("reschedule", "it", "--at", "2100-01-01T01:00+01:00", "--json")
    assert (code, json.loads(shown)) == (0, {"id": "it", "done": "rescheduled", "due_at": "2100-01-01T00:00:00Z"})
    code, shown, _ = run("reschedule", "it", "--in", "2h")
    assert (code, shown.startswith("it  due 2")) == (0, True)
    assert "was moved by hand to another time: 2" in run("task", "it")[1]
    assert run("reschedule", "it")[0] == 2
    assert run("reschedule", "it", "--in", "2h", "--at", "2100-01-01T01:00Z")[0] == 2
    assert run("reschedule", "it", "--at", "2100-01-01T01:00")[0] == 2
    assert run("cancel", "it")[0] == 0
    code, _, told = run("reschedule", "it", "--in", "2h")
    assert (code, "task it has ended already (cancelled)" in told) == (1, True)
