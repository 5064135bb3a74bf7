"""What is done to many tasks at once: which of them are meant, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from tickwork.model.tasks import Status


class TaskFilter(Struct, frozen=True, kw_only=True):
    """Which tasks are meant: those that fit everything that is said here.

    `older_than` goes by the time of the submit: seconds or a timedelta mean tasks that were submitted at least that
    long ago, an aware datetime those that were submitted before it. A filter that says nothing is refused, so that a
    slip does not reach all tasks; `TaskFilter(all=True)` means all.
    """

    type: str | None = None
    status: Status | str | None = None
    queue: str | None = None
    key: str | None = None
    tags: Mapping[str, str] | None = None
    schedule_id: str | None = None
    older_than: float | timedelta | datetime | None = None
    all: bool = False


class Refused(Struct, frozen=True):
    """Tasks to which it could not be done, all for one reason: how many, the ids of the first few, and what a call for
    the first of them alone would have said."""

    count: int
    examples: tuple[str, ...]
    why: str


class BulkResult(Struct, frozen=True):
    """What became of the tasks that a filter matched.

    `done` and the counts in `refused` add up to `matched`. A reason in `refused` is `running` (a cancel without force),
    `upstream` (a retry of a task that depends on one that cannot let it run) or `damaged` (nothing is left that could
    run again). `brought_back` counts tasks that came back with retried ones. After a dry run nothing was changed, and
    `done` counts what would have been tried.
    """

    matched: int = 0
    done: int = 0
    refused: dict[str, Refused] = {}
    brought_back: int = 0
    dry_run: bool = False
