"""What an API answers when it cannot do what was asked: a code for programs and a sentence for people."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tickwork.errors import (
    ConfigError,
    CronError,
    DuplicateTask,
    HandlerNotFound,
    LeaseLost,
    NotCancellable,
    NotReschedulable,
    NotRetryable,
    PayloadError,
    RateLimited,
    ScheduleNotFound,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TaskExists,
    TaskNotFound,
    TickworkError,
    WorkerNotFound,
)
from tickwork.store.contract import NotPermitted
from tickwork.texts import cut, shown

DETAIL_MAX = 1000  # characters


class Problem(Struct, frozen=True, omit_defaults=True):
    """An error in the form of RFC 9457. `code` is for programs and does not change; `detail` is a sentence."""

    status: int
    code: str
    title: str
    detail: str
    type: str = "about:blank"
    existing_id: str | None = None  # of the task or schedule that is there already
    retry_after: float | None = None  # seconds
    position: int | None = None  # in a filter, of the part that is wrong
    upstream: str | None = None  # the task that stands in the way


class Refused(TickworkError):
    """The control plane itself says no."""

    def __init__(self, status: int, code: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.problem = Problem(status, code, TITLES.get(status, "Error"), detail, **more)


TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    415: "Unsupported media type",
    421: "Wrong host",
    429: "Too many requests",
    431: "Headers too large",
    500: "Internal error",
    503: "Store not reachable",
    507: "Store full",
}

# The first that fits counts, so a class stands after those below it in the tree of errors.
_CODES: tuple[tuple[type[TickworkError], int, str], ...] = (
    (TaskNotFound, 404, "task_not_found"),
    (ScheduleNotFound, 404, "schedule_not_found"),
    (WorkerNotFound, 404, "worker_not_found"),
    (HandlerNotFound, 400, "handler_not_found"),
    (TaskExists, 409, "exists"),
    (DuplicateTask, 409, "duplicate"),
    (NotCancellable, 409, "not_cancellable"),
    (NotRetryable, 409, "not_retryable"),
    (NotReschedulable, 409, "not_reschedulable"),
    (LeaseLost, 409, "lease_lost"),
    (RateLimited, 429, "rate_limited"),
    (PayloadError, 400, "bad_payload"),
    (CronError, 400, "bad_cron"),
    (ConfigError, 400, "bad_value"),
    (NotPermitted, 503, "store_not_permitted"),
    (StoreFull, 507, "store_full"),
    (StoreUnavailable, 503, "store_unavailable"),
    (StoreError, 503, "store_error"),
    (TickworkError, 409, "refused"),
)


def problem_of(error: TickworkError) -> Problem:
    if isinstance(error, Refused):
        return error.problem
    status, code = next((status, code) for kind, status, code in _CODES if isinstance(error, kind))
    more: dict[str, Any] = {}
    if isinstance(error, DuplicateTask):
        more["existing_id"] = error.existing_id
    elif isinstance(error, TaskExists):
        more["existing_id"] = error.task_id
    elif isinstance(error, RateLimited):
        more["retry_after"] = error.retry_after
    elif isinstance(error, NotRetryable) and error.upstream:
        more["upstream"] = error.upstream
    return Problem(status, code, TITLES[status], cut(str(error), DETAIL_MAX), **more)


def refused_cursor(cursor: str) -> Refused:
    return Refused(400, "bad_cursor", f"cursor {shown(cursor)} is not one that an earlier page gave")


def not_found(what: str, name: str) -> Refused:
    return Refused(404, f"{what}_not_found", f"there is no {what} {shown(name)}")
