"""A schedule: when its task is to run again, and what was made of its last ticks."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from tickwork.model.tasks import UNKNOWN, Spec

UNDECLARED = "no running process declares it"  # why a schedule has stopped that was declared in code


class Overlap(StrEnum):
    """When a tick comes and the last run has not ended."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"


class Misfire(StrEnum):
    """When ticks were missed because no node was up."""

    LATEST = "latest"  # one run for all that were missed
    SKIP = "skip"
    ALL = "all"  # each of them, up to a cap


class Schedule(Struct, frozen=True, kw_only=True):
    """A recurring definition. Its runs are tasks named `<schedule>@<fire ms>`: a tick exists once, whoever fires it."""

    id: str
    name: str = ""
    cron: str | None = None  # none: triggered by hand only
    timezone: str = "UTC"
    dst: str = "once"
    task: Spec
    enabled: bool = True
    overlap: Overlap = Overlap.SKIP
    misfire: Misfire = Misfire.LATEST
    misfire_grace: int = 3_600_000
    misfire_cap: int = 100
    on_exhausted: Literal["stop", "continue"] = "continue"
    next_at: int | None = None
    created_at: int = 0
    updated_at: int = 0
    last_fire_at: int | None = None
    last_task_id: str | None = None
    last_status: str = ""
    stopped: str = ""  # why it stopped by itself
    paused: bool = False  # by hand; `enabled` is what its definition says
    declared: bool = False  # in code: it stops when no process declares it any more

    @property
    def active(self) -> bool:
        return self.enabled and not self.paused and not self.stopped

    @property
    def unreadable(self) -> bool:
        """It stands for one that this version cannot read; `stopped` says why."""
        return self.task.type == UNKNOWN
