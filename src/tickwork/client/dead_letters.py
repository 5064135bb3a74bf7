"""`app.dlq`: tasks that have ended without success and wait for somebody to decide."""

from __future__ import annotations

from collections.abc import Sequence

from tickwork.client import bulk, steering
from tickwork.client.access import Access
from tickwork.client.listing import list_tasks
from tickwork.client.steering import only_one
from tickwork.client.views import task_info
from tickwork.errors import TaskNotFound
from tickwork.model.bulk import TaskFilter
from tickwork.model.info import Page, TaskInfo
from tickwork.model.tasks import Status

ALL_DEAD = TaskFilter(status=Status.DEAD)


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
        return (await bulk.retry(self._access, ALL_DEAD, cascade)).done

    async def clear(self) -> int:
        return (await bulk.delete(self._access, ALL_DEAD)).done
