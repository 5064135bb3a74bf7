"""`app.dlq`: tasks that have ended without success and wait for somebody to decide."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from tickwork.errors import NotRetryable, TaskNotFound
from tickwork.handlers.options import known_id
from tickwork.model.info import Page, TaskInfo
from tickwork.model.tasks import Record, Status
from tickwork.store.base import Query

if TYPE_CHECKING:
    from tickwork.client.client import Client


class DeadLetters:
    """Tasks whose retries are spent: look at them, run them again, or throw them away."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[TaskInfo]:
        return await self._client.list_tasks(Status.DEAD, limit=limit, cursor=cursor)

    async def get(self, task_id: str) -> TaskInfo:
        info = await self._client.get_task(task_id)
        if info.status is not Status.DEAD:
            raise TaskNotFound(task_id)
        return info

    async def retry(self, task_id: str, *, cascade: bool = False) -> Sequence[str]:
        """Run it again with fresh counters; `cascade` brings back the tasks that were cancelled with it, whose ids are
        the answer."""
        return await self._client.retry_ended(await self._client.record(task_id), Status.DEAD, cascade=cascade)

    async def remove(self, task_id: str) -> None:
        known_id(task_id)
        if await (await self._client.open_store()).delete(task_id, Status.DEAD) is not Status.DEAD:
            raise TaskNotFound(task_id)

    async def retry_all(self, *, cascade: bool = False) -> int:
        """Run every task again that is dead now. One that depends on another that cannot run again stays dead."""
        done, refused = 0, []
        async for record in self._dead():
            try:
                await self._client.retry_ended(record, Status.DEAD, cascade=cascade)
                done += 1
            except TaskNotFound:  # somebody was faster
                continue
            except NotRetryable:  # perhaps it can once the dead task on which it depends was sent to run
                refused.append(record)
        for record in reversed(refused):  # the oldest first, as a task on which another depends died before that one
            with contextlib.suppress(TaskNotFound, NotRetryable):
                await self._client.retry_ended(record, Status.DEAD, cascade=cascade)
                done += 1
        return done

    async def clear(self) -> int:
        store = await self._client.open_store()
        found = [await store.delete(record.id, Status.DEAD) async for record in self._dead()]
        return found.count(Status.DEAD)

    async def _dead(self) -> AsyncIterator[Record]:
        """Every task that is dead now; those that die meanwhile are left alone."""
        store, cursor = await self._client.open_store(), None
        while True:
            records, cursor = await store.page(Query(Status.DEAD, limit=500, cursor=cursor))
            for record in records:
                yield record
            if cursor is None:
                return
