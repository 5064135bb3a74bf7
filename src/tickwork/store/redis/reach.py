"""Which partitions can be reached. They may be on different servers, so each call to one of them fails on its own.

A partition that does not answer is left out at once by later calls, so that one dead server does not slow down the work
on the others. It is tried again in the background until it answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from tickwork.errors import StoreFull, StoreUnavailable
from tickwork.timeouts import TimeLimit, of_late

ANSWER_TIME = 2.0  # seconds for an answer; then the partition counts as out of reach
RETRY = 0.25  # seconds between two attempts to reach it again
TRIAL_TIME = 5.0  # seconds for one attempt

T = TypeVar("T")


class Reach:
    def __init__(
        self, knock: Callable[[str], Awaitable[Any]], on_return: Callable[[], None], answer_time: float = ANSWER_TIME
    ) -> None:
        self._answer_time = answer_time
        self._knock = knock
        self._on_return = on_return
        self._next_trial: dict[str, float] = {}  # partitions out of reach, and when they are tried again
        self._trials: set[asyncio.Future[None]] = set()

    def has(self, part: str) -> bool:
        next_trial = self._next_trial.get(part)
        if next_trial is None:
            return True
        if time.monotonic() >= next_trial:
            self._next_trial[part] = time.monotonic() + TRIAL_TIME + RETRY  # if this event loop ends before the trial
            trial = asyncio.ensure_future(self._try_again(part))
            self._trials.add(trial)
            trial.add_done_callback(self._trials.discard)
        return False

    def is_in_doubt(self, part: str) -> bool:
        """Whether it counts as out of reach. For threads without an event loop, which cannot try it again."""
        return part in self._next_trial

    async def _try_again(self, part: str) -> None:
        try:
            with TimeLimit(TRIAL_TIME, makes_up=True):
                await self._knock(part)
        except (StoreUnavailable, TimeoutError):
            self._next_trial[part] = time.monotonic() + RETRY
        else:
            self._next_trial.pop(part, None)
            self._on_return()

    async def call(self, part: str, act: Callable[[], Awaitable[T]]) -> T:
        """Call a partition. Raises `StoreUnavailable` if it does not answer soon, or did not lately."""
        if not self.has(part):
            raise StoreUnavailable(f"partition {part} cannot be reached now")
        try:
            with TimeLimit(self._answer_time, makes_up=True) as limit:
                return await act()
        except TimeoutError:
            self._next_trial[part] = time.monotonic() + RETRY
            late = of_late(limit.late)
            raise StoreUnavailable(f"partition {part} did not answer in {self._answer_time:g} s{late}") from None
        except StoreFull:
            raise
        except StoreUnavailable:
            self._next_trial[part] = time.monotonic() + RETRY
            raise

    async def each(self, parts: Iterable[str], act: Callable[[str], Awaitable[T]], needed: bool = True) -> dict[str, T]:
        """Do something with several partitions at the same time; answers for those that can be reached. Raises only if
        none can and one is needed, or if one refused the call."""
        parts = list(parts)
        replies = await asyncio.gather(
            *(act(part) for part in parts),
            return_exceptions=True,
        )
        found: dict[str, T] = {}
        errors: list[BaseException] = []
        for part, reply in zip(parts, replies, strict=True):
            if isinstance(reply, BaseException):
                errors.append(reply)
            else:
                found[part] = reply
        raise_refusals(errors)
        if needed and errors and not found:
            raise errors[0]
        return found

    def close(self) -> None:
        for trial in list(self._trials):
            trial.cancel()


def raise_refusals(errors: list[BaseException]) -> None:
    """Raise the first error that is more than a partition out of reach."""
    for error in errors:
        if not isinstance(error, StoreUnavailable):
            raise error
