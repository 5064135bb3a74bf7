"""The loggers that Tickwork writes to: those below `tickwork`, or the one that a scheduler was given.

No payload, result or context ever gets into a line. Values from outside are quoted, so that they cannot forge one.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any

from tickwork.observe.tracebacks import story, traceback_of_users

METHODS = ("debug", "info", "warning", "error")  # of a logger that is not one of Python's


class Log(logging.LoggerAdapter[logging.Logger]):
    """A logger whose use never raises: a bug in a filter or a handler is told once, on standard error."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger)
        self._broken = False

    @classmethod
    def of(cls, logger: Any, name: str = "") -> Log:
        """For one part of Tickwork; `logger` is what the scheduler was given, if anything."""
        root = as_logger(logger)
        return cls(root.getChild(name) if name else root)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, kwargs

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        try:
            super().log(level, msg, *args, **kwargs)
        except Exception as broken:
            self._report(broken)

    def line(self, level: int, text: str, error: BaseException | None = None, /, **fields: Any) -> None:
        """A record whose fields the formatters of `logs` know; a plain handler shows them behind the text."""
        try:
            if self.isEnabledFor(level):
                self._line(level, text, error, fields)
        except Exception as broken:
            self._report(broken)

    def _line(self, level: int, text: str, error: BaseException | None, fields: dict[str, Any]) -> None:
        shown = " ".join(f"{key}={_shown(value)}" for key, value in fields.items())
        message, extra = "%s %s" if shown else "%s%s", {"event": text, "fields": fields}
        exc_info = None if error is None else (type(error), error, traceback_of_users(error))
        logger = self.logger
        record = logger.makeRecord(logger.name, level, __file__, 0, message, (text, shown), exc_info, "line", extra)
        if error is not None:  # every formatter shows this; the error's own text might hold what cannot be written
            record.exc_text = story(error)
        logger.handle(record)

    def _report(self, broken: Exception) -> None:
        if not self._broken:
            self._broken = True
            print(f"tickwork: logger {self.logger.name} failed; this is told once", file=sys.stderr)
            traceback.print_exception(broken, file=sys.stderr)


def as_logger(given: Any) -> logging.Logger:
    """One of Python's own, whatever was given."""
    if given is None:
        return logging.getLogger("tickwork")
    return given if isinstance(given, logging.Logger) else _Detour(given)


def is_logger(given: object) -> bool:
    return all(callable(getattr(given, method, None)) for method in METHODS)


class _Detour(logging.Logger):
    """Stands apart from the others, and hands all lines to a logger that is not one of Python's."""

    def __init__(self, target: Any) -> None:
        super().__init__("tickwork", logging.INFO)
        self.addHandler(_Forward(target))

    def getChild(self, suffix: str) -> _Detour:  # noqa: N802
        return self


class _Forward(logging.Handler):
    def __init__(self, target: Any) -> None:
        super().__init__()
        self._target = target

    def emit(self, record: logging.LogRecord) -> None:
        method = record.levelname.lower() if record.levelname.lower() in METHODS else "error"
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            getattr(self._target, method)(record.getMessage())
        elif callable(opt := getattr(self._target, "opt", None)):  # loguru takes exceptions in a way of its own
            getattr(opt(exception=error), method)(record.getMessage())
        else:
            getattr(self._target, method)(record.getMessage(), exc_info=error)


def quoted(value: Any) -> str:
    text = str(value)
    if text and text.isprintable() and not any(char in text for char in ' "='):
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in json.dumps(text, ensure_ascii=False))


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]


def _shown(value: Any) -> str:
    return f"{value:.3f}s" if isinstance(value, float) else quoted(value)  # numbers with a fraction are seconds
