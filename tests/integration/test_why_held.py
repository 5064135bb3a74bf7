"""`explain` names the limit, breaker or switch that keeps a task from running, with workers that keep them."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tests.integration.apps import Make, eventually, store_of
from tests.integration.conftest import url_of
from tickwork import Explanation, Handle, Reason, Scheduler
from tickwork.model.tasks import ParkReason, Status
from tickwork.testing import wait_for


@pytest.fixture(params=("memory", "redis"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


async def _why(app: Scheduler, handle: Handle[None], reason: Reason) -> Explanation:
    """Its explanation, once it has this reason."""
    found: list[Explanation] = []

    async def look() -> bool:
        found[:] = [await app.explain(handle.id)]
        return found[0].reason is reason

    await eventually(look, what=f"{reason} instead of {found}")
    return found[0]


async def _held(app: Scheduler, handle: Handle[None]) -> ParkReason:
    async def look() -> ParkReason | None:
        record = await (await store_of(app)).queries.get(handle.id)
        return record.parked if record is not None and record.status is Status.PENDING else None

    found = await eventually(look)
    assert isinstance(found, ParkReason)
    return found


async def test_a_limit_of_runs_at_a_time(app: Scheduler) -> None:
    release = asyncio.Event()

    @app.task(concurrency=2)
    async def mail() -> None:
        await release.wait()

    async with app:
        first = [await mail.submit() for _ in range(2)]
        for handle in first:
            await wait_for(app, handle.id, "running")
        waits = await mail.submit()
        assert await _held(app, waits) is ParkReason.LIMITED
        why = await _why(app, waits, Reason.LIMIT_FULL)
        assert why.text == "The limit of type mail is reached: 2 of 2 run (1 waits)."
        assert (why.until, why.ahead, why.blockers) == (None, None, ("type:mail",))
        assert (await _why(app, first[0], Reason.RUNNING)).until is not None
        release.set()
        await waits.result(10)
        assert (await app.explain(waits.id)).reason is Reason.ENDED


async def test_a_limit_of_a_key_for_a_program_without_the_handler(make: Make, redis_url: str) -> None:
    release = asyncio.Event()
    app, other = make(redis_url), make(redis_url)

    @app.task(concurrency=1, per="key")
    async def mail() -> None:
        await release.wait()

    async with app:
        running = await mail.options(key="acme").submit()
        await wait_for(app, running.id, "running")
        waits = await mail.options(key="acme").submit()
        await _held(app, waits)
        why = await _why(other, waits, Reason.LIMIT_FULL)
        assert why.text == "The limit of type mail for key acme is reached: 1 of 1 run (1 waits)."
        release.set()
        await waits.result(10)


async def test_ready_tasks_whose_type_workers_leave_out(app: Scheduler) -> None:
    """Of many that wait, most are not held one by one: they stay ready, in the side lane of their type."""

    @app.task(rate="1/h", burst=1)
    async def rare() -> None: ...

    async with app:
        await (await rare.submit()).result(10)
        handles = [await rare.submit() for _ in range(50)]
        before = time.time()
        for handle in (handles[0], handles[-1]):
            why = await _why(app, handle, Reason.RATE_SPENT)
            assert why.text.startswith("The rate of type rare (1/h) is used up; the next run may begin at 20")
            assert why.until is not None
            assert before + 3500 < why.until.timestamp() < before + 3601
            assert why.blockers == ("type:rare",)
        assert (await app.get_task(handles[-1].id)).status in (Status.READY, Status.PENDING)


async def test_a_limit_of_a_queue_that_was_set_by_hand(app: Scheduler) -> None:
    release = asyncio.Event()

    @app.task
    async def mail() -> None:
        await release.wait()

    await app.limits.set("queue:default", concurrency=1)
    async with app:
        running = await mail.submit()
        await wait_for(app, running.id, "running")
        waits = await mail.submit()
        why = await _why(app, waits, Reason.LIMIT_FULL)
        assert why.text.startswith("The limit of queue default is reached: 1 of 1 run")
        assert why.blockers == ("queue:default",)
        release.set()
        await waits.result(10)


async def test_a_breaker_that_has_opened(app: Scheduler) -> None:
    @app.task(breaker=(2, 3600), max_retry=0)
    async def charge(fails: bool) -> None:
        if fails:
            raise OSError("no answer")

    async with app:
        for _ in range(2):
            await wait_for(app, (await charge.submit(True)).id, "dead")
        store = await store_of(app)

        async def opened() -> bool:
            return bool(await store.gates.opened())

        await eventually(opened)
        waits = await charge.submit(False)
        assert await _held(app, waits) is ParkReason.BREAKER_OPEN
        why = await _why(app, waits, Reason.BREAKER_OPEN)
        (state,) = await store.gates.opened()
        assert why.until is not None
        assert round(why.until.timestamp() * 1000) == state.open_until
        assert why.text == (
            f"Breaker type:charge is open until {why.until:%Y-%m-%d %H:%M:%S} UTC after 2 failures in a row (1 waits)."
        )
        assert why.blockers == ("type:charge",)
        await app.breakers.close("type:charge")
        await waits.result(10)


async def test_a_breaker_that_was_opened_by_hand(app: Scheduler) -> None:
    @app.task
    async def charge() -> None: ...

    await app.breakers.open("type:charge", note="their outage", by="ann@host")
    async with app:
        waits = await charge.submit()
        why = await app.explain(waits.id)
        assert why.reason is Reason.BREAKER_OPEN
        assert why.text.startswith("Breaker type:charge was opened by ann@host at 20")
        assert why.text.endswith(" UTC: their outage.")
        await app.breakers.close("type:charge")
        await waits.result(10)


@pytest.mark.parametrize(
    ("of", "name"), [("type:mail", "Type mail"), ("key:acme", "Key acme"), ("tag:env=prod", "Tag env=prod")]
)
async def test_a_switch(app: Scheduler, of: str, name: str) -> None:
    @app.task
    async def mail() -> None: ...

    await app.switches.off(of, "a bug", by="ann@host", until=timedelta(hours=1))
    waits = await mail.options(key="acme", tags={"env": "prod"}).submit()
    async with app:
        if of != "type:mail":  # workers do not even claim those
            assert await _held(app, waits) is ParkReason.SWITCHED_OFF
        why = await app.explain(waits.id)
        assert why.reason is Reason.SWITCHED_OFF
        assert why.text.startswith(f"{name} was switched off by ann@host at 20")
        assert why.until is not None
        assert why.text.endswith(f" UTC, until {why.until:%Y-%m-%d %H:%M:%S} UTC: a bug.")
        assert why.blockers == (of,)
        await app.switches.on(of)
        assert (await app.explain(waits.id)).reason is not Reason.SWITCHED_OFF
        await waits.result(10)
