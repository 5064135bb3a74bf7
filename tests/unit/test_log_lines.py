"""The lines of the log, word for word: people search for them, and programs read their keys. A change here is one that
users notice."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest

from tickwork.logs import LINES, formatter, subscribe
from tickwork.model.facts import Fact
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.observe.observations import AlertChanged, Observation, ScheduleTicked, TaskEnded, TaskStarted


def ended(fact: Fact, detail: str = "", retry_in: float | None = None) -> TaskEnded:
    return TaskEnded(fact, "t1", "report", "default", "node-1", 2, 2.1, detail, None, retry_in)


def ticked(fact: Fact, detail: str) -> ScheduleTicked:
    return ScheduleTicked(fact, "nightly", "report", "default", detail)


NO_SUCH = "ValueError: no such table\nTraceback (most recent call last): ..."
# What happens, how it is told to people, and to programs.
TOLD: dict[Fact, tuple[Observation, str, dict[str, Any]]] = {
    Fact.TASK_CLAIMED: (
        TaskStarted("t1", "report", "default", "node-1", 1, 0.5),
        "INFO    Task started task=report id=t1 attempt=1 worker=node-1",
        {"task": "report", "id": "t1", "attempt": 1, "worker": "node-1"},
    ),
    Fact.TASK_SUCCEEDED: (
        ended(Fact.TASK_SUCCEEDED),
        "INFO    Task completed task=report id=t1 attempt=2 duration=2.100s",
        {"task": "report", "id": "t1", "attempt": 2, "duration": 2.1},
    ),
    Fact.TASK_RETRYING: (
        ended(Fact.TASK_RETRYING, NO_SUCH, 5.0),
        'WARNING Task retry task=report id=t1 attempt=2 error="ValueError: no such table" duration=2.100s '
        "retry_in=5.000s",
        {"task": "report", "id": "t1", "attempt": 2, "error": "ValueError: no such table", "duration": 2.1,
         "retry_in": 5.0},
    ),
    Fact.TASK_DIED: (
        ended(Fact.TASK_DIED, NO_SUCH),
        'ERROR   Task failed task=report id=t1 attempt=2 error="ValueError: no such table" duration=2.100s',
        {"task": "report", "id": "t1", "attempt": 2, "error": "ValueError: no such table", "duration": 2.1},
    ),
    Fact.TASK_FAILED: (
        ended(Fact.TASK_FAILED, NO_SUCH),
        'ERROR   Task failed task=report id=t1 attempt=2 error="ValueError: no such table" duration=2.100s',
        {"task": "report", "id": "t1", "attempt": 2, "error": "ValueError: no such table", "duration": 2.1},
    ),
    Fact.TASK_SNOOZED: (
        ended(Fact.TASK_SNOOZED), "INFO    Task snoozed task=report id=t1", {"task": "report", "id": "t1"},
    ),
    Fact.TASK_RELEASED: (
        ended(Fact.TASK_RELEASED), "INFO    Task given back task=report id=t1", {"task": "report", "id": "t1"},
    ),
    Fact.TASK_CANCELLED: (
        ended(Fact.TASK_CANCELLED), "INFO    Task cancelled task=report id=t1", {"task": "report", "id": "t1"},
    ),
    Fact.SCHEDULE_FIRED: (
        ticked(Fact.SCHEDULE_FIRED, "nightly@1"),
        "DEBUG   Schedule fired schedule=nightly detail=nightly@1",
        {"schedule": "nightly", "detail": "nightly@1"},
    ),
    Fact.SCHEDULE_SKIPPED: (
        ticked(Fact.SCHEDULE_SKIPPED, "nightly@1"),
        "DEBUG   Task already running on another instance task=report schedule=nightly detail=nightly@1",
        {"task": "report", "schedule": "nightly", "detail": "nightly@1"},
    ),
    Fact.SCHEDULE_MISSED: (
        ticked(Fact.SCHEDULE_MISSED, "3 ticks"),
        'WARNING Schedule missed schedule=nightly detail="3 ticks"',
        {"schedule": "nightly", "detail": "3 ticks"},
    ),
    Fact.SCHEDULE_STOPPED: (
        ticked(Fact.SCHEDULE_STOPPED, "nightly@1 has failed"),
        'ERROR   Schedule stopped schedule=nightly detail="nightly@1 has failed"',
        {"schedule": "nightly", "detail": "nightly@1 has failed"},
    ),
    Fact.ALERT_FIRED: (
        AlertChanged(Fact.ALERT_FIRED, "no-workers", "workers is 0"),
        'WARNING Alert fired alert=no-workers detail="workers is 0"',
        {"alert": "no-workers", "detail": "workers is 0"},
    ),
    Fact.ALERT_RESOLVED: (
        AlertChanged(Fact.ALERT_RESOLVED, "no-workers", "workers is 2"),
        'INFO    Alert resolved alert=no-workers detail="workers is 2"',
        {"alert": "no-workers", "detail": "workers is 2"},
    ),
}  # fmt: skip


class Told:
    """A logger of its own, with one handler."""

    def __init__(self, as_json: bool) -> None:
        self.stream = io.StringIO()
        self.logger = logging.Logger("tickwork", logging.DEBUG)
        handler = logging.StreamHandler(self.stream)
        handler.setFormatter(formatter(as_json))
        self.logger.addHandler(handler)
        self.bus = Bus()
        subscribe(self.bus, Log(self.logger))

    def line(self) -> str:
        (line,) = self.stream.getvalue().splitlines()
        return line


every_line = pytest.mark.parametrize("fact", LINES, ids=lambda fact: fact.value)


@every_line
def test_a_line_for_people(fact: Fact) -> None:
    happened, text, _ = TOLD[fact]
    told = Told(as_json=False)
    told.bus.publish(fact, happened)
    day, time, rest = told.line().split(" ", 2)
    assert (len(day), len(time), rest) == (len("2030-01-31"), len("09:00:00.250"), text)


@every_line
def test_a_line_for_machines(fact: Fact) -> None:
    happened, text, keys = TOLD[fact]
    told = Told(as_json=True)
    told.bus.publish(fact, happened)
    entry = json.loads(told.line())
    assert entry.pop("time").endswith("+00:00")
    level = text.split()[0].lower()
    event = text[8:].partition(f" {next(iter(keys))}=")[0]
    assert entry == {"level": level, "logger": "tickwork", "event": event, **keys}
    assert list(entry) == ["level", "logger", "event", *keys], "in this order"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_line_of_a_handler_names_its_task(as_json: bool) -> None:
    told = Told(as_json)
    told.logger.name = "tickwork.task"
    told.logger.info("parcel %d", 3, extra={"task_id": "t1", "task_type": "ship it", "attempt": 1})
    line = told.line()
    if as_json:
        entry = json.loads(line)
        del entry["time"]
        assert entry == {
            "level": "info", "logger": "tickwork.task", "event": "parcel 3", "task_type": "ship it", "task_id": "t1",
            "attempt": 1,
        }  # fmt: skip
    else:
        assert line.endswith(' INFO    parcel 3 task_type="ship it" task_id=t1 attempt=1')
