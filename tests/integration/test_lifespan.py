"""Lifespan: what a program sets up before its first task, and ends after the last one."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration import child_lifespan
from tests.integration.apps import Child, Make, eventually
from tickwork import ConfigError, Scheduler, TaskContext, TaskFailed, TickworkError
from tickwork import testing as tickwork_testing


class Diary:
    """What happened, in its order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def function(self, name: str, error: BaseException | None = None) -> Callable[[], Any]:
        async def hook() -> None:
            self.lines.append(name)
            if error is not None:
                raise error

        hook.__qualname__ = hook.__name__ = name
        return hook

    def lifespan(self, value: Any = None) -> Callable[[Scheduler], Any]:
        @asynccontextmanager
        async def lifespan(app: Scheduler) -> AsyncIterator[Any]:
            self.lines.append("enter")
            yield value  # no `finally`: it is resumed, whatever happens outside
            self.lines.append("leave")

        return lifespan


async def test_it_is_around_all_tasks_of_a_node(make: Make, url: str) -> None:
    diary = Diary()
    app = make(url, lifespan=diary.lifespan({"pool": "a pool"}))
    app.on_startup(diary.function("first"))
    app.on_startup(lambda: diary.lines.append("second"))
    app.on_shutdown(diary.function("not first"))
    app.on_shutdown(lambda: diary.lines.append("not second"))

    @app.task
    async def work(ctx: TaskContext) -> Any:
        diary.lines.append("run")
        return ctx.state

    @app.task
    def in_thread(ctx: TaskContext) -> Any:
        return ctx.state

    handle = await app.submit("work")  # it waits already when the node is started
    assert diary.lines == [], "a client does not run it"
    async with app:
        assert await handle.result(10) == {"pool": "a pool"}
        assert await (await in_thread.submit()).result(10) == {"pool": "a pool"}
    assert diary.lines == ["enter", "first", "second", "run", "not second", "not first", "leave"]
    diary.lines.clear()
    async with app:  # a second start is a second life
        pass
    assert diary.lines == ["enter", "first", "second", "not second", "not first", "leave"]
    assert app._lifespan.state is None


async def test_it_ends_after_the_handlers_that_a_shutdown_waits_for(make: Make) -> None:
    diary = Diary()
    app = make("memory://", lifespan=diary.lifespan())

    @app.task
    async def work() -> None:
        diary.lines.append("run")
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.2)
        diary.lines.append("ran")

    async with app:
        await work.submit()
        await eventually(lambda: "run" in diary.lines, what="it runs")
    assert diary.lines == ["enter", "run", "ran", "leave"]


async def test_the_store_is_open_in_it(make: Make) -> None:
    app = make("memory://")

    @app.task
    async def work() -> None: ...

    @app.on_startup
    async def submit() -> None:
        await work.submit()

    @app.on_shutdown
    async def look() -> None:
        found.append((await app.status()).tasks)

    found: list[Any] = []
    async with app:
        await tickwork_testing.drain(app)
    assert found == [{"success": 1}]


async def test_only_nodes_that_work_run_it(make: Make) -> None:
    diary = Diary()
    app = make("memory://", lifespan=diary.lifespan())
    await app.start(work=False)
    await app.shutdown(1)
    assert diary.lines == []


async def test_the_testing_helper_runs_it_with_its_worker(make: Make) -> None:
    diary = Diary()
    app = Scheduler("redis://nowhere", lifespan=diary.lifespan("state"))

    @app.task
    async def work(ctx: TaskContext) -> Any:
        return ctx.state

    async with tickwork_testing.run(app):
        assert await (await work.submit()).result(10) == "state"
    async with tickwork_testing.run(app, start=False):
        await work.submit()
    assert diary.lines == ["enter", "leave"]


# --- errors


