"""What a process says of itself: CPU, memory, and the lag of its event loop."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tickwork.node import loop_watch, vitals
from tickwork.node.loop_watch import LoopWatch
from tickwork.node.vitals import Pulse, Vitals, resident_memory
from tickwork.observe.loggers import Log


class Times:
    """Clocks that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passed = self.used = 100.0
        times = SimpleNamespace(monotonic=lambda: self.passed, process_time=lambda: self.used)
        monkeypatch.setattr(vitals, "time", times)
        monkeypatch.setattr(vitals, "resident_memory", lambda: 1000)


def test_the_cpu_share_is_that_of_the_last_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    times, lags = Times(monkeypatch), [0.25, 0.5]
    pulse = Pulse(lambda: lags.pop(0))
    assert pulse.read() == Vitals(0.0, 1000, 0.0)
    times.passed, times.used = 110.0, 115.0
    assert pulse.read() == Vitals(1.5, 1000, 0.25)
    times.passed, times.used = 114.9, 199.0
    assert pulse.read() == Vitals(1.5, 1000, 0.25), "over so short a time it would jump about"
    times.passed, times.used = 120.0, 117.5
    assert pulse.read() == Vitals(0.25, 1000, 0.5)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="only Linux tells")
def test_memory_is_that_of_this_process() -> None:
    before = resident_memory()
    held = bytearray(os.urandom(1)) * 64_000_000
    assert 48_000_000 < resident_memory() - before < 256_000_000
    assert len(held) == 64_000_000


def test_memory_is_unknown_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*args: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", missing)
    assert resident_memory() == 0


async def test_the_lag_of_a_loop_is_the_longest_that_it_took_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(loop_watch, "time", SimpleNamespace(monotonic=lambda: now))
    watch = LoopWatch([cast("Any", SimpleNamespace(running={}))], Log.of(None, "test"))
    assert watch.take_lag() == 0
    watch.ask()
    now = 103.0
    assert watch.take_lag() == 3, "it has not answered yet"
    watch.ask()
    now = 104.0
    await asyncio.sleep(0)  # now it does, to both
    assert watch.take_lag() == 4
    assert watch.take_lag() == 0
