"""Executors of a program's own: chosen by name, and held to what holds for every run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.integration.apps import Make, eventually, store_of
from tickwork import (
    Abort,
    ConfigError,
    ExecutorError,
    Grant,
    HandlerNotFound,
    Retry,
    Scheduler,
    TaskContext,
    TaskResult,
)
from tickwork.handlers.registry import Entry
from tickwork.observe import TaskStarted

Outcome = TaskResult | bytes | None


class Recording:
    """Keeps what it was given, and does what it is told."""

    def __init__(self, behave: Callable[[Grant, TaskContext], Awaitable[Outcome]] | None = None) -> None:
        self.calls: list[tuple[Grant, Entry | None, TaskContext]] = []
        self.cancelled: list[str] = []
        self.life: list[str] = []
        self._behave = behave

    async def start(self) -> None:
        self.life.append("start")

    async def stop(self, grace: float) -> None:
        self.life.append("stop")

    async def run(self, task: Grant, entry: Entry | None, context: TaskContext) -> Outcome:
        self.calls.append((task, entry, context))
        try:
            return None if self._behave is None else await self._behave(task, context)
        except asyncio.CancelledError:
            assert context.cancelled
            self.cancelled.append(task.spec.id)
            raise


async def hang(task: Grant, context: TaskContext) -> Outcome:
    await asyncio.Event().wait()
    return None


def failing(*errors: Exception) -> Callable[[Grant, TaskContext], Awaitable[Outcome]]:
    """Fails once with each of these errors, and then succeeds."""
    left = list(errors)

    async def behave(task: Grant, context: TaskContext) -> Outcome:
        if left:
            raise left.pop(0)
        return TaskResult(data="done")

    return behave


class Program:
    """Runs a Python program for each task, with its payload as standard input: no shell, no handler."""

    def __init__(self, code: str) -> None:
        self._code = code

    async def run(self, task: Grant, entry: Entry | None, context: TaskContext) -> TaskResult:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", self._code,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            output, errors = await process.communicate(task.spec.payload)
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            raise ExecutorError(f"exit status {process.returncode}", report=errors.decode().strip())
        return TaskResult(message="by a program", data=msgspec.json.decode(output))


async def test_a_type_without_a_handler_is_run_by_its_executor(make: Make, url: str) -> None:
    app = make(url)
    app.executors.register("program", Program("import sys; print(sys.stdin.read())"), types=["echo"])
    async with app:
        handle = await app.submit("echo", {"a": [1, 2]})
        assert await handle.result(20) == {"a": [1, 2]}
        info = await handle.info()
    assert info.result == TaskResult(0, "by a program", {"a": [1, 2]})
    assert (info.executor, info.attempt, app.executors.list()) == ("program", 1, ["local", "program"])


async def test_a_failed_program_is_retried_and_its_report_is_kept_as_it_is(make: Make) -> None:
    app = make("memory://")
    app.executors.register("program", Program("import sys; sys.exit('no such order')"), types=["ship"])
    async with app:
        handle = await app.submit("ship", max_retry=2)
        info = await eventually(lambda: ended(app, handle.id))
    assert (info.status, info.attempt, info.last_error) == ("dead", 3, "no such order")


async def ended(app: Scheduler, task_id: str) -> Any:
    info = await app.get_task(task_id)
    return info if info.status.ended else None


async def test_a_handler_may_be_declared_for_an_executor(make: Make) -> None:
    """Then its signature checks the payload, and its body is not run here."""
    app, remote = make("memory://"), Recording(failing())
    app.executors.register("remote", remote)

    @app.task(executor="remote", timeout=7)
    async def resize(path: str, width: int = 640) -> str:
        raise AssertionError("it runs elsewhere")

    @app.task
    async def plain() -> str:
        return "here"

    async with app:
        handle = await resize.submit("a.png", width=3)
        assert await handle.result(10) == "done"
        assert await (await resize.options(executor="local", max_retry=0).submit("b.png")).info() is not None
        assert await (await plain.submit()).result(10) == "here"
        assert await (await plain.options(executor="remote").submit()).result(10) == "done"
    task, entry, context = remote.calls[0]
    assert msgspec.json.decode(task.spec.payload) == {"path": "a.png", "width": 3}
    assert (entry is resize.entry, context.task_id, context.attempt) == (True, handle.id, 1)
    assert context.remaining is not None
    assert [call[0].spec.type for call in remote.calls] == ["resize", "plain"]


@pytest.mark.parametrize(
    ("errors", "status", "attempts", "text"),
    [
        ([ValueError("no answer")], "success", 2, None),
        ([Retry(0.01)], "success", 2, None),
        ([Abort("refused for good")], "dead", 1, "refused for good"),
        ([ExecutorError("HTTP 502")] * 3, "dead", 3, "HTTP 502"),
    ],
    ids=["exception", "retry", "abort", "executor error"],
)
async def test_an_error_of_an_executor_means_what_it_means_in_a_handler(
    make: Make, errors: list[Exception], status: str, attempts: int, text: str | None
) -> None:
    app, remote = make("memory://"), Recording(failing(*errors))
    app.executors.register("remote", remote, types=["work"])
    async with app:
        handle = await app.submit("work", max_retry=2)
        info = await eventually(lambda: ended(app, handle.id))
    assert (info.status, info.attempt) == (status, attempts)
    if text is not None:
        assert info.last_error == text


async def test_progress_of_a_run_elsewhere_is_shown(make: Make) -> None:
    let_go = asyncio.Event()

    async def behave(task: Grant, context: TaskContext) -> Outcome:
        context.progress(0.5, "half")
        await let_go.wait()
        return b'"raw JSON"'

    app = make("memory://")
    app.executors.register("remote", Recording(behave), types=["work"])
    async with app:
        handle = await app.submit("work")

        async def half() -> bool:
            return (await handle.info()).progress == 0.5

        await eventually(half)
        let_go.set()
        assert await handle.result(10) == "raw JSON"


async def test_a_result_that_is_none_of_the_promised_ends_the_task_and_says_so(make: Make) -> None:
    async def behave(task: Grant, context: TaskContext) -> Any:
        return {"a": 1}

    app = make("memory://")
    app.executors.register("remote", Recording(behave), types=["work"])
    async with app:
        handle = await app.submit("work")
        info = await eventually(lambda: ended(app, handle.id))
    assert info.status == "dead"
    assert info.last_error == "an executor must return a TaskResult, JSON as bytes, or None; it returned dict"


async def test_a_timeout_reaches_the_executor(make: Make) -> None:
    app, remote = make("memory://"), Recording(hang)
    app.executors.register("remote", remote, types=["work"])
    async with app:
        handle = await app.submit("work", timeout=0.05, max_retry=0)
        info = await eventually(lambda: ended(app, handle.id))
    assert (info.status, info.last_error) == ("dead", "timed out after 0.05 s")
    assert remote.cancelled == [handle.id]


async def test_a_cancel_reaches_the_executor(make: Make) -> None:
    app, remote = make("memory://"), Recording(hang)
    app.executors.register("remote", remote, types=["work"])
    async with app:
        handle = await app.submit("work")
        await eventually(lambda: remote.calls)
        await app.cancel(handle.id, force=True)
        info = await eventually(lambda: ended(app, handle.id))
    assert info.status == "cancelled"
    assert remote.cancelled == [handle.id]


async def test_a_run_whose_lease_is_lost_is_stopped_and_hands_in_nothing(make: Make, url: str) -> None:
    app, remote = make(url, lease_ttl=60.0, renew_interval=0.1), Recording(hang)
    app.executors.register("remote", remote, types=["work"])
    async with app:
        handle = await app.submit("work")
        await eventually(lambda: remote.calls)
        first = remote.calls[0][0]
        store = await store_of(app)
        await store.tasks.reclaim(10, (app.id,), nodes=(app._identity,))
        await eventually(lambda: remote.cancelled, what="the first run is asked to stop")
        await eventually(lambda: len(remote.calls) == 2, what="it is granted again")
        info = await handle.info()
        assert (info.status, info.last_error is None or "lost" in info.last_error) == ("running", True)
        assert remote.calls[1][0].lease.fence > first.lease.fence


async def test_an_executor_that_does_not_stop_loses_its_slot_and_counts_as_leaked(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickwork.worker.worker.CANCEL_GRACE", 0.05)
    let_go = asyncio.Event()

    async def ignore(task: Grant, context: TaskContext) -> Outcome:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return None

    app = make("memory://", concurrency=2)
    app.executors.register("remote", Recording(ignore), types=["work"])
    async with app:
        await app.submit("work", timeout=0.05, max_retry=0)
        node = app._node
        assert node is not None
        await eventually(lambda: node.workers[0].leaked == 1)
        let_go.set()
        await eventually(lambda: node.workers[0].leaked == 0)


async def test_executors_start_before_the_first_task_and_stop_after_the_last(make: Make) -> None:
    app, told = make("memory://"), list[str]()

    class Told(Recording):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        async def start(self) -> None:
            told.append(f"{self.name} starts")

        async def stop(self, grace: float) -> None:
            assert grace > 0
            told.append(f"{self.name} stops")
            if self.name == "b":
                raise RuntimeError("cannot stop")

        async def run(self, task: Grant, entry: Entry | None, context: TaskContext) -> None:
            told.append(f"{self.name} runs")

    app.executors.register("a", Told("a"), types=["work"])
    app.executors.register("b", Told("b"))
    for _ in range(2):
        told.clear()
        async with app:
            await (await app.submit("work")).result(10)
            with pytest.raises(ConfigError, match="executor 'c' must be registered before the scheduler is started"):
                app.executors.register("c", Recording())
        assert told == ["a starts", "b starts", "a runs", "b stops", "a stops"]


async def test_an_executor_that_cannot_start_keeps_the_node_from_starting(make: Make) -> None:
    class Broken(Recording):
        async def start(self) -> None:
            raise RuntimeError("no certificate")

    app, first = make("memory://"), Recording()
    app.executors.register("first", first)
    app.executors.register("broken", Broken())
    with pytest.raises(RuntimeError, match="no certificate"):
        await app.start()
    assert first.life == ["start", "stop"]


async def test_a_task_for_an_executor_that_is_not_here_waits_for_a_node_that_has_it(
    make: Make, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    without, having = make(url), make(url)
    without.executors.register("gpu", None)
    remote = Recording(failing())
    having.executors.register("gpu", remote)
    for app in (without, having):

        @app.task
        async def train() -> str:
            return "here"

    started: list[TaskStarted] = []
    without.observe(started.append, TaskStarted)
    await without.start()
    handle = await without.submit("train", executor="gpu", max_retry=0)

    async def waits() -> Any:
        info = await handle.info()
        return info if info.last_error else None

    info = await eventually(waits)
    assert (info.status, info.attempt, info.losses) == ("pending", 0, 0)
    assert info.last_error == f"worker {without.id} has no executor 'gpu'; it waits for a worker that has"
    assert sum("has no executor 'gpu'" in message for message in caplog.messages) == 1
    await without.shutdown()
    assert started == []
    async with having:
        assert await having.handle(handle.id).result(20) == "done"
    assert [task.attempt for task, _, _ in remote.calls] == [1]


async def test_a_worker_claims_no_type_whose_executor_it_has_not(make: Make) -> None:
    app = make("memory://")
    app.executors.register("gpu", None, types=["infer"])

    @app.task(executor="gpu")
    async def train() -> None: ...

    @app.task
    async def plain() -> None: ...

    async with app:
        tasks = [await app.submit("infer", 1), await train.submit()]
        await (await plain.submit()).result(10)
        assert [(await task.info()).status for task in tasks] == ["ready", "ready"]
        assert [worker.task_types for worker in await app.list_workers()] == [("plain",)]


class TestBadInput:
    async def test_an_unknown_executor_is_refused_with_the_known_ones(self, make: Make, sqlite_url: str) -> None:
        app = make(sqlite_url)
        app.executors.register("gpu", None)
        with pytest.raises(ConfigError, match=r"unknown executor 'gpo'; known are gpu, local\. Register it first"):
            await app.submit("work", executor="gpo")
        with pytest.raises(ConfigError, match="unknown executor 'gpo'; known are gpu, local"):
            await app.schedules.put("s", "work", executor="gpo")
        with pytest.raises(ConfigError, match="unknown executor 'gpo'; known are gpu, local"):
            app.task("other", executor="gpo")(lambda: None)

    def test_what_is_no_executor(self) -> None:
        app = Scheduler("memory://")
        with pytest.raises(ConfigError, match=r"executor 'x' needs a method `async def run\(self, task"):
            app.executors.register("x", object())  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="an executor's name must be 1 to 128 letters"):
            app.executors.register("x y", Recording())
        assert app.executors.list() == ["local"]

    def test_a_name_or_a_type_that_is_taken(self) -> None:
        app = Scheduler("memory://")

        @app.task
        async def work() -> None: ...

        app.executors.register("a", Recording(), types=["thing"])
        for name in ("a", "local"):
            with pytest.raises(ConfigError, match=f"an executor '{name}' is registered already"):
                app.executors.register(name, Recording())
        with pytest.raises(ConfigError, match="executor 'b' cannot run tasks of type 'work': a handler does that"):
            app.executors.register("b", Recording(), types=["work"])
        with pytest.raises(ConfigError, match="executor 'b' cannot run tasks of type 'thing': executor 'a' does that"):
            app.executors.register("b", Recording(), types=["thing"])
        with pytest.raises(ConfigError, match="executor 'b': task type 'a b' must be"):
            app.executors.register("b", Recording(), types=["a b"])
        with pytest.raises(ConfigError, match="tasks of type 'thing' are run by executor 'a'"):
            app.task("thing")(lambda: None)
        assert app.executors.list() == ["a", "local"]

    async def test_a_type_that_no_executor_runs_needs_a_handler_in_memory(self, make: Make) -> None:
        app = make("memory://")
        app.executors.register("a", Recording())
        with pytest.raises(HandlerNotFound):
            await app.submit("work", executor="a")
