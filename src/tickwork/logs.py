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

from tickwork.events import Bus, Fact, News
from tickwork.tracebacks import headline, story, traceback_of_users

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
}


def subscribe(bus: Bus, logger: logging.Logger) -> None:
    """Turn facts into log records. Facts whose level the logger does not want at that moment cost next to nothing."""

    def wanted(fact: Fact) -> bool:
        return logger.isEnabledFor(LINES[fact][0])

    def write(news: News) -> None:
        level, text, keys = LINES[Fact(news.event.kind)]
        error = news.error if level >= logging.WARNING else None
        log(logger, level, text, error, **{key: _value(news, key) for key in keys})

    bus.subscribe(write, tuple(LINES), wanted)


def log(logger: logging.Logger, level: int, text: str, error: BaseException | None = None, /, **fields: Any) -> None:
    """A record whose fields both formatters know; a plain handler shows them behind the text."""
    shown = " ".join(f"{key}={_shown(value)}" for key, value in fields.items())
    message, extra = "%s %s" if shown else "%s%s", {"event": text, "fields": fields}
    if error is None:
        logger.log(level, message, text, shown, extra=extra)
    elif logger.isEnabledFor(level):
        exc_info = (type(error), error, traceback_of_users(error))
        record = logger.makeRecord(logger.name, level, __file__, 0, message, (text, shown), exc_info, "log", extra)
        record.exc_text = story(error)  # every formatter shows this; its own text might hold what cannot be written
        logger.handle(record)


def _shown(value: Any) -> str:
    return f"{value:.3f}s" if isinstance(value, float) else quoted(value)  # numbers with a fraction are seconds


def _value(news: News, key: str) -> Any:
    event = news.event
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
            return round(event.duration, 6)
        case "retry_in":
            return news.retry_in
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
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return line
        # Indented, no line of an error's text can pass for one of the log.
        traceback = (record.exc_text or story(error)).splitlines()
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
        if record.exc_info and (error := record.exc_info[1]) is not None:
            entry.setdefault("error", headline(error))
            entry["traceback"] = record.exc_text or story(error)
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
