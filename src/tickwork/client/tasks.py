"""`app.tasks`: many tasks at once, in few round trips."""

from __future__ import annotations

from collections.abc import Iterable

from tickwork.client import steering
from tickwork.client.access import Access
from tickwork.model.info import Steered


class Tasks:
    """Cancels, retries, runs and deletes tasks by their ids. For each id, in order, the answer says what became of it;
    what cannot be done to one hinders no other. Only an error of the store itself is raised; a part may be done then,
    and the call can be repeated."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def cancel(self, ids: Iterable[str], *, force: bool = False) -> list[Steered]:
        """Cancel waiting tasks; with `force` also ask running ones to stop."""
        return await steering.cancel(self._access, ids, force)

    async def retry(self, ids: Iterable[str], *, cascade: bool = False) -> list[Steered]:
        """Run ended tasks again, in this order: a task can wait for one before it in the list. `cascade` also brings
        back the tasks that were cancelled because one of these did not succeed."""
        return await steering.retry(self._access, ids, cascade=cascade)

    async def run_now(self, ids: Iterable[str]) -> list[Steered]:
        """Let tasks that wait for their time, or for their next attempt, run at once."""
        return await steering.run_now(self._access, ids)

    async def delete(self, ids: Iterable[str]) -> list[Steered]:
        """Remove ended tasks and all that is known of them."""
        return await steering.delete(self._access, ids)
