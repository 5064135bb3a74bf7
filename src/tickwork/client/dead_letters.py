"""`app.dlq`: tasks that have ended without success and wait for somebody to decide."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from tickwork.client import steering
from tickwork.client.access import Access
from tickwork.client.listing import list_tasks
from tickwork.client.steering import only_one
from tickwork.client.views import task_info
from tickwork.errors import NotRetryable, TaskNotFound
from tickwork.model.info import Page, TaskInfo
from tickwork.model.tasks import Status
from tickwork.store.contract import Query


class DeadLetters:
    """Tasks whose retries are spent: look at them, run them again, or throw them away."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[TaskInfo]:
        return await list_tasks(self._access, Status.DEAD, limit=limit, cursor=cursor)

    async def get(self, task_id: str) -> TaskInfo:
        record = await self._access.record(task_id)
        if record.status is not Status.DEAD:
            raise TaskNotFound(task_id)
        return task_info(record, self._access.registry)

    async def retry(self, task_id: str, *, cascade: bool = False) -> Sequence[str]:
        """Run it again with fresh counters; `cascade` brings back the tasks that were cancelled with it, whose ids are
        the answer."""
        steered = await only_one(steering.retry(self._access, [task_id], Status.DEAD, cascade=cascade))
        return steered.brought_back

    async def remove(self, task_id: str) -> None:
        await only_one(steering.delete(self._access, [task_id], Status.DEAD))

    async def retry_all(self, *, cascade: bool = False) -> int:
        """Run every task again that is dead now. One that depends on another that cannot run again stays dead."""
        ids, done = await self._dead(), 0
        for _ in range(2):  # one that was refused may run once the dead task on which it depends was sent to run
            steered = await steering.retry(self._access, ids, Status.DEAD, cascade=cascade)
            done += sum(each.done for each in steered)
            if not (ids := [each.id for each in steered if isinstance(each.error, NotRetryable)]):
                break
        return done

    async def clear(self) -> int:
        steered = await steering.delete(self._access, await self._dead(), Status.DEAD)
        return sum(each.done for each in steered)

    async def _dead(self) -> builtins.list[str]:
        """Every task that is dead now, the oldest first, as a task on which another depends died before that one.
        Those that die meanwhile are left alone."""
        store, cursor = await self._access.open_store(), None
        ids: builtins.list[str] = []
        while True:
            records, cursor = await store.queries.page(Query(Status.DEAD, limit=500, cursor=cursor))
            ids += [record.id for record in records]
            if cursor is None:
                return ids[::-1]
