"""One run of a task on this worker."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

from tickwork.handlers.context import TaskContext
from tickwork.store.contract import Grant

Reason = Literal["timeout", "cancel", "lost", "fenced", "release"]


class Run:
    """A claimed task and the coroutine that runs it."""

    __slots__ = ("context", "ended", "grant", "reason", "started", "stoppable", "task", "timer")

    def __init__(self, grant: Grant, stoppable: bool) -> None:
        self.grant = grant
        self.stoppable = stoppable  # False for a thread, which may go on although it was asked to stop
        self.started = time.monotonic()
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.context: TaskContext | None = None
        self.reason: Reason | None = None
        self.ended = False
