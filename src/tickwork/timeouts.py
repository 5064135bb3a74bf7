"""Time limits for answers that may have come already when the event loop gets to read them.

A loop that is held up (by a handler that blocks, a large JSON document, a busy processor) finds an answer and the end
of its time limit in the same pass. A timer of asyncio is called in that pass, before whoever waits has been given the
answer, so that `asyncio.timeout` blames a peer that has answered at once. The limits here let the loop make a few more
passes first, which costs something only where the time is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType

# Passes of the loop between the end of the time and its consequence. An answer takes one to be read, and one more for
# each task or future between the socket and the caller; `gather` takes two.
PASSES = 12
FEW = 4  # passes that are made in any case; further ones only while they do not take long
GRACE = 0.25  # seconds for these, or as many as the loop was late
NOTABLE = 0.1  # seconds by which a loop must have been late to be blamed


def _may_pass(left: int, due: float, late: float) -> bool:
    """Whether there is another pass before the consequence."""
    return left > PASSES - FEW or (left > 0 and time.monotonic() < due + late + max(late, GRACE))


class TimeLimit:
    """Like `asyncio.timeout`, for a block that waits for an answer. `with`, though the block awaits: so it costs less.

    With `makes_up`, a block that needs several answers has as much time more as the loop was late at the end, once.
    """

    __slots__ = (
        "_cancelling", "_due", "_handle", "_is_over", "_loop", "_makes_up", "_passes", "_seconds", "_task", "late",
    )  # fmt: skip

    def __init__(self, seconds: float, *, makes_up: bool = False) -> None:
        self._seconds = seconds
        self._makes_up = makes_up
        self._passes = PASSES
        self._is_over = False
        self.late = 0.0  # seconds by which the loop was late when the time was over

    def __enter__(self) -> TimeLimit:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a time limit needs a task that it can cancel")
        self._task = task
        self._cancelling = task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._due = time.monotonic() + self._seconds
        self._handle: asyncio.Handle = self._loop.call_later(self._seconds, self._on_due)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_over:
            self._handle.cancel()
        elif self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise self._error() from self._cause(error)

    @property
    def left(self) -> float:
        return self._due - time.monotonic()

    @property
    def expired(self) -> bool:
        """Whether the block was cancelled because of this."""
        return self._is_over

    def _error(self) -> Exception:
        return TimeoutError()

    def _cause(self, error: BaseException | None) -> BaseException | None:
        return error

    def _on_due(self) -> None:
        if self._passes == PASSES:
            self.late = max(time.monotonic() - self._due, 0.0)
        if _may_pass(self._passes, self._due, self.late):
            self._passes -= 1
            # Not call_soon, which asyncio calls before what the next pass reads. On uvloop it is the same as this.
            self._handle = self._loop.call_later(0, self._on_due)
        elif self._makes_up and self.late >= NOTABLE:
            more = min(self.late, self._seconds)
            self._makes_up, self._passes, self._due = False, PASSES - 1, time.monotonic() + more
            self._handle = self._loop.call_later(more, self._on_due)
        else:
            self._is_over = True
            self._task.cancel()


class DueCall:
    """A call after some seconds, or a few passes of the loop later: what has arrived until then comes first."""

    __slots__ = ("_call", "_due", "_handle", "_late", "_loop", "_passes")

    def __init__(self, seconds: float, call: Callable[[], object]) -> None:
        self._call = call
        self._passes = PASSES
        self._late = 0.0
        self._due = time.monotonic() + max(seconds, 0.0)
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.Handle = self._loop.call_later(max(seconds, 0.0), self._on_due)

    def cancel(self) -> None:
        self._handle.cancel()

    def _on_due(self) -> None:
        if self._passes == PASSES:
            self._late = max(time.monotonic() - self._due, 0.0)
        if _may_pass(self._passes, self._due, self._late):
            self._passes -= 1
            self._handle = self._loop.call_later(0, self._on_due)
        else:
            self._call()


def of_late(seconds: float) -> str:
    """What an error adds: that the loop was held up, and so the limit is not the peer's fault alone."""
    if seconds < NOTABLE:
        return ""
    return f"; this program's event loop was held up, and looked for the answer {seconds:.1f} s late"
