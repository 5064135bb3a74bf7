"""Waiting for results: how long, how often a waiter looks, and what it gets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.integration.apps import Make, store_of
from tickwork import ConfigError, ResultTimeout, Scheduler, TaskCancelled
from tickwork.store.hints import Hint


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
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


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
