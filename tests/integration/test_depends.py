"""Dependencies: parameters of a handler that are made for each run."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest

from tests.integration import child_depends
from tests.integration.apps import Make
from tickwork import Abort, ConfigError, Depends, PayloadError, Retry, Scheduler, TaskContext, TaskFailed


class Pool:
    """Could be entered, and must not be: it is only handed on."""

    def __init__(self) -> None:
        self.closed = False

    async def __aenter__(self) -> Pool:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed = True


def get_pool(ctx: TaskContext) -> Pool:
    pool: Pool = ctx.state["pool"]
    return pool


async def test_dependencies_are_given_and_are_no_payload(make: Make, url: str) -> None:
    pool = Pool()

    @asynccontextmanager
    async def lifespan(app: Scheduler) -> AsyncIterator[dict[str, Pool]]:
        yield {"pool": pool}

    async def now() -> str:
        await asyncio.sleep(0)
        return "now"

    app = make(url, lifespan=lifespan)

    @app.task
    async def on_loop(number: int, pool: Annotated[Pool, Depends(get_pool)], when: str = Depends(now)) -> Any:
        return [number, pool is seen, when]

    @app.task
    def in_thread(number: int, pool: Annotated[Pool, Depends(get_pool)]) -> Any:
        return [number, pool is seen, threading.current_thread() is threading.main_thread()]

    @app.task(run_in="thread")
    async def on_its_own_loop(ctx: TaskContext, number: int, pool: Pool = Depends(get_pool)) -> Any:
        return [number, pool is seen, ctx.type]

    seen = pool
    async with app:
        handles = [
            await app.submit("on_loop", 1),
            await app.submit("in_thread", {"number": 2}),
            await on_its_own_loop.submit(3),
        ]
        results = [await handle.result(10) for handle in handles]
        assert (await handles[0].info()).payload == {"number": 1}
        with pytest.raises(PayloadError, match="argument 'pool' is unknown"):
            await on_its_own_loop.submit(4, pool=pool)
    assert results == [[1, True, "now"], [2, True, False], [3, True, "on_its_own_loop"]]
    assert not pool.closed


async def test_what_is_opened_for_a_run_is_left_and_told_how_it_ended(make: Make) -> None:
    diary: list[str] = []

    @asynccontextmanager
    async def transaction(ctx: TaskContext) -> AsyncIterator[str]:
        diary.append("begin")
        try:
            yield "transaction"
        except BaseException as error:
            diary.append(f"roll back: {type(error).__name__}")
            raise
        diary.append("commit")

    async def session() -> AsyncIterator[str]:
        diary.append("open")
        try:
            yield "session"
        finally:
            diary.append("close")

    app = make("memory://", max_retry=0)

    @app.task
    async def work(how: str, outer: str = Depends(session), inner: str = Depends(transaction)) -> Any:
        match how:
            case "fail":
                raise LookupError("a defect")
            case "hang":
                await asyncio.Event().wait()
            case "unstorable":
                return object()
        return [outer, inner]

    async with app:
        for how, ending in (
            ("succeed", "commit"),
            ("fail", "roll back: LookupError"),
            ("hang", "roll back: CancelledError"),
            ("unstorable", "roll back: Abort"),
        ):
            diary.clear()
            handle = await work.options(timeout=0.1 if how == "hang" else 10).submit(how)
            if how == "succeed":
                assert await handle.result(10) == ["session", "transaction"]
            else:
                with pytest.raises(TaskFailed):
                    await handle.result(10)
            assert diary == ["open", "begin", ending, "close"]


async def test_an_error_of_a_dependency_fails_the_attempt(make: Make) -> None:
    errors: list[Exception] = [Abort("not any more"), Retry(0.01), ConnectionError("nobody answers")]
    left: list[str] = []

    async def first() -> AsyncIterator[int]:
        yield 1
        left.append("never reached: the generator is told of the error")

    def second() -> int:
        raise errors.pop()

    app = make("memory://", max_retry=5)

    @app.task
    async def work(a: int = Depends(first), b: int = Depends(second)) -> None: ...

    async with app:
        handle = await work.submit()
        with pytest.raises(TaskFailed, match="not any more"):
            await handle.result(10)
        assert (await handle.info()).attempt == 3
    assert left == []


async def test_dependencies_of_handlers_in_processes() -> None:
    async with child_depends.app as app:
        first = await (await app.submit("blocking", 1)).result(20)
        second = await (await app.submit("waiting", 2)).result(20)
        third = await (await app.submit("blocking", 3)).result(20)
    pid = first[2]
    assert pid != os.getpid()
    assert first == [1, "connection of blocking", pid, []]
    assert second == [2, "connection of waiting", pid, ["blocking"]]
    assert third == [3, "connection of blocking", pid, ["blocking", "waiting"]]


async def test_a_function_with_dependencies_may_be_called_directly(make: Make) -> None:
    app = make("memory://")

    @app.task
    async def work(number: int, pool: Pool = Depends(get_pool)) -> bool:
        return pool.closed

    assert await work(1, pool=Pool()) is False


def test_what_cannot_provide_is_refused_where_it_is_said() -> None:
    def of_two(ctx: TaskContext, pool: Pool) -> None: ...

    with pytest.raises(ConfigError, match="may have one parameter, for the context; it has ctx, pool"):
        Depends(of_two)
    with pytest.raises(ConfigError, match="Depends takes a function that makes the value"):
        Depends("pool")  # type: ignore[call-overload]
    app = Scheduler("memory://")

    async def positional(pool: Pool = Depends(get_pool), /) -> None: ...

    with pytest.raises(ConfigError, match="positional-only parameter 'pool' cannot be a dependency"):
        app.task(positional)
