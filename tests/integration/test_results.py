"""Waiting for results: how long, how often a waiter looks, and what it gets."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.integration import child_handlers
from tests.integration.apps import Gate, Make, eventually, status_of, store_of
from tickwork import (
    ConfigError,
    PayloadError,
    ResultTimeout,
    Scheduler,
    Status,
    TaskCancelled,
    TaskContext,
    TaskFailed,
    TaskResult,
)
from tickwork.client.results import until_look
from tickwork.store.hints import Hint
from tickwork.testing import wait_for


async def test_a_waiter_looks_less_and_less_often(make: Make, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make(url)

    @app.task
    async def work() -> None: ...

    handle, pauses = await work.submit(), list[float]()

    async def wait(hint: Hint, timeout: float, idle: bool = True) -> bool:
        pauses.append(timeout)
        if len(pauses) == 8:
            await handle.cancel()
        return False

    await store_of(app)
    monkeypatch.setattr(Hint, "wait", wait)
    with pytest.raises(TaskCancelled):
        await handle.result()
    monkeypatch.undo()
    for pause, usual in zip(pauses, [1, 2, 4, 8, 16, 30, 30, 30], strict=True):
        assert usual / 2 <= pause <= usual * 3 / 2


@pytest.mark.parametrize("pause", [1.0, 2.0, 16.0, 30.0])
def test_all_waiters_of_a_process_look_at_the_same_moments(pause: float) -> None:
    moments = [now + until_look(now, pause) for now in (1000 + n * pause / 7 for n in range(70))]
    apart = {round((later - earlier) / pause, 6) for earlier, later in pairwise(moments)}
    assert apart == {0, 1}


async def test_how_long_to_wait(app: Scheduler) -> None:
    @app.task
    async def work() -> int:
        return 1

    handle = await work.submit()
    for short in (0.01, timedelta(milliseconds=10), 0, -1):
        with pytest.raises(ResultTimeout, match="it is ready"):
            await handle.result(short)
    wrong: list[Any] = ["5", float("nan"), True]
    for value in wrong:
        with pytest.raises(ConfigError, match="timeout must be a number of seconds or a timedelta"):
            await handle.result(value)
        with pytest.raises(ConfigError, match="timeout must be a number of seconds or a timedelta"):
            await app.shutdown(value)
    async with app:
        assert await handle.result(timedelta(seconds=10)) == 1
        assert await handle.result(float("inf")) == 1
        await app.shutdown(timedelta(seconds=1))


# --- code, message, data


@pytest.mark.parametrize("run_in", ["thread", "process"])
async def test_a_handler_may_say_code_and_message(app: Scheduler, run_in: Any) -> None:
    app.registry.register("partly", child_handlers.partly, run_in=run_in)
    async with app:
        handle = await app.submit("partly", 3)
        assert await handle.result(20) == TaskResult(206, "3 were left out", {"left": 3})
        info = await handle.info()
        assert (info.status, info.result) == ("success", TaskResult(206, "3 were left out", {"left": 3}))
        assert await app.handle((await app.submit("partly", 0)).id).result(20) == TaskResult(206, "0 were left out")


async def test_a_result_without_a_declared_type_is_its_data(app: Scheduler) -> None:
    @app.task
    async def partly():  # type: ignore[no-untyped-def]
        return TaskResult(206, "some", [1])

    async with app:
        handle = await partly.submit()
        assert await handle.result(10) == [1]
        assert (await handle.info()).result == TaskResult(206, "some", [1])


@pytest.mark.parametrize("code", ["206", 2**40, None, True])
async def test_a_code_that_is_no_code(app: Scheduler, code: Any) -> None:
    @app.task(max_retry=3)
    async def odd() -> TaskResult:
        return TaskResult(code, "no", None)

    async with app:
        handle = await odd.submit()
        with pytest.raises(TaskFailed, match="the code of a TaskResult must be a whole number of 32 bits"):
            await handle.result(10)
        assert (await handle.info()).attempt == 1


async def test_the_code_says_how_it_ended(make: Make, url: str) -> None:
    app = make(url)

    @app.task(max_retry=0)
    async def work(fails: bool) -> int:
        if fails:
            raise ValueError("no luck")
        return 5

    async with app:
        good, bad = await work.submit(False), await work.submit(True)
        gone = await work.options(delay=60).submit(False)
        await app.update_task_status(gone.id, "cancelled", "not wanted")
        assert (await wait_for(app, good.id, "success")).result == TaskResult(0, "", 5)
        assert (await wait_for(app, bad.id, "dead")).result == TaskResult(1, "ValueError: no luck")
        assert (await gone.info()).result == TaskResult(2, "not wanted")


async def test_the_message_of_a_status_set_by_hand(make: Make, url: str) -> None:
    app = make(url)

    @app.task(max_retry=5)
    async def work(how: str, ctx: TaskContext) -> None:
        await app.update_task_status(ctx.task_id, how, f"by hand: {how}", ctx.token)

    async with app:
        for how, end, code in (("success", "success", 0), ("failed", "dead", 1), ("cancelled", "cancelled", 2)):
            info = await wait_for(app, (await work.submit(how)).id, end)
            assert info.result == TaskResult(code, f"by hand: {how}")


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_the_code_of_a_status_set_by_hand(make: Make, url: str, run_in: str) -> None:
    app = make(url)

    @app.task
    async def on_loop(ctx: TaskContext) -> None:
        await app.update_task_status(ctx.task_id, "success", "some were left out", ctx.token, code=206)

    @app.task
    def in_thread(ctx: TaskContext) -> None:
        app.sync.update_task_status(ctx.task_id, "success", "some were left out", ctx.token, code=206)

    async with app:
        handle = await (on_loop if run_in == "loop" else in_thread).submit()
        info = await wait_for(app, handle.id, "success")
        assert info.result == TaskResult(206, "some were left out")


async def test_the_data_of_a_status_set_by_hand(make: Make, url: str) -> None:
    """So that a worker elsewhere can hand in what it has found."""
    app = make(url, payload_limit=1000)
    gate, tokens = Gate(), dict[str, str]()

    @app.task
    async def work(ctx: TaskContext) -> None:
        tokens[ctx.task_id] = ctx.token
        await gate.pass_through()

    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    async with app:
        handle = await work.submit()
        await eventually(lambda: tokens, 30)
        for data, told in (
            ("x" * 999, "data has 1,001 bytes, payload_limit is 1,000"),
            (deep, "^data: .*deep"),
            (object(), "^data: the json serializer cannot encode this value"),
            (float("nan"), "^data: "),
        ):
            with pytest.raises(PayloadError, match=told):
                await app.update_task_status(handle.id, "success", token=tokens[handle.id], data=data)
        for status, token in (("failed", tokens[handle.id]), ("cancelled", tokens[handle.id]), ("success", None)):
            with pytest.raises(ConfigError, match="data is the result of a running task that becomes a success"):
                await app.update_task_status(handle.id, status, token=token, data=5)
        assert await status_of(app, handle.id) is Status.RUNNING
        found = {"pages": [1, 2.5, None, "\u00e4"]}
        await app.update_task_status(handle.id, "completed", "from afar", tokens[handle.id], code=7, data=found)
        assert (await handle.info()).result == TaskResult(7, "from afar", found)
        got: object = await app.handle(handle.id).result(30)
        assert got == found
        gate.open()


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        ("failed", 7, "a task that becomes failed has a code of its own"),
        ("cancelled", 7, "a task that becomes cancelled has a code of its own"),
        ("success", 2**31, "code must be a whole number"),
        ("success", "7", "code must be a whole number"),
    ],
)
async def test_a_code_that_cannot_be_set(make: Make, status: str, code: Any, message: str) -> None:
    app = make("memory://")
    app.task("work")(lambda: None)
    handle = await app.submit("work")
    with pytest.raises(ConfigError, match=message):
        await app.update_task_status(handle.id, status, code=code)
