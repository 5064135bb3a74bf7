"""The store's clock, in milliseconds since the epoch. It alone decides what is due and which lease has run out; tests
may set it. Datetimes exist only at the edge."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


def to_millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


# A day within the calendar's ends, so that such a time can still be shown in any zone.
_FIRST, _LAST = to_millis(datetime(1, 1, 2, tzinfo=UTC)), to_millis(datetime(9999, 12, 30, tzinfo=UTC))


def to_datetime(at: int) -> datetime:
    """Times before and after the calendar become the first and the last that can be shown."""
    return datetime.fromtimestamp(min(max(at, _FIRST), _LAST) / 1000, UTC)


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
        self._now = start if isinstance(start, int) else to_millis(start)
        self._callbacks: list[Callable[[], None]] = []

    def now(self) -> int:
        return self._now

    def on_change(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def set(self, moment: datetime | int) -> None:
        self._now = moment if isinstance(moment, int) else to_millis(moment)
        for callback in self._callbacks:
            callback()

    def advance(self, by: float | timedelta) -> None:
        """Move on by seconds or a timedelta."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        self.set(self._now + round(seconds * 1000))
