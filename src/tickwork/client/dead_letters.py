"""`app.dlq`: tasks that have ended without success and wait for somebody to decide."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from tickwork.client.access import Access
from tickwork.client.listing import list_tasks
from tickwork.client.steering import retry_ended
from tickwork.client.views import task_info
from tickwork.errors import NotRetryable, TaskNotFound
from tickwork.handlers.options import known_id
from tickwork.model.info import Page, TaskInfo
from tickwork.model.tasks import Record, Status
from tickwork.store.contract import MANY_MAX, Query


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
        return await retry_ended(self._access, await self._access.record(task_id), Status.DEAD, cascade=cascade)

    async def remove(self, task_id: str) -> None:
        known_id(task_id)
        if await (await self._access.open_store()).operators.delete([task_id], Status.DEAD) != [Status.DEAD]:
            raise TaskNotFound(task_id)

    async def retry_all(self, *, cascade: bool = False) -> int:
        """Run every task again that is dead now. One that depends on another that cannot run again stays dead."""
        done, refused = 0, []
        async for record in self._dead():
            try:
                await retry_ended(self._access, record, Status.DEAD, cascade=cascade)
                done += 1
            except TaskNotFound:  # somebody was faster
                continue
            except NotRetryable:  # perhaps it can once the dead task on which it depends was sent to run
                refused.append(record)
        for record in reversed(refused):  # the oldest first, as a task on which another depends died before that one
            with contextlib.suppress(TaskNotFound, NotRetryable):
                await retry_ended(self._access, record, Status.DEAD, cascade=cascade)
                done += 1
        return done

    async def clear(self) -> int:
        store = await self._access.open_store()
        ids = [record.id async for record in self._dead()]
        found = [
            status
            for start in range(0, len(ids), MANY_MAX)
            for status in await store.operators.delete(ids[start : start + MANY_MAX], Status.DEAD)
        ]
        return found.count(Status.DEAD)

    async def _dead(self) -> AsyncIterator[Record]:
        """Every task that is dead now; those that die meanwhile are left alone."""
        store, cursor = await self._access.open_store(), None
        while True:
            records, cursor = await store.queries.page(Query(Status.DEAD, limit=500, cursor=cursor))
            for record in records:
                yield record
            if cursor is None:
                return
