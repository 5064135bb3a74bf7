"""What an operator may do with tasks, queues and types; also the clearing up of what is old."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from tickwork.model.tasks import Status


class Retried(Struct, frozen=True, gc=False):
    """The answer to a retry: the status that it found, and why an ended task was left as it is. `upstream`, on which it
    depends, has ended badly or is gone; or the task is `damaged`, and nothing is left of it that could run."""

    found: Status | None
    upstream: str = ""
    damaged: bool = False


class Operators(Protocol):
    """`cancel`, `run_now`, `reschedule`, `retry` and `delete` take at most `MANY_MAX` ids and do to one after the other
    what they say of one. They answer for each id, in the order given, the status that they found; None means that there
    is no such task, which hinders no other. An id that is given twice counts once. A call that is sent again answers as
    the first one, as far as nobody else has changed the tasks since.

    A store that keeps tasks in several places may do it in each of them at the same time; if one of these cannot be
    reached, the call raises, and what it did elsewhere stays done.
    """

    async def cancel(
        self, ids: Sequence[str], force: bool, reason: str = "", only: Status | None = None
    ) -> list[Status | None]:
        """Cancel waiting tasks. With `force` the handlers of running ones are asked to stop; without it running tasks
        are left alone. With `only`, tasks of that status alone."""

    async def run_now(self, ids: Sequence[str], only: Status | None = None, held: bool = False) -> list[Status | None]:
        """Make delayed tasks ready; with `only`, tasks of that status alone; with `held`, those alone that wait at a
        gate."""

    async def reschedule(self, ids: Sequence[str], at: int) -> list[Status | None]:
        """Move tasks to another due time. Delayed ones keep their status, though that time may be over; ready ones
        become pending. A deadline that counts from the due time moves along. A delayed task that is due at that time
        anyway is left as it is. Whoever waits for work hears of it, since the time may be earlier than the one
        before."""

    async def retry(self, ids: Sequence[str], only: Status | None = None) -> list[Retried]:
        """Make ended tasks ready again with fresh counters; with `only`, tasks of that status alone.

        A task that depends on others is blocked again until those that have not ended yet have ended, which are looked
        up after the ids before it were retried. It is left as it is if it depends on a task that ended badly, or on one
        that was removed before this task ever ran. A dependant that never ran keeps its time. The task holds its dedup
        key again, as from a submit: for its whole `dedup_ttl`, or as its `unique` says. If another task holds the key,
        that one keeps it, and this one goes on without.
        """

    async def delete(self, ids: Sequence[str], only: Status | None = None) -> list[Status | None]:
        """Remove ended tasks; with `only`, tasks of that status alone."""

    async def prune(self, limit: int) -> int:
        """Remove ended tasks that are past their retention or too many, expired dedup keys, old locks, and what is
        beyond the log's size. Answers how many tasks were removed, at most `limit`.

        First go tasks with a `retention` of their own that is over, the one first that was over first, ties in the
        order in which they ended. Then tasks go in the order in which they ended, whatever their status: all of them
        while there are too many, and then those without a retention of their own, up to the first that ended after
        the retention limit. Tasks in the outbox are skipped.
        """

    async def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        """Grant no tasks of this queue or type until `resume`."""

    async def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        """False when it was not paused."""

    async def index(self, on: bool, report: Callable[[int], None] | None = None) -> bool:
        """Keep indexes by type, queue and key, so that lists by these are answered without a scan, or stop keeping
        them. They cost something with every submit. Tasks that are there already are indexed before the call returns;
        `report` is told how many were. It may be repeated when it was cut short. False when nothing had to be done."""

    async def mend(self) -> list[str]:
        """Repair what an audit finds, where that is possible; answers what was found."""
