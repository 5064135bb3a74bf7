"""What happens in one process on its way to listeners."""

from __future__ import annotations

import logging

import pytest

from tickwork.model.facts import Fact
from tickwork.observe.bus import Bus


def test_listeners_get_what_they_asked_for() -> None:
    bus, got = Bus(), list[object]()
    bus.subscribe(got.append, [Fact.TASK_DIED])
    bus.publish(Fact.TASK_DIED, "this")
    bus.publish(Fact.TASK_DUE, "that")
    assert got == ["this"]
    assert (bus.wants(Fact.TASK_DIED), bus.wants(Fact.TASK_DUE)) == (True, False)


def test_whether_a_listener_wants_to_hear_is_asked_each_time() -> None:
    bus, wanted = Bus(), list[int]()
    bus.subscribe(lambda what: None, [Fact.TASK_DIED], wanted=lambda: bool(wanted))
    assert not bus.wants(Fact.TASK_DIED)
    wanted.append(1)
    assert bus.wants(Fact.TASK_DIED)


def test_a_listener_that_does_not_want_to_hear_is_not_called_for_the_sake_of_others() -> None:
    bus, got, others = Bus(), list[object](), list[object]()
    bus.subscribe(got.append, [Fact.TASK_DIED], wanted=lambda: False)
    bus.subscribe(others.append, [Fact.TASK_DIED])
    bus.publish(Fact.TASK_DIED, "this")
    assert (got, others) == ([], ["this"])


def test_a_listener_that_is_removed_hears_no_more() -> None:
    bus, got, others = Bus(), list[object](), list[object]()
    mine = bus.subscribe(got.append, [Fact.TASK_DIED, Fact.TASK_DUE])
    bus.subscribe(others.append, [Fact.TASK_DIED])
    mine.cancel()
    bus.publish(Fact.TASK_DIED, "this")
    assert (got, others, bus.wants(Fact.TASK_DUE)) == ([], ["this"], False)


def test_a_listener_that_raises_harms_nobody_and_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    bus, got = Bus(), list[object]()

    def broken(what: object) -> None:
        raise RuntimeError("a bug")

    bus.subscribe(broken, [Fact.TASK_DIED])
    bus.subscribe(got.append, [Fact.TASK_DIED])
    for _ in range(3):
        bus.publish(Fact.TASK_DIED, "this")
    assert len(got) == 3
    assert [record.name for record in caplog.records] == ["tickwork.events"]


def test_a_report_that_cannot_be_logged_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    bus = Bus()

    def broken(what: object) -> None:
        raise RuntimeError("a bug")

    class Bug(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("logging fails too")

    logger, bug = logging.getLogger("tickwork.events"), Bug()
    logger.addFilter(bug)
    try:
        bus.subscribe(broken, [Fact.TASK_DIED])
        bus.publish(Fact.TASK_DIED, "this")
    finally:
        logger.removeFilter(bug)
    assert "RuntimeError: a bug" in capfd.readouterr().err
