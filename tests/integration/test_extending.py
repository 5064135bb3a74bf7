"""Duties and services that a program adds to its node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.apps import Gate, Make, eventually
from tickwork import ConfigError, Duty, Scheduler, Service, StoreUnavailable, TickworkError
from tickwork.store.hints import OUTBOX


class Server:
    """A service that says what happens to it."""

    def __init__(self, told: list[str], name: str = "server") -> None:
        self.told, self.name = told, name
        self.fails = 0
        self._stop = asyncio.Event()

    async def start(self) -> None:
        self.told.append(f"{self.name} starts")

    async def run(self) -> None:
        self.told.append(f"{self.name} runs")
        if self.fails:
            self.fails -= 1
            raise RuntimeError("a defect of the server")
        await self._stop.wait()
        self.told.append(f"{self.name} ended")

    async def stop(self, grace: float) -> None:
        assert grace > 0
        self.told.append(f"{self.name} stops")
        self._stop.set()

    def service(self, **options: Any) -> Service:
        return Service(self.name, self.run, start=self.start, stop=self.stop, **options)


async def test_a_service_runs_from_before_the_first_task_until_after_the_last(make: Make) -> None:
    app, told = make("memory://"), list[str]()
    app.add_service(Server(told).service())
    asked = asyncio.Event()

    @app.task
    async def work() -> None:
        told.append("task runs")
        asked.set()
        await asyncio.sleep(0.05)
        told.append("task ended")

    await app.start()
    await work.submit()
    await asked.wait()
    await app.shutdown()
    assert told == [
        "server starts", "server runs", "task runs", "task ended", "server stops", "server ended",
    ]  # fmt: skip


async def test_a_service_that_fails_is_started_again(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    app, told = make("memory://"), list[str]()
    server = Server(told)
    server.fails = 2
    app.add_service(server.service())
    async with app:
        await eventually(lambda: told.count("server runs") == 3)
        assert not app.exhausted
    assert told[:6] == ["server starts", "server runs"] * 3
    assert told[6:] == ["server stops", "server ended"]
    assert sum("server ended by an error; it is started again in" in line for line in caplog.messages) == 2


async def test_a_service_that_has_failed_does_not_hold_up_the_end(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickwork.node.services.PAUSE_MIN", 60.0)
    app, told = make("memory://", shutdown_timeout=60.0), list[str]()
    server = Server(told)
    server.fails = 1
    app.add_service(server.service())
    async with app:
        await eventually(lambda: app._node is not None and app._node.supervisor.resting)
    assert told == ["server starts", "server runs"]


async def test_a_vital_service_that_fails_ends_the_node(make: Make) -> None:
    app, told = make("memory://"), list[str]()
    server = Server(told)
    server.fails = 1
    app.add_service(server.service(vital=True))
    await app.start()
    await asyncio.wait_for(app.wait_stopped(), 10)
    assert app.exhausted
    await app.shutdown()
    assert told == ["server starts", "server runs"]


async def test_a_service_that_cannot_start_keeps_the_node_from_starting(make: Make) -> None:
    app, told = make("memory://"), list[str]()

    async def fails() -> None:
        raise OSError("port 8080 is taken")

    app.add_service(Server(told, "first").service())
    app.add_service(Service("second", Server(told).run, start=fails))
    with pytest.raises(OSError, match="port 8080 is taken"):
        await app.start()
    assert told == ["first starts", "first runs", "first stops", "first ended"] or told == [
        "first starts", "first stops", "first runs", "first ended",
    ]  # fmt: skip


async def test_a_service_that_does_not_stop_is_cancelled_in_time(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    app, ended = make("memory://"), list[str]()

    async def run() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def stop(grace: float) -> None: ...

    async def fails(grace: float) -> None:
        raise RuntimeError("cannot stop")

    app.add_service(Service("deaf", run, stop=stop))
    app.add_service(Service("broken", run, stop=fails))
    app.add_service(Service("plain", run))
    async with app:
        await asyncio.sleep(0)
    assert ended == ["cancelled"] * 3
    failed = [line for line in caplog.messages if "could not be stopped in time" in line]
    assert sorted(failed) == [
        "service broken could not be stopped in time",
        "service deaf could not be stopped in time",
    ]


async def test_a_duty_of_the_leader_is_done_by_one_node_and_one_of_all_by_all(make: Make, sqlite_url: str) -> None:
    done = list[tuple[str, int]]()
    apps = [make(sqlite_url), make(sqlite_url)]
    for number, app in enumerate(apps):

        async def count(number: int = number) -> None:
            done.append(("leader", number))

        async def look(number: int = number) -> float:
            done.append(("all", number))
            return 0.01

        app.add_duty(Duty("count", count, 0.01))
        app.add_duty(Duty("look", look, 60, who="all"))
        await app.start()
    await eventually(lambda: {("all", 0), ("all", 1)} <= set(done) and done.count(("leader", 0)) > 2)
    assert ("leader", 1) not in done
    await apps[0].shutdown()
    await eventually(lambda: ("leader", 1) in done, what="the other node leads and does it")
    await apps[1].shutdown()


async def test_a_duty_is_woken_by_its_topic(make: Make) -> None:
    app, done = make("memory://"), list[int]()

    async def look() -> None:
        done.append(1)

    app.add_duty(Duty("look", look, 60, OUTBOX))

    gate = Gate()

    @app.task
    async def work() -> None:
        await gate.pass_through()

    async with app:
        await eventually(lambda: done)
        before = len(done)
        first = await work.submit()
        await work.options(depends_on=[first]).submit()
        gate.open()
        await eventually(lambda: len(done) > before, what="an end that others wait for wakes it")


@pytest.mark.parametrize("error", [StoreUnavailable("away"), ZeroDivisionError("a defect")])
async def test_a_duty_that_fails_is_done_again_and_harms_no_other(make: Make, error: Exception) -> None:
    app, calls = make("memory://"), list[int]()

    async def look() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise error

    app.add_duty(Duty("look", look, 0.01))

    @app.task
    async def work() -> str:
        return "done"

    async with app:
        assert await (await work.submit()).result(10) == "done"
        await eventually(lambda: len(calls) > 3)
        assert app._node is not None
        restarts = app._node.supervisor.restarts["the duty 'look'"]
    assert restarts == (0 if isinstance(error, StoreUnavailable) else 2)


async def test_a_capability_is_a_function_that_adds_its_parts(make: Make) -> None:
    def add_housekeeping(app: Scheduler, told: list[str]) -> None:
        async def sweep() -> None:
            told.append("swept")

        app.add_duty(Duty("sweep", sweep, 0.01))
        app.add_service(Server(told).service())

    app, told = make("memory://"), list[str]()
    add_housekeeping(app, told)
    async with app:
        await eventually(lambda: "swept" in told and "server runs" in told)


class TestBadInput:
    async def test_parts_come_before_the_start(self, make: Make) -> None:
        app = make("memory://")

        async def run() -> None: ...

        async with app:
            with pytest.raises(TickworkError, match=r"add_service\(\) comes before a scheduler is started"):
                app.add_service(Service("it", run))
            with pytest.raises(TickworkError, match=r"add_duty\(\) comes before a scheduler is started"):
                app.add_duty(Duty("it", run, 1))

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"name": ""}, "duty '': its name must be a text of at least one character"),
            ({"name": "prune"}, "there is a duty 'prune' already"),
            ({"name": "taken"}, "there is a duty 'taken' already"),
            ({"run": print}, "duty 'it': run must be an async function"),
            ({"every": 0}, "duty 'it': every must be a number of seconds above 0, not 0"),
            ({"every": "1s"}, "duty 'it': every must be a number of seconds above 0, not '1s'"),
            ({"who": "me"}, "duty 'it': who must be one of leader, all, not 'me'"),
        ],
    )
    def test_a_duty_that_cannot_be_done(self, options: dict[str, Any], text: str) -> None:
        async def run() -> None: ...

        app = Scheduler("memory://")
        app.add_duty(Duty("taken", run, 1))
        with pytest.raises(ConfigError, match=f"^{text}$"):
            app.add_duty(Duty(**{"name": "it", "run": run, "every": 1, **options}))

    def test_a_service_that_cannot_run(self) -> None:
        async def run() -> None: ...

        app = Scheduler("memory://")
        app.add_service(Service("it", run))
        with pytest.raises(ConfigError, match="there is a service 'it' already"):
            app.add_service(Service("it", run))
        with pytest.raises(ConfigError, match="service 'other': stop must be an async function"):
            app.add_service(Service("other", run, stop=print))  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="a service must be given as a Service, not "):
            app.add_service(run)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="a duty must be given as a Duty, not "):
            app.add_duty(run)  # type: ignore[arg-type]
