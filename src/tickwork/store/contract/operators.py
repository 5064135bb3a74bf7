"""What an operator may do with tasks, queues and types; also the clearing up of what is old."""

from __future__ import annotations

from typing import Literal, Protocol

from tickwork.model.tasks import Status


class Operators(Protocol):
    """Methods that answer `Status | None` answer the status that they found; None means that there is no such task."""

    async def cancel(self, task_id: str, force: bool, reason: str = "") -> Status | None:
        """Cancel a waiting task. With `force` the handler of a running one is asked to stop; without it a running task
        is left alone."""

    async def run_now(self, task_id: str) -> Status | None:
        """Make a delayed task ready."""

    async def retry(self, task_id: str, only: Status | None = None) -> Status | None:
        """Make an ended task ready again with fresh counters; with `only`, a task of that status alone.

        A task that depends on others is blocked again until those that have not ended yet have ended. It is left as it
        is if it depends on a task that ended badly, or on one that was removed before this task ever ran. A dependant
        that never ran keeps its time. The task holds its dedup key again for its whole `dedup_ttl`, as from a submit;
        if another task holds the key, that one keeps it, and this one goes on without.
        """

    async def delete(self, task_id: str, only: Status | None = None) -> Status | None:
        """Remove an ended task; with `only`, a task of that status alone."""

    async def prune(self, limit: int) -> int:
        """Remove ended tasks that are past their retention or too many, expired dedup keys, old locks, and what is
        beyond the log's size. Answers how many tasks were removed.

        Tasks go in the order in which they ended, whatever their status, up to the first that ended after the retention
        limit, or further while there are too many. Tasks in the outbox are skipped.
        """

    async def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        """Grant no tasks of this queue or type until `resume`."""

    async def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        """False when it was not paused."""

    async def mend(self) -> list[str]:
        """Repair what an audit finds, where that is possible; answers what was found."""