async def test_an_error_at_the_start_ends_what_was_started(make: Make, url: str) -> None:
    diary = Diary()
    app = make(url, lifespan=diary.lifespan())
    app.on_startup(diary.function("connect"))
    app.on_startup(diary.function("migrate", ConnectionError("nobody answers")))
    app.on_startup(diary.function("never"))
    app.on_shutdown(diary.function("disconnect"))
    with pytest.raises(TickworkError) as refused:
        await app.start()
    assert str(refused.value) == (
        "this scheduler does not start, as its on_startup function tests.integration.test_lifespan.migrate raised "
        "ConnectionError: nobody answers"
    )
    assert isinstance(refused.value.__cause__, ConnectionError)
    assert diary.lines == ["enter", "connect", "migrate", "disconnect", "leave"]
    assert app._node is None
    assert not app._opened


@pytest.mark.parametrize("error", [LookupError("a defect"), SystemExit(3), asyncio.CancelledError()], ids=repr)
async def test_if_the_first_function_fails_nothing_was_started(make: Make, error: BaseException) -> None:
    diary = Diary()
    app = make("memory://")
    app.on_startup(diary.function("connect", error))
    app.on_shutdown(diary.function("disconnect"))
    with pytest.raises(TickworkError, match=r"as its on_startup function tests\S+connect raised"):
        await app.start()
    assert diary.lines == ["connect"]


@pytest.mark.parametrize("broken", [lambda app: None, lambda app: 1 / 0])
async def test_a_lifespan_that_cannot_be_entered_is_named(make: Make, broken: Any) -> None:
    diary = Diary()
    app = make("memory://", lifespan=broken)
    app.on_shutdown(diary.function("disconnect"))
    with pytest.raises(TickworkError, match=r"does not start, as its lifespan tests\S+ raised"):
        await app.start()
    assert diary.lines == []


async def test_when_the_rest_of_a_start_fails_it_is_ended(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: Any) -> None:
        raise LookupError("a defect")

    monkeypatch.setattr("tickwork.node.node.Node.start", fail)
    diary = Diary()
    app = make("memory://", lifespan=diary.lifespan())
    app.on_startup(diary.function("connect"))
    app.on_shutdown(diary.function("disconnect"))
    with pytest.raises(LookupError):
        await app.start()
    assert diary.lines == ["enter", "connect", "disconnect", "leave"]


