"""A hint is waited for again and again, and a wait costs little."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tickwork.store.hints import TOLERANCE, Hint, Hints


@pytest.fixture
async def hint() -> Hint:
    return Hints().add("it")


async def raised(hint: Hint, timeout: float) -> bool:
    asyncio.get_running_loop().call_soon(hint.set)
    return await hint.wait(timeout)


async def test_waits_that_are_over_early_share_a_timer(hint: Hint, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timers = asyncio.get_running_loop(), list[float]()
    call_at = loop.call_at

    def counted(when: float, *args: Any, **options: Any) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(when, *args, **options)

    monkeypatch.setattr(loop, "call_at", counted)
    for _ in range(100):
        assert await raised(hint, 3600)
    assert len(timers) == 1
    assert await raised(hint, 1800)
    assert len(timers) == 2, "an earlier end needs an earlier timer"


async def test_a_wait_ends_in_time_behind_a_longer_one(hint: Hint) -> None:
    assert await raised(hint, 3600)
    assert await asyncio.wait_for(hint.wait(0.01), 60) is False


async def test_a_timer_of_an_earlier_wait_ends_no_later_one(hint: Hint) -> None:
    assert await raised(hint, 0.05)
    began = time.monotonic()
    assert await hint.wait(0.2) is False
    assert time.monotonic() - began >= 0.2 - 2 * TOLERANCE


async def test_a_timer_that_fires_while_nobody_waits_does_no_harm(hint: Hint) -> None:
    assert await raised(hint, 0.01)
    await asyncio.sleep(0.05)
    assert await hint.wait(0.01) is False
    assert await raised(hint, 3600)


async def test_a_hint_that_is_given_back_leaves_no_timer() -> None:
    loop: Any = asyncio.get_running_loop()
    hints = Hints()
    with hints.add("it") as hint:
        assert await raised(hint, 3600)
    assert not any(not timer.cancelled() and timer.when() > loop.time() + 1000 for timer in loop._scheduled)
    assert not hints
