"""The store's clock. It alone decides what is due and which lease has run out; tests may set it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back when time was moved by hand, so that sleepers look again."""


class SystemClock:
    """The host's clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def on_change(self, callback: Callable[[], None]) -> None:
        """It is never moved by hand."""


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: datetime | int = 1_700_000_000_000) -> None:
        self._now = start if isinstance(start, int) else round(start.timestamp() * 1000)
        self._callbacks: list[Callable[[], None]] = []

    def now(self) -> int:
        return self._now

    def on_change(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def set(self, moment: datetime | int) -> None:
        self._now = moment if isinstance(moment, int) else round(moment.timestamp() * 1000)
        for callback in self._callbacks:
            callback()

    def advance(self, by: float | timedelta) -> None:
        """Move on by seconds or a timedelta."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        self.set(self._now + round(seconds * 1000))
