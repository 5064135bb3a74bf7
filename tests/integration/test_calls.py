"""`call`: a task is submitted and its result waited for in one."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from tests.integration.apps import FAST, Gate, Make, eventually, statuses
from tests.support.redis_store import empty_redis
from tickwork import (
    ConfigError,
    Depends,
    DuplicateTask,
    HandlerNotFound,
    Middleware,
    PayloadError,
    ResultTimeout,
    Scheduler,
    SubmitCall,
    SubmitNext,
    TaskCancelled,
    TaskContext,
    TaskExists,
    TaskFailed,
    TaskNotFound,
    TaskResult,
)
from tickwork.client import results
from tickwork.observe import StoreCalled, TaskSubmitted
from tickwork.store.contract import Receipt


async def test_the_result_of_a_call(app: Scheduler) -> None:
    @app.task
    async def divide(a: int, b: int = 2, *, ctx: TaskContext) -> float:
        return a / b

    @app.task
    def partly(text: str) -> TaskResult:
        return TaskResult(206, text)

    async with app:
        assert await divide.call(3, timeout=None) == 1.5
        assert await divide.call(3, b=4, timeout=10) == 0.75
        assert await divide.options(priority=10, tags={"a": "b"}).call(a=1, timeout=timedelta(seconds=10)) == 0.5
        assert await partly.call("so far", timeout=10) == TaskResult(206, "so far")
        assert await app.call("divide", {"a": 8}, timeout=10) == 4
        assert await app.call(divide, {"a": 8, "b": 8}, queue="default") == 1
        assert await app.call(divide.options(timeout=60), 6, timeout=10) == 3
        page = await app.list_tasks("success", limit=1)
        assert page.items[0].timeout == 60


async def test_many_calls_at_once(app: Scheduler) -> None:
    @app.task
    async def double(n: int) -> int:
        return 2 * n

    async with app:
        assert await asyncio.gather(*(double.call(n) for n in range(200))) == [2 * n for n in range(200)]


async def test_a_call_that_ends_badly_raises_what_result_raises(app: Scheduler) -> None:
    @app.task(max_retry=0)
    async def fail() -> None:
        raise ValueError("no luck")

    async with app:
        with pytest.raises(TaskFailed, match="ValueError: no luck") as failed:
            await fail.call(timeout=10)
        assert failed.value.info.status == "dead"
        waiting = asyncio.ensure_future(fail.options(id="later", delay=3600).call())
        await eventually(lambda: exists(app, "later"))
        await app.cancel("later")
        with pytest.raises(TaskCancelled, match="task later was cancelled"):
            await waiting
        waiting = asyncio.ensure_future(fail.options(id="gone", delay=3600).call())
        await eventually(lambda: exists(app, "gone"))
        await app.cancel("gone")
        with pytest.raises(TaskCancelled):
            await waiting


async def exists(app: Scheduler, task_id: str) -> bool:
    try:
        await app.get_task(task_id)
    except TaskNotFound:
        return False
    return True


async def test_a_task_that_was_too_slow_goes_on(app: Scheduler) -> None:
    gate = Gate()

    @app.task
    async def wait() -> str:
        await gate.pass_through()
        return "done"

    with pytest.raises(ResultTimeout, match=r"task it has not ended within 0\.05 s; it is ready") as late:
        await wait.options(id="it").call(timeout=0.05)
    assert late.value.info.status == "ready"
    with pytest.raises(ResultTimeout):
        await wait.options(id="other").call(timeout=0)
    async with app:
        gate.open()
        assert await app.handle("it").result(10) == await app.handle("other").result(10) == "done"
    with pytest.raises(ConfigError, match="timeout must be a number of seconds"):
        await app.call("wait", timeout="soon")  # type: ignore[arg-type]


async def test_a_caller_who_gives_up_leaves_the_task_alone(app: Scheduler) -> None:
    gate = Gate()

    @app.task
    async def wait() -> str:
        await gate.pass_through()
        return "done"

    async with app:
        calling = asyncio.ensure_future(wait.options(id="it").call())
        await eventually(lambda: gate.inside == 1)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert gate.inside == 1
        gate.open()
        assert await app.handle("it").result(10) == "done"


# --- options


async def test_a_call_of_what_is_there_already(app: Scheduler) -> None:
    @app.task
    async def work(n: int) -> int:
        return n

    async with app:
        once = work.options(dedup_key="k")
        assert await once.call(1) == 1
        with pytest.raises(DuplicateTask):
            await once.call(2)
        assert await once.options(if_exists="return").call(2, timeout=10) == 1
        assert await work.options(id="mine").call(3) == 3
        with pytest.raises(TaskExists):
            await work.options(id="mine").call(4)
        assert await work.options(id="mine", if_exists="return").call(4, timeout=10) == 3
    assert (await statuses(app))["success"] == 2


async def test_a_call_of_a_task_that_waits(app: Scheduler) -> None:
    @app.task
    async def work(n: int) -> int:
        return n

    async with app:
        assert await work.options(delay=0.05).call(1, timeout=20) == 1
        first = await work.options(delay=0.2).submit(2)
        assert await work.options(depends_on=[first]).call(3, timeout=20) == 3
        with pytest.raises(TaskNotFound, match="nobody"):
            await work.options(depends_on=["nobody"]).call(3)


async def test_a_call_of_a_task_whose_result_is_large(app: Scheduler) -> None:
    @app.task
    async def repeat(text: str, times: int) -> str:
        return text * times

    async with app:
        assert await repeat.call("x" * 20_000, 5, timeout=20) == "x" * 100_000


async def test_calls_that_are_refused(app: Scheduler) -> None:
    @app.task
    async def work(n: int) -> int:
        return n

    with pytest.raises(PayloadError, match="'m' is unknown"):
        await work.call(1, m=2)  # type: ignore[call-overload]
    with pytest.raises(PayloadError):
        await app.call("work", "three")
    with pytest.raises(ConfigError, match="a schedule has none"):
        await work.options(cron="@daily").call(1)
    with pytest.raises(ConfigError, match="submit and call take the name of a type"):
        await app.call(len, 1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown option"):
        await app.call("work", 1, quue="x")  # type: ignore[call-arg]
    assert (await app.list_tasks()).items == []


async def test_a_parameter_of_that_name_is_not_guessed_at(app: Scheduler) -> None:
    @app.task
    async def fetch(url: str, timeout: float = 5) -> float:
        return timeout

    with pytest.raises(ConfigError, match="fetch has a parameter named timeout"):
        await fetch.call("there", timeout=1)
    async with app:
        assert await fetch.call("there", 2) == 2
        assert await app.call(fetch, {"url": "there", "timeout": 3}, timeout=10) == 3


# --- what is around it


async def test_middleware_and_observers_see_a_call(make: Make, url: str) -> None:
    app, seen = make(url), list[str]()

    class Tagging(Middleware):
        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            for task in call.tasks:
                task.tags["seen"] = "yes"
            return await next(call)

    app.use(Tagging())
    app.observe(lambda event: seen.append(event.verdict), TaskSubmitted)

    @app.task
    async def work(ctx: TaskContext) -> dict[str, str]:
        return dict(ctx.tags)

    async with app:
        assert await work.call(timeout=10) == {"seen": "yes"}
    await eventually(lambda: seen == ["created"])


async def test_a_middleware_that_submits_nothing(app: Scheduler) -> None:
    class Refusing(Middleware):
        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            return [Receipt(task.id, "created") for task in call.tasks]

    app.use(Refusing())

    @app.task
    async def work() -> None: ...

    with pytest.raises(TaskNotFound):
        await work.options(id="it").call()


async def test_a_call_asks_the_store_for_nothing_but_the_result(
    make: Make, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "POLL", 3600)
    app, asked = make(url), list[str]()
    app.observe(lambda event: asked.append(event.method) if event.part in ("tasks", "queries") else None, StoreCalled)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    def of_caller() -> list[str]:
        return [method for method in asked if method in ("submit", "get")]

    async with app:
        for n in range(5):
            assert await double.call(n, timeout=60) == 2 * n
        await eventually(lambda: of_caller().count("submit") == 5 and of_caller().count("get") >= 5)
    # With the first it begins to listen, if that is over a network, and looks before and, maybe late, after that.
    assert of_caller().count("get") <= 5 + 2


async def test_a_handler_with_dependencies(app: Scheduler) -> None:
    def prefix() -> str:
        return "Dr "

    @app.task
    async def greet(name: str, title: str = Depends(prefix)) -> str:
        return title + name

    async with app:
        assert await greet.call("Ada", timeout=10) == "Dr Ada"


async def test_calls_on_several_partitions() -> None:
    app = Scheduler(empty_redis(), **FAST, partitions=3)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    async with app:
        assert await asyncio.gather(*(double.call(n) for n in range(30))) == [2 * n for n in range(30)]
        first = await double.options(delay=0.1).submit(1)
        assert await double.options(depends_on=[first]).call(5, timeout=20) == 10


# --- blocking code


async def test_calls_from_threads(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    def work() -> list[int]:
        assert threading.current_thread() is not threading.main_thread()
        return [double.sync.call(1), double.sync.options(priority=10).call(n=2, timeout=20), app.sync.call("double", 3)]

    async with app:
        assert await asyncio.to_thread(work) == [2, 4, 6]
        for call in (lambda: double.sync.call(1), lambda: app.sync.call("double", 1)):
            with pytest.raises(RuntimeError, match="would stop the very event loop that runs the worker"):
                call()


async def test_a_type_that_nobody_knows(make: Make) -> None:
    app = make("memory://")
    async with app:
        with pytest.raises(HandlerNotFound):
            await app.call("nobody")