async def test_an_error_at_the_end_is_logged_and_the_rest_is_ended(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary()

    @asynccontextmanager
    async def lifespan(app: Scheduler) -> AsyncIterator[None]:
        yield
        diary.lines.append("leave")
        raise SystemExit(3)

    app = make("memory://", lifespan=lifespan)
    app.on_shutdown(diary.function("last"))
    app.on_shutdown(diary.function("middle", LookupError("a defect")))
    app.on_shutdown(diary.function("first", asyncio.CancelledError()))
    async with app:
        pass
    assert diary.lines == ["first", "middle", "last", "leave"]
    logged = [line for line in caplog.messages if "the rest is ended all the same" in line]
    assert [line.split(" failed at its end")[0].rpartition(".")[2] for line in logged] == [
        "first",
        "middle",
        "lifespan",
    ]


async def test_an_end_that_takes_too_long_is_cut_off(
    make: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickwork.handlers.lifespan.PATIENCE_MIN", 0.05)
    diary = Diary()

    async def hang() -> None:
        diary.lines.append("hang")
        await asyncio.Event().wait()

    app = make("memory://", lifespan=diary.lifespan(), shutdown_timeout=0.1)
    app.on_shutdown(hang)
    async with app:
        pass
    assert diary.lines == ["enter", "hang", "leave"]
    assert any("hang did not end in time" in line for line in caplog.messages)


async def test_a_lifespan_that_ends_by_itself_drains_the_node(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """Its handlers would go on without what it made."""
    failing, stopped = asyncio.Event(), list[bool]()

    async def poll() -> None:
        await failing.wait()
        raise LookupError("a defect")

    @asynccontextmanager
    async def lifespan(app: Scheduler) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            group.create_task(poll())
            try:
                yield
            except asyncio.CancelledError:  # as a task group stops what runs inside of it
                stopped.append(True)
                raise

    app = make("memory://", lifespan=lifespan)
    await app.start()
    failing.set()
    await asyncio.wait_for(app.wait_stopped(), 10)
    assert app.exhausted
    assert stopped
    assert "the lifespan ended before the scheduler was shut down" in caplog.messages
    await app.shutdown(1)


async def test_a_start_from_another_coroutine_than_the_shutdown(make: Make) -> None:
    """A context manager with a task group must be left in the coroutine that entered it."""
    ended: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Scheduler) -> AsyncIterator[None]:
        async with asyncio.timeout(60):
            yield
        ended.append("well")

    app = make("memory://", lifespan=lifespan)
    await asyncio.create_task(app.start())
    await asyncio.create_task(app.shutdown(1))
    assert ended == ["well"]


async def test_what_cannot_be_called_is_refused_where_it_is_declared(make: Make) -> None:
    app = make("memory://")

    def needs(pool: object) -> None: ...

    for wrong, text in ((needs, "it needs 'pool'"), ("name", "takes a function")):
        for declare in (app.on_startup, app.on_shutdown):
            with pytest.raises(ConfigError, match=text):
                declare(wrong)  # type: ignore[type-var]
    with pytest.raises(ConfigError, match="lifespan must be a function of the scheduler"):
        make("memory://", lifespan="name")


# --- signals


async def test_a_signal_ends_it_after_the_last_task() -> None:
    with Child("tests.integration.child_lifespan") as node:
        for word in ("enter", "startup", "run"):
            await node.expect(word)
        node.process.terminate()
        for word in ("ran", "shutdown", "leave"):
            await node.expect(word)
        assert await asyncio.to_thread(node.process.wait, 15) == 0


async def test_a_signal_during_the_start_ends_what_was_started() -> None:
    with Child("tests.integration.child_lifespan", "slow start") as node:
        for word in ("enter", "startup", "waiting"):
            await node.expect(word)
        node.process.terminate()
        for word in ("shutdown", "leave"):
            await node.expect(word)
        assert await asyncio.to_thread(node.process.wait, 15) == 0


# --- child processes


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[int, list[str]]]:
    """What each process has noted."""
    path = tmp_path / "diary"
    monkeypatch.setenv("LIFESPAN_DIARY", str(path))

    def read() -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for line in path.read_text().splitlines():
            pid, _, what = line.partition(" ")
            found.setdefault(int(pid), []).append(what)
        return found

    return read


async def test_a_child_process_has_one_of_its_own(diary: Callable[[], dict[int, list[str]]]) -> None:
    async with child_lifespan.app as app:
        first = await (await app.submit("blocking")).result(20)
        second = await (await app.submit("on_its_loop")).result(20)
        third = await (await app.submit("blocking")).result(20)
    pid = first[1]
    assert pid != os.getpid()
    assert (first, second, third) == ([pid, pid, 1], [pid, pid, True], [pid, pid, 2])
    assert diary() == {
        os.getpid(): ["enter", "startup", "shutdown", "leave"],
        pid: ["enter", "startup", "run", "run", "run", "shutdown", "leave"],
    }


async def test_a_child_process_whose_startup_fails_runs_no_handler(
    diary: Callable[[], dict[int, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with child_lifespan.app as app:
        monkeypatch.setenv("LIFESPAN_BROKEN", "yes")
        handle = await app.submit("blocking")
        with pytest.raises(TaskFailed) as failed:
            await handle.result(20)
    assert "this child process cannot run tasks, as its on_startup function" in str(failed.value)
    assert "child_lifespan.connect raised ConnectionError: nobody answers" in str(failed.value)
    child = next(lines for pid, lines in diary().items() if pid != os.getpid())
    assert child == ["enter", "leave"]


async def test_context_variables_of_a_call_in_a_child_are_not_seen_by_the_next() -> None:
    """Calls with a lifespan share an event loop, whose runner has a context of its own."""
    from tickwork.executors import in_child

    variable = contextvars.ContextVar("variable", default="unset")

    async def work() -> str:
        before = variable.get()
        variable.set("set")
        return before

    def run_twice() -> list[str]:
        with asyncio.Runner() as runner:
            return [in_child._run_on(runner, work()) for _ in range(2)]

    assert await asyncio.to_thread(run_twice) == ["unset", "unset"]
