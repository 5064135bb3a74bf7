"""Errors that cross a border: of a process, or of a queue of futures."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import tickwork
from tickwork import (
    Abort,
    DuplicateTask,
    ExecutorError,
    LeaseLost,
    NotCancellable,
    PayloadError,
    RateLimited,
    ResultTimeout,
    Retry,
    ScheduleNotFound,
    Snooze,
    StoreUnavailable,
    TaskExists,
    TaskFailed,
    TaskNotFound,
    TaskResult,
    WorkerNotFound,
)

ERRORS: list[BaseException] = [
    DuplicateTask("key", "id-1"),
    TaskExists("id-1"),
    TaskExists("id-1", "schedule"),
    TaskNotFound("id-1"),
    ScheduleNotFound("s"),
    WorkerNotFound("w"),
    RateLimited(1.5),
    TaskFailed("it failed", TaskResult(1, "no")),
    ResultTimeout("late", TaskResult(1, "no")),
    ExecutorError("it failed", report="there"),
    PayloadError("bad"),
    NotCancellable("no"),
    LeaseLost("gone"),
    StoreUnavailable("away"),
    Retry(5, "later"),
    Abort("never"),
    Snooze(datetime(2030, 1, 1, tzinfo=UTC)),
]


def through_pickle(error: BaseException) -> Any:
    return pickle.loads(pickle.dumps(error))  # noqa: S301 - our own


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("travel", [copy.copy, copy.deepcopy, through_pickle])
def test_an_error_arrives_as_it_was(error: BaseException, travel: Callable[[Any], Any]) -> None:
    error.add_note("on the way")
    found = travel(error)
    assert type(found) is type(error)
    assert (str(found), found.args, vars(found)) == (str(error), error.args, vars(error))


def test_every_kind_of_error_is_tried() -> None:
    own = {
        name
        for name in tickwork.__all__
        if isinstance(found := getattr(tickwork, name), type)
        and issubclass(found, Exception)
        and "__init__" in vars(found)
        and name != "ResultError"
    }
    assert own <= {type(error).__name__ for error in ERRORS}
