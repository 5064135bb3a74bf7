"""The facts of one process on their way to listeners."""

from __future__ import annotations

import logging

import pytest

from tickwork.model.facts import Event, Fact
from tickwork.observe.bus import Bus, News

EVENT = Event(0, 1, Fact.TASK_DIED, "it")


def test_listeners_get_what_they_asked_for() -> None:
    bus, got = Bus(), list[News]()
    bus.subscribe(got.append, [Fact.TASK_DIED])
    error = ValueError("x")
    bus.publish(EVENT, error)
    bus.publish(Event(0, 1, Fact.TASK_DUE, "it"))
    assert got == [News(EVENT, error)]
    assert (bus.wants(Fact.TASK_DIED), bus.wants(Fact.TASK_DUE)) == (True, False)


def test_whether_a_fact_is_wanted_is_asked_each_time() -> None:
    bus, wanted = Bus(), list[Fact]()
    bus.subscribe(lambda news: None, wanted=lambda fact: fact in wanted)
    assert not bus.wants(Fact.TASK_DIED)
    wanted.append(Fact.TASK_DIED)
    assert bus.wants(Fact.TASK_DIED)


def test_a_listener_that_raises_harms_nobody_and_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    bus, got = Bus(), list[News]()

    def broken(news: News) -> None:
        raise RuntimeError("a bug")

    bus.subscribe(broken)
    bus.subscribe(got.append)
    for _ in range(3):
        bus.publish(EVENT)
    assert len(got) == 3
    assert [record.name for record in caplog.records] == ["tickwork.events"]


def test_a_report_that_cannot_be_logged_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    bus = Bus()

    def broken(news: News) -> None:
        raise RuntimeError("a bug")

    class Bug(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("logging fails too")

    logger, bug = logging.getLogger("tickwork.events"), Bug()
    logger.addFilter(bug)
    try:
        bus.subscribe(broken)
        bus.publish(EVENT)
    finally:
        logger.removeFilter(bug)
    assert "RuntimeError: a bug" in capfd.readouterr().err
