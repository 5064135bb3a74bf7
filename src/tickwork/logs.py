"""Logging is a subscriber: facts become records of the standard logger `tickwork`, with the same keys every time."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from tickwork.model.facts import Fact
from tickwork.node.forking import PROCESS
from tickwork.observe.bus import Bus, Subscription
from tickwork.observe.loggers import Log, quoted
from tickwork.observe.observations import AlertChanged, ScheduleTicked, TaskEnded, TaskStarted
from tickwork.observe.tracebacks import headline, story

# What people know these moments by: level, text, and the keys that go with it.
LINES: dict[Fact, tuple[int, str, tuple[str, ...]]] = {
    Fact.TASK_CLAIMED: (logging.INFO, "Task started", ("task", "id", "attempt", "worker")),
    Fact.TASK_SUCCEEDED: (logging.INFO, "Task completed", ("task", "id", "attempt", "duration")),
    Fact.TASK_RETRYING: (logging.WARNING, "Task retry", ("task", "id", "attempt", "error", "duration", "retry_in")),
    Fact.TASK_DIED: (logging.ERROR, "Task failed", ("task", "id", "attempt", "error", "duration")),
    Fact.TASK_FAILED: (logging.ERROR, "Task failed", ("task", "id", "attempt", "error", "duration")),
    Fact.TASK_SNOOZED: (logging.INFO, "Task snoozed", ("task", "id")),
    Fact.TASK_RELEASED: (logging.INFO, "Task given back", ("task", "id")),
    Fact.TASK_CANCELLED: (logging.INFO, "Task cancelled", ("task", "id")),
    Fact.SCHEDULE_FIRED: (logging.DEBUG, "Schedule fired", ("schedule", "detail")),
    Fact.SCHEDULE_SKIPPED: (logging.DEBUG, "Task already running on another instance", ("task", "schedule", "detail")),
    Fact.SCHEDULE_MISSED: (logging.WARNING, "Schedule missed", ("schedule", "detail")),
    Fact.SCHEDULE_STOPPED: (logging.ERROR, "Schedule stopped", ("schedule", "detail")),
    Fact.ALERT_FIRED: (logging.WARNING, "Alert fired", ("alert", "detail")),
    Fact.ALERT_RESOLVED: (logging.INFO, "Alert resolved", ("alert", "detail")),
}


def subscribe(bus: Bus, log: Log) -> list[Subscription]:
    """Turn facts into log records. Facts whose level is not wanted at that moment cost next to nothing."""
    return [_subscribe(bus, log, fact) for fact in LINES]


def _subscribe(bus: Bus, log: Log, fact: Fact) -> Subscription:
    level, text, keys = LINES[fact]

    def wanted() -> bool:
        return log.logger.isEnabledFor(level)

    def write(what: TaskStarted | TaskEnded | ScheduleTicked | AlertChanged) -> None:
        error = what.error if isinstance(what, TaskEnded) and level >= logging.WARNING else None
        log.line(level, text, error, **{key: _value(what, key) for key in keys})

    return bus.subscribe(write, (fact,), wanted)


_FIELDS = {
    "task": "type",
    "schedule": "id",
    "alert": "id",
    "worker": "worker_id",
    "error": "detail",
}  # where a key is named otherwise


def _value(what: TaskStarted | TaskEnded | ScheduleTicked | AlertChanged, key: str) -> Any:
    value = getattr(what, _FIELDS.get(key, key))
    match key:
        case "duration":
            return round(value, 6)
        case "error":
            return value.partition("\n")[0]
        case _:
            return value


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _process_of(record: logging.LogRecord) -> str:
    """`process-2`, in the second process of `tickwork up --processes`."""
    name = record.processName or ""
    return name if name.startswith(PROCESS) else ""


class KeyValueFormatter(logging.Formatter):
    """Lines for people."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        ours = record.name.partition(".")[0] == "tickwork"
        name = "" if ours else f"{_printable(record.name)}: "
        process = f"{number} " if (number := _process_of(record)) else ""
        line = f"{moment} {record.levelname:<7} {process}{name}{_printable(record.getMessage())}"
        if record.name == "tickwork.task":
            line += "".join(f" {key}={quoted(getattr(record, key, ''))}" for key in ("task_type", "task_id", "attempt"))
        error = record.exc_info[1] if record.exc_info else None
        traceback = record.exc_text or ("" if error is None else story(error))  # that of a child process is a text
        if not traceback:
            return line
        # Indented, no line of an error's text can pass for one of the log.
        return "\n".join([line, *(f"    {_printable(part.expandtabs(4))}" for part in traceback.splitlines())])


class JSONFormatter(logging.Formatter):
    """Lines for machines: one object a line, stable keys."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", None) or record.getMessage(),
        }
        if process := _process_of(record):
            entry["process"] = process
        entry.update(getattr(record, "fields", {}))
        for key in ("task_type", "task_id", "attempt"):
            if hasattr(record, key):
                entry[key] = getattr(record, key)
        if record.exc_info and (error := record.exc_info[1]) is not None:
            entry.setdefault("error", headline(error))
            entry["traceback"] = record.exc_text or story(error)
        elif record.exc_text:  # of a child process
            entry["traceback"] = record.exc_text
        try:
            line = msgspec.json.encode(entry, enc_hook=str).decode()
        except UnicodeEncodeError:  # a lone surrogate, as file names may have
            line = ""
        return line if line and line.isprintable() else json.dumps(entry, default=str)


def formatter(as_json: bool) -> logging.Formatter:
    return JSONFormatter() if as_json else KeyValueFormatter()


class _Handler(logging.StreamHandler[TextIO]):
    """The one of `set_up`."""


def set_up(level: str = "info", as_json: bool = False, stream: TextIO | None = None) -> None:
    """For programs that have no logging of their own: all that they and Tickwork log goes to one stream.

    It is a handler of the root logger; other handlers stay. A second call replaces the first.
    """
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(formatter(as_json))
    root = logging.getLogger()
    root.handlers = [*(other for other in root.handlers if not isinstance(other, _Handler)), handler]
    for logger in (root, logging.getLogger("tickwork")):
        logger.setLevel(level.upper())
