"""Handlers with retry rules that run in child processes, which find them by import."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tickwork import Retry, Scheduler

app = Scheduler("memory://")


class Declined(Exception):
    """The card is no good."""


class Expired(Declined):
    pass


class Busy(ConnectionError):
    """Worth another attempt, after as many seconds as it says."""

    def __init__(self, after: float) -> None:
        super().__init__(f"busy for {after:g} s")
        self.after = after


ERRORS: dict[str, Callable[[], BaseException]] = {
    "retried": lambda: ConnectionError("no answer"),
    "retried, by a subclass": lambda: ConnectionRefusedError("no answer"),
    "not named": lambda: ValueError("no amount"),
    "aborted": lambda: Declined("no money"),
    "aborted, by a subclass": lambda: Expired("last year"),
    "a group of those retried": lambda: ExceptionGroup("two", [ConnectionError("a"), ConnectionError("b")]),
    "a group with one not named": lambda: ExceptionGroup("two", [ConnectionError("a"), ValueError("b")]),
    "a group with one aborted": lambda: ExceptionGroup("two", [ConnectionError("a"), ExceptionGroup("", [Expired()])]),
    "not an Exception": lambda: SystemExit(3),
    "the handler asks for a retry": lambda: Retry(0.01),
    "busy": lambda: Busy(77),
    "cannot be helped": lambda: ConnectionAbortedError("gone"),
    "nonsense": lambda: ConnectionResetError("reset"),
    "broken": lambda: BrokenPipeError("pipe"),
    "exit": lambda: TimeoutError("exit"),
}
RULES: dict[str, Any] = {"retry_on": (ConnectionError,), "abort_on": Declined, "max_retry": 2}


def wait(retry: int, error: BaseException) -> Any:
    """A retry function that may answer anything."""
    match error:
        case Busy(after=after):
            return after + retry
        case ConnectionAbortedError():
            return None
        case ConnectionResetError():
            return "soon"
        case BrokenPipeError():
            raise LookupError("no such pipe")
        case TimeoutError():
            raise SystemExit("time is up")
        case _:
            return timedelta(seconds=33)


@app.task(run_in="process", **RULES)
def charge(how: str) -> None:
    if how == "the process dies":
        os._exit(9)
    if how == "timeout":
        time.sleep(60)
    raise ERRORS[how]()


@app.task(run_in="process", retry=wait, max_retry=2)
def deliver(how: str) -> None:
    raise ERRORS[how]()
