"""The parts of a node are watched: an error in one of them doubles, loses and stalls nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from tests.integration.apps import Make, eventually, store_of
from tickwork import Scheduler, TaskContext
from tickwork.node import duties, firing
from tickwork.node.heart import Heart
from tickwork.node.leader import Candidate
from tickwork.node.services import Service, Supervisor
from tickwork.observe.loggers import Log
from tickwork.store.redis.net.listen import Listener

SHORT = {"lease_ttl": 1.5, "renew_interval": 0.3, "scan_interval": 0.2}


def failing(times: int, then: Any) -> Any:
    """A coroutine function that fails with a defect so many times, and works then."""
    left = [times]

    async def call(*args: Any, **options: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise RuntimeError("a defect")
        return await then(*args, **options)

    return call


def node_of(app: Scheduler) -> Any:
    assert app._node is not None
    return app._node


async def test_a_beat_that_fails_does_not_end_the_heart(make: Make, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its leases would run out, and the node would run its own tasks again beside the first runs."""
    app, starts, let_go = make(url, **SHORT), list[int](), asyncio.Event()

    @app.task
    async def work(ctx: TaskContext) -> str:
        starts.append(ctx.attempt)
        await let_go.wait()
        return "done"

    async with app:
        handle = await work.submit()
        await eventually(lambda: starts, what="it runs")
        heart = node_of(app).heart
        monkeypatch.setattr(heart, "_renew", failing(2, heart._renew))
        renewed = heart._renewed_at
        await eventually(lambda: heart._renewed_at > renewed + SHORT["lease_ttl"], what="it renews again")
        let_go.set()
        assert await handle.result(10) == "done"
        assert starts == [1]
        assert (await handle.info()).losses == 0


async def test_a_heart_that_ends_drains_its_node(
    make: Make, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What runs is given back while its leases are good: it runs elsewhere, and is not blamed."""
    ended = asyncio.Event()

    async def beat_for_ever(self: Heart) -> None:
        while not ended.is_set():
            await asyncio.sleep(0.01)
        raise RuntimeError("a defect of the heart")

    monkeypatch.setattr(Heart, "_beat_for_ever", beat_for_ever)
    app, starts = make(url), list[str]()

    @app.task
    async def work(ctx: TaskContext) -> None:
        starts.append(ctx.task_id)
        await asyncio.Event().wait()

    await app.start()
    handle = await work.submit()
    await eventually(lambda: starts, what="it runs")
    ended.set()
    await asyncio.wait_for(app.wait_stopped(), 10)
    assert app.exhausted
    assert "the heart ended by an error, so this node is drained" in caplog.messages
    await app.shutdown(1)
    info = await app.get_task(handle.id)
    assert (info.status, info.attempt, info.losses) == ("ready", 0, 0)
    await app.close()


async def test_the_work_of_a_leader_goes_on_after_an_error(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A duty whose loop ends by an error is started again; the others do not notice."""
    monkeypatch.setattr(duties, "repeat", failing(6, duties.repeat))
    app, ran = make("memory://", scan_interval=0.05), list[int]()

    @app.periodic("* * * * * *")
    async def tick() -> None:
        ran.append(1)

    async with app:
        await eventually(lambda: ran, what="a tick has run")
        assert sum(node_of(app).supervisor.restarts.values()) >= 6
    assert any("is started again in" in message for message in caplog.messages)


async def test_a_schedule_fires_on_after_a_defect_in_the_firing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing, "fire_schedules", failing(1, firing.fire_schedules))
    app, ran = make("memory://", scan_interval=0.05), list[int]()

    @app.periodic("* * * * * *")
    async def tick() -> None:
        ran.append(1)

    async with app:
        await eventually(lambda: ran, what="a tick has run")


async def test_a_candidate_that_fails_campaigns_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    hear = Candidate._take_answer
    left = [2]

    async def fails_twice(self: Candidate, *args: Any) -> None:
        if left[0]:
            left[0] -= 1
            raise RuntimeError("a defect")
        await hear(self, *args)

    monkeypatch.setattr(Candidate, "_take_answer", fails_twice)
    app = make("memory://")
    async with app:
        await eventually(lambda: node_of(app).candidate.leads, what="it leads")
        assert node_of(app).supervisor.restarts["the candidate for leadership"] == 2


async def test_what_the_heart_does_beside_its_beats_is_started_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickwork.node.heart.SHOW_INTERVAL", 0.01)
    app = make("memory://", concurrency=1)
    let_go = asyncio.Event()

    @app.task
    async def work() -> None:
        await let_go.wait()

    async with app:
        heart, store = node_of(app).heart, await store_of(app)
        monkeypatch.setattr(heart, "_show", failing(1, heart._show))
        handle = await work.submit()

        async def shown() -> bool:
            return [worker.running for worker in await store.members.workers()] == [1]

        await eventually(shown, what="the store knows that it is busy")
        assert heart._supervisor.restarts["the showing of running tasks"] == 1
        let_go.set()
        await handle.result(10)


async def test_a_message_that_cannot_be_read_does_not_end_the_listening(
    make: Make, redis_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tickwork.store.redis.net.listen.Listener._wake", failing(1, Listener._wake))
    app = make(redis_url, scan_interval=30.0)
    app._store.capabilities = replace(app._store.capabilities, standing_claims=False)  # type: ignore[misc]

    @app.task
    async def work() -> str:
        return "done"

    async with app:
        for _ in range(3):
            assert await (await work.submit()).result(5) == "done"
    assert "listening for wake-ups failed, beginning again" in caplog.messages


async def test_what_is_not_worth_starting_again_is_only_reported(caplog: pytest.LogCaptureFixture) -> None:
    supervisor = Supervisor(Log.of(None, "node"))

    async def done() -> None: ...

    await supervisor.watch(Service("it", failing(1, done), again=False))
    assert (caplog.messages, supervisor.restarts["it"]) == (["it ended by an error"], 0)


async def test_a_pause_grows_while_a_service_keeps_failing(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("tickwork.node.services.asyncio.sleep", sleep)
    ended = list[str]()
    supervisor = Supervisor(Log.of(None, "node"), lambda: ended.append("vital"))

    async def done() -> None: ...

    await supervisor.watch(Service("it", failing(12, done)))
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert pauses[-1] == 30.0
    assert (supervisor.restarts["it"], ended) == (12, [])
    await supervisor.watch(Service("it", failing(1, done), vital=True))
    assert ended == ["vital"]
