"""`app.tasks`: many tasks at once, in few round trips."""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from tickwork.client import bulk, steering
from tickwork.client.access import Access
from tickwork.client.bulk import Progress
from tickwork.errors import ConfigError
from tickwork.model.bulk import BulkResult, TaskFilter
from tickwork.model.info import Steered


class Tasks:
    """Cancels, retries, runs and deletes tasks by their ids, or all that a filter matches.

    By ids: for each, in order, the answer says what became of it; what cannot be done to one hinders no other.

    By a filter: any number of tasks, page by page, of those that were submitted before the call began. The answer has
    counts. What the filter says of a task holds at the moment at which it is changed. With `dry_run` nothing is
    changed, only counted. `progress` is called after each page with two numbers: how many tasks are done, and how many
    matched so far.

    Only an error of the store itself is raised; a part may be done then, and the call can be repeated. So it can after
    it was cancelled.
    """

    def __init__(self, access: Access) -> None:
        self._access = access

    @overload
    async def cancel(self, tasks: Iterable[str], *, force: bool = False) -> list[Steered]: ...
    @overload
    async def cancel(
        self, tasks: TaskFilter, *, force: bool = False, dry_run: bool = False, progress: Progress | None = None
    ) -> BulkResult: ...
    async def cancel(
        self,
        tasks: Iterable[str] | TaskFilter,
        *,
        force: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> list[Steered] | BulkResult:
        """Cancel waiting tasks; with `force` also ask running ones to stop."""
        if isinstance(tasks, TaskFilter):
            return await bulk.cancel(self._access, tasks, force, dry_run, progress)
        _only_for_filters(dry_run, progress)
        return await steering.cancel(self._access, tasks, force)

    @overload
    async def retry(self, tasks: Iterable[str], *, cascade: bool = False) -> list[Steered]: ...
    @overload
    async def retry(
        self, tasks: TaskFilter, *, cascade: bool = False, dry_run: bool = False, progress: Progress | None = None
    ) -> BulkResult: ...
    async def retry(
        self,
        tasks: Iterable[str] | TaskFilter,
        *,
        cascade: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> list[Steered] | BulkResult:
        """Run ended tasks again, of ids in their order: a task can wait for one before it in the list. `cascade` also
        brings back the tasks that were cancelled because one of these did not succeed. A filter without a status means
        tasks that are dead or failed."""
        if isinstance(tasks, TaskFilter):
            return await bulk.retry(self._access, tasks, cascade, dry_run, progress)
        _only_for_filters(dry_run, progress)
        return await steering.retry(self._access, tasks, cascade=cascade)

    @overload
    async def run_now(self, tasks: Iterable[str]) -> list[Steered]: ...
    @overload
    async def run_now(
        self, tasks: TaskFilter, *, dry_run: bool = False, progress: Progress | None = None
    ) -> BulkResult: ...
    async def run_now(
        self,
        tasks: Iterable[str] | TaskFilter,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> list[Steered] | BulkResult:
        """Let tasks that wait for their time, or for their next attempt, run at once."""
        if isinstance(tasks, TaskFilter):
            return await bulk.run_now(self._access, tasks, dry_run, progress)
        _only_for_filters(dry_run, progress)
        return await steering.run_now(self._access, tasks)

    @overload
    async def delete(self, tasks: Iterable[str]) -> list[Steered]: ...
    @overload
    async def delete(
        self, tasks: TaskFilter, *, dry_run: bool = False, progress: Progress | None = None
    ) -> BulkResult: ...
    async def delete(
        self,
        tasks: Iterable[str] | TaskFilter,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> list[Steered] | BulkResult:
        """Remove ended tasks and all that is known of them."""
        if isinstance(tasks, TaskFilter):
            return await bulk.delete(self._access, tasks, dry_run, progress)
        _only_for_filters(dry_run, progress)
        return await steering.delete(self._access, tasks)


def _only_for_filters(dry_run: bool, progress: Progress | None) -> None:
    if dry_run or progress is not None:
        raise ConfigError("dry_run and progress are for a TaskFilter; a list of ids is answered for each of them")
