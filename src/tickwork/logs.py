"""Logging is a subscriber: facts become records of the standard logger `tickwork`, with the same keys every time.

No payload, result or context ever gets into a line. Values from outside are quoted, so that they cannot forge one.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from tickwork.events import Bus, Event, Fact

# What people know these moments by: level, text, and the keys that go with it.
LINES: dict[Fact, tuple[int, str, tuple[str, ...]]] = {
    Fact.TASK_CLAIMED: (logging.INFO, "Task started", ("task", "id", "attempt", "worker")),
    Fact.TASK_SUCCEEDED: (logging.INFO, "Task completed", ("task", "id", "attempt", "duration")),
    Fact.TASK_RETRYING: (logging.WARNING, "Task retry", ("task", "id", "attempt", "error", "duration")),
    Fact.TASK_DIED: (logging.ERROR, "Task failed", ("task", "id", "attempt", "error", "duration")),
    Fact.TASK_SNOOZED: (logging.INFO, "Task snoozed", ("task", "id")),
    Fact.TASK_RELEASED: (logging.INFO, "Task given back", ("task", "id")),
    Fact.TASK_CANCELLED: (logging.INFO, "Task cancelled", ("task", "id")),
    Fact.SCHEDULE_FIRED: (logging.DEBUG, "Schedule fired", ("schedule", "detail")),
    Fact.SCHEDULE_SKIPPED: (logging.DEBUG, "Task already running on another instance", ("schedule", "detail")),
    Fact.SCHEDULE_MISSED: (logging.WARNING, "Schedule missed", ("schedule", "detail")),
    Fact.SCHEDULE_STOPPED: (logging.ERROR, "Schedule stopped", ("schedule", "detail")),
}


def subscribe(bus: Bus, logger: logging.Logger) -> None:
    """Turn facts into log records. Facts whose level the logger does not want cost nothing."""

    def write(event: Event) -> None:
        level, text, keys = LINES[Fact(event.kind)]
        if logger.isEnabledFor(level):
            log(logger, level, text, **{key: _value(event, key) for key in keys})

    bus.subscribe(write, [fact for fact, (level, _, _) in LINES.items() if logger.isEnabledFor(level)])


def log(logger: logging.Logger, level: int, text: str, **fields: Any) -> None:
    """A record whose fields both formatters know; a plain handler shows them behind the text."""
    shown = " ".join(f"{key}={quoted(value)}" for key, value in fields.items())
    logger.log(level, "%s %s" if shown else "%s%s", text, shown, extra={"event": text, "fields": fields})


def _value(event: Event, key: str) -> Any:
    match key:
        case "task":
            return event.type
        case "id" | "schedule":
            return event.id
        case "worker":
            return event.worker_id
        case "attempt":
            return event.attempt
        case "duration":
            return f"{event.duration:.3f}s"
        case "error":
            return event.detail.partition("\n")[0]
        case _:
            return event.detail


def quoted(value: Any) -> str:
    text = str(value)
    if text and text.isprintable() and not any(char in text for char in ' "='):
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in json.dumps(text, ensure_ascii=False))


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


class KeyValueFormatter(logging.Formatter):
    """Lines for people."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        line = f"{moment} {record.levelname:<7} {_printable(record.getMessage())}"
        if record.name == "tickwork.task":
            line += "".join(f" {key}={quoted(getattr(record, key, ''))}" for key in ("task_type", "task_id", "attempt"))
        if not record.exc_info:
            return line
        # Indented, no line of an error's text can pass for one of the log.
        traceback = self.formatException(record.exc_info).splitlines()
        return "\n".join([line, *(f"    {_printable(part.expandtabs(4))}" for part in traceback)])


class JSONFormatter(logging.Formatter):
    """Lines for machines: one object a line, stable keys."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", None) or record.getMessage(),
        }
        entry.update(getattr(record, "fields", {}))
        for key in ("task_type", "task_id", "attempt"):
            if hasattr(record, key):
                entry[key] = getattr(record, key)
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        try:
            line = msgspec.json.encode(entry, enc_hook=str).decode()
        except UnicodeEncodeError:  # a lone surrogate, as file names may have
            line = ""
        return line if line and line.isprintable() else json.dumps(entry, default=str)


def set_up(level: str = "info", as_json: bool = False, stream: TextIO | None = None) -> None:
    """For programs that have no logging of their own, such as the `tickwork` command."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JSONFormatter() if as_json else KeyValueFormatter())
    logger = logging.getLogger("tickwork")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())
