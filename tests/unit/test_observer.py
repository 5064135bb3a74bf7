"""Observers can neither fail nor delay what they observe."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tickwork.errors import ConfigError
from tickwork.observe import LoopLagged, Observer, StoreCalled, observer
from tickwork.observe.bus import Bus
from tickwork.observe.observer import Observers


def lag(seconds: float) -> LoopLagged:
    return LoopLagged(seconds)


async def test_what_happens_is_delivered_in_order_by_one_other_thread() -> None:
    bus, got, threads = Bus(), list[float](), set[int]()

    def listen(seen: LoopLagged) -> None:
        threads.add(threading.get_ident())
        got.append(seen.seconds)

    Observer(bus, listen, (LoopLagged,))
    for number in range(1000):
        bus.publish(LoopLagged, lag(number))
    await wait_until(lambda: len(got) == 1000, what="all is delivered")
    assert got == list(range(1000))
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


async def test_a_slow_listener_holds_up_nobody_and_what_it_misses_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "WAITING_MAX", 10)
    bus, let_go, got, others = Bus(), threading.Event(), list[float](), list[float]()

    def slow(seen: LoopLagged) -> None:
        let_go.wait(10)
        got.append(seen.seconds)

    stuck = Observer(bus, slow, (LoopLagged,))
    Observer(bus, lambda seen: others.append(seen.seconds), (LoopLagged,))
    bus.publish(LoopLagged, lag(0))
    await wait_until(lambda: others == [0] and not stuck._waiting, what="the slow one works on the first")
    for number in range(1, 31):
        bus.publish(LoopLagged, lag(number))
        await wait_until(lambda number=number: others[-1] == number, what="the other one has heard")  # type: ignore[misc]
    assert stuck.dropped == 20
    let_go.set()
    await wait_until(lambda: len(got) == 11, what="the slow one catches up")
    assert got == list(range(11))


async def test_an_error_is_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    bus = Bus()

    def broken(seen: LoopLagged) -> None:
        raise SystemExit if seen.seconds == 1 else ValueError("a bug")

    observing = Observer(bus, broken, (LoopLagged,))
    for number in range(3):
        bus.publish(LoopLagged, lag(number))
    await wait_until(lambda: observing.errors == 3, what="it has failed on all")
    assert [record.message for record in caplog.records] == [
        "an observer failed; further errors of it are only counted"
    ]


async def test_only_the_kinds_that_were_asked_for() -> None:
    bus, got = Bus(), list[Any]()
    observing = Observer(bus, got.append, (StoreCalled,))
    assert (bus.wants(StoreCalled), bus.wants(LoopLagged)) == (True, False)
    bus.publish(LoopLagged, lag(1))
    bus.publish(StoreCalled, StoreCalled("tasks", "claim", 0.5))
    observing.end()
    assert got == [StoreCalled("tasks", "claim", 0.5)]
    observing.close()
    assert not bus.wants(StoreCalled)


async def test_the_end_delivers_what_waits_and_ends_the_thread() -> None:
    bus, got = Bus(), list[float]()
    observers = Observers(bus)
    observing = observers.add(lambda seen: got.append(seen.seconds), (LoopLagged,))
    for life in range(3):
        for number in range(100):
            bus.publish(LoopLagged, lag(number))
        thread = observing._thread
        assert thread is not None
        await observers.end()
        assert (len(got), thread.is_alive()) == (100 * (life + 1), False)


async def test_the_end_does_not_wait_for_a_stuck_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "END_TIME", 0.05)
    bus, let_go, got = Bus(), threading.Event(), list[float]()

    def stuck(seen: LoopLagged) -> None:
        let_go.wait(10)
        got.append(seen.seconds)

    observers = Observers(bus)
    observers.add(stuck, (LoopLagged,))
    bus.publish(LoopLagged, lag(0))
    await observers.end()
    bus.publish(LoopLagged, lag(1))
    let_go.set()
    await wait_until(lambda: got == [0, 1], what="both are delivered, one after the other")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_the_child_of_a_fork_delivers_its_own() -> None:
    bus, got = Bus(), list[float]()
    observers = Observers(bus)
    observing = observers.add(lambda seen: got.append(seen.seconds), (LoopLagged,))
    bus.publish(LoopLagged, lag(1))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        observers.after_fork()
        got.clear()
        bus.publish(LoopLagged, lag(2))
        observing.end()
        os.write(writer, repr(got).encode())
        os._exit(0)
    os.waitpid(child, 0)
    observing.end()
    assert (os.read(reader, 100), got) == (b"[2]", [1])
    os.close(reader)
    os.close(writer)


def test_what_cannot_observe_or_be_observed_is_refused() -> None:
    observers = Observers(Bus())

    async def listen(seen: object) -> None: ...

    for wrong in (listen, 5):
        with pytest.raises(ConfigError, match="an observer is a plain function of one observation, not"):
            observers.add(wrong, ())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"'task' cannot be observed; known are TaskSubmitted, .*, ServiceFailed of"):
        observers.add(print, ("task",))  # type: ignore[arg-type]
