"""Starting and stopping: more than once, at the same moment, from several places."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.integration.apps import FAST, Gate, Make, eventually, hold_claims, status_of
from tickwork import ConfigError, PeriodicTask, Scheduler, Status, TaskContext, TickworkError
from tickwork.node import duties


async def test_a_second_shutdown_waits_for_the_first(make: Make, url: str) -> None:
    app = make(url)
    gate = Gate()

    @app.task
    async def work() -> int:
        await gate.pass_through()
        return 7

    await app.start()
    handle = await work.submit()
    await eventually(lambda: gate.inside == 1)
    first = asyncio.ensure_future(app.shutdown(timeout=20))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(app.shutdown(timeout=0))
    await asyncio.sleep(0.05)
    assert not second.done()
    gate.open()
    await asyncio.gather(first, second)
    assert await status_of(app, handle.id) is Status.SUCCESS


async def test_of_two_starts_one_is_refused(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def work() -> None: ...

    answers = await asyncio.gather(app.start(), app.start(), return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None), TickworkError]
    await app.shutdown(5)
    assert not (await app.status()).running
    async with app:
        await (await work.submit()).result(10)


async def test_a_shutdown_during_the_start_comes_after_it(make: Make, url: str) -> None:
    app = make(url)
    starting = asyncio.ensure_future(app.start())
    await asyncio.sleep(0)
    await app.shutdown(1)
    assert starting.done()
    assert not (await app.status()).running


async def test_a_start_during_a_shutdown_is_refused(make: Make, url: str) -> None:
    app = make(url)
    await app.start()
    stopping = asyncio.ensure_future(app.shutdown(1))
    await asyncio.sleep(0)
    with pytest.raises(TickworkError, match="is being started or shut down"):
        await app.start()
    await stopping
    async with app:
        assert (await app.status()).running


async def test_a_node_may_be_shut_down_from_another_loop(make: Make, url: str) -> None:
    app = make(url)
    await asyncio.to_thread(app.sync.start)
    await app.shutdown(5)
    assert app._node_loop is None
    async with app:
        assert (await app.status()).running


async def test_a_claim_that_arrives_while_the_worker_stops_is_given_back(file_url: str) -> None:
    app = Scheduler(file_url)
    arrived, go_on = hold_claims(app, "job")

    @app.task
    async def job() -> None: ...

    await app.start()
    handle = await app.submit("job")
    await arrived.wait()
    stopping = asyncio.ensure_future(app.shutdown(5))
    await asyncio.sleep(0.05)
    go_on.set()
    await stopping
    info = await app.get_task(handle.id)
    assert (info.status, info.attempt, info.losses) == (Status.READY, 0, 0)
    await app.close()


def hearts() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "tickwork-heart"}


async def test_a_start_that_fails_can_be_tried_again(file_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app, before = Scheduler(file_url), hearts()

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("not today")

    with monkeypatch.context() as broken:
        broken.setattr(duties, "take_back", fail)
        with pytest.raises(RuntimeError, match="not today"):
            await app.start()
    assert hearts() <= before
    async with app:
        assert (await app.status()).running


def test_a_node_whose_event_loop_was_closed_goes_silent_and_can_be_shut_down(file_url: str) -> None:
    """Its program never called shutdown(): nothing runs any more, so nobody may believe that it lives."""
    app, before = Scheduler(file_url, **FAST, scheduler_id="left"), hearts()

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    asyncio.run(app.start())
    asyncio.run(eventually(lambda: hearts() <= before))
    asyncio.run(app.shutdown(1))
    assert app.sync.list_workers() == []
    assert app.sync.status().running is False

    async def again() -> int:
        async with app:
            result: int = await (await double.submit(4)).result(10)
            return result

    assert asyncio.run(again()) == 8
    app.sync.close()


def test_a_shutdown_while_its_own_event_loop_stands_still_is_refused(url: str) -> None:
    app = Scheduler(url, **FAST)
    home = asyncio.new_event_loop()
    home.run_until_complete(app.start())
    with pytest.raises(TickworkError, match="another event loop, which does not run now"):
        asyncio.run(app.shutdown())
    assert app.sync.status().running
    home.run_until_complete(app.shutdown())
    home.close()


async def test_a_schedule_that_is_declared_right_after_the_start_is_written(make: Make, url: str) -> None:
    app = make(url)
    async with app:

        @app.periodic("0 3 * * *")
        async def report() -> None: ...

        async def written() -> bool:
            return [schedule.id for schedule in await app.schedules.list()] == ["report"]

        await eventually(written, what="it is in the store")


def test_a_store_on_the_command_line_overrules_a_client(tmp_path: Path) -> None:
    app = Scheduler(redis.Redis(port=1))
    app.configure(store=f"sqlite:///{tmp_path}/other.db")
    assert app.url == f"sqlite:///{tmp_path}/other.db"
    assert not app.capabilities.remote


def test_a_periodic_without_a_line_is_refused() -> None:
    app: Any = Scheduler("memory://")

    async def report() -> None: ...

    with pytest.raises(ConfigError, match=r"app.periodic needs a cron line, not <function"):
        app.periodic(report)


def test_a_class_is_no_periodic_task() -> None:
    class Cleanup(PeriodicTask):
        name, spec = "cleanup", "@daily"

        def run(self, ctx: TaskContext) -> None: ...

    app: Any = Scheduler("memory://")
    with pytest.raises(ConfigError, match=r"takes an object of Cleanup, not the class itself: Cleanup\(\)"):
        app.register(Cleanup)
