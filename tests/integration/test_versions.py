"""Two versions of a program on one store: what does not fit one of them is run by the other."""

from __future__ import annotations

import pytest

from tests.integration import child_handlers
from tests.integration.apps import Make, facts, store_of
from tickwork import Scheduler, Status, TaskFailed
from tickwork.clock import ManualClock
from tickwork.model.tasks import Spec
from tickwork.testing import drain, wait_for

OF_NEWER = b'{"cents":500,"currency":"EUR"}'
UNFIT = "the payload does not fit the handler: Expected `int`, got `object`"


async def older(amount: int) -> str:
    return f"older: {amount}"


async def newer(cents: int, currency: str) -> str:
    return f"newer: {cents} {currency}"


async def submit_as_newer(app: Scheduler) -> None:
    store = await store_of(app)
    await store.tasks.submit([Spec(id="it", type="charge", nonce="n", payload=OF_NEWER, max_retry=0)])


async def test_what_does_not_fit_waits_visibly_and_is_dead_in_the_end(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    app.registry.register("charge", older)
    await submit_as_newer(app)
    async with app:
        await drain(app)
        reason = f"{UNFIT}; it waits for a worker of another version, until 2023-11-14 23:13:20 UTC"
        (waiting,) = await app.list_tasks()
        assert (waiting.status, waiting.attempt, waiting.last_error) == (Status.PENDING, 0, reason)
        assert (await app.explain("it")).text == f"It waits for its time, 2023-11-14 22:13:21 UTC ({reason})."
        assert await facts(app, "it") == ["task.submitted", "task.claimed", "task.snoozed"]

        clock.advance(3599)
        await drain(app)
        assert (await app.get_task("it")).last_error == reason
        clock.advance(1)
        await drain(app)
        with pytest.raises(TaskFailed):
            await app.handle("it").result(1)
        dead = await app.dlq.get("it")
        assert (dead.status, dead.attempt, dead.last_error) == (Status.DEAD, 1, UNFIT)


async def test_without_a_grace_it_is_dead_at_once(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock, version_grace=0)
    app.registry.register("charge", older)
    await submit_as_newer(app)
    async with app:
        await drain(app)
        assert (await app.dlq.get("it")).last_error == UNFIT


async def test_it_runs_where_it_fits_at_the_next_look(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)
    app.registry.register("charge", older)
    await submit_as_newer(app)
    async with app:
        await drain(app)
        app.registry.unregister("charge")
        app.registry.register("charge", newer)
        clock.advance(1)
        await drain(app)
        assert await app.handle("it").result(1) == "newer: 500 EUR"
        assert (await app.get_task("it")).attempt == 1


async def test_the_newer_version_runs_its_tasks_beside_the_older_one(make: Make, file_url: str) -> None:
    old = make(file_url, version_grace=60)  # it looks once a second
    new = make(file_url)
    old.registry.register("charge", older)
    new.registry.register("charge", newer)
    async with old:
        handle = await new.submit("charge", {"cents": 500, "currency": "EUR"}, max_retry=0)
        waiting = await wait_for(old, handle.id, "pending")
        assert (waiting.last_error or "").startswith(UNFIT)
        async with new:
            assert await handle.result(30) == "newer: 500 EUR"
            assert (await handle.info()).attempt == 1


async def test_a_handler_in_a_child_process_waits_as_well(make: Make, url: str) -> None:
    app = make(url, version_grace=60)
    app.registry.register("decorated", child_handlers.decorated.entry.function, run_in="process")
    store = await store_of(app)
    await store.tasks.submit([Spec(id="unfit", type="decorated", nonce="n", payload=b'{"n":"five"}')])
    await store.tasks.submit([Spec(id="torn", type="decorated", nonce="n", payload=b'{"n":5')])
    async with app:
        unfit = await wait_for(app, "unfit", "pending", timeout=20)
        assert "Expected `int`, got `str` - at `$.n`; it waits for" in (unfit.last_error or "")
        torn = await wait_for(app, "torn", "dead", timeout=20)
        assert torn.last_error == "the payload does not fit the handler: Input data was truncated"
