"""What `submit` answers with: a task to wait for, look at or cancel."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tickwork.client.following import follow
from tickwork.client.results import Patience, wait_for_result
from tickwork.model.info import TaskInfo, TaskUpdate

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.client.schedules import ScheduleInfo

R = TypeVar("R", covariant=True)


class Handle(Generic[R]):
    """A submitted task. `R` is what its handler returns. `created` is whether the submission has made it; it has not if
    the task was there already (`if_exists="return"`), or if the handle is from `app.handle`."""

    __slots__ = ("_client", "created", "id")

    def __init__(self, client: Client, task_id: str, created: bool = True) -> None:
        self._client = client
        self.id = task_id
        self.created = created

    async def result(self, timeout: float | timedelta | None = None) -> R:
        """Wait for the end and give the handler's return value.

        Raises `TaskFailed`, `TaskCancelled`, or `ResultTimeout` after `timeout` (the task goes on).
        """
        value: R = await wait_for_result(self._client._access, self.id, Patience(timeout))
        return value

    async def info(self) -> TaskInfo:
        return await self._client.get_task(self.id)

    def follow(self) -> AsyncGenerator[TaskUpdate, None]:
        """How it is now, and then each change of its status, its progress and its log, until it has ended:
        `async for update in handle.follow(): ...`. Raises `TaskNotFound` when there is none of that id."""
        return follow(self._client._access, self.id)

    async def cancel(self, force: bool = False) -> None:
        """Cancel it; one that runs only with `force`, which asks its handler to stop."""
        await self._client.cancel(self.id, force)

    async def reschedule(self, *, at: datetime | None = None, delay: float | timedelta | None = None) -> None:
        """Move it to another time, if it waits for one."""
        await self._client.reschedule(self.id, at=at, delay=delay)

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"


class ScheduleHandle(Handle[Any]):
    """What `submit(cron=...)` answers with: `id` is the schedule's."""

    __slots__ = ()

    async def result(self, timeout: float | timedelta | None = None) -> Any:
        raise TypeError(f"{self.id} is a schedule and has no result of its own; each of its runs is a task")

    def follow(self) -> AsyncGenerator[TaskUpdate, None]:
        raise TypeError(f"{self.id} is a schedule and has no log of its own; each of its runs is a task")

    async def info(self) -> TaskInfo:
        raise TypeError(f"{self.id} is a schedule, not a task; ask for its schedule()")

    async def cancel(self, force: bool = False) -> None:
        """Delete the schedule. Runs that were fired before go on."""
        await self._client.schedules.delete(self.id)

    async def reschedule(self, *, at: datetime | None = None, delay: float | timedelta | None = None) -> None:
        raise TypeError(f"{self.id} is a schedule, whose times follow from its cron line; put it anew to change that")

    async def schedule(self) -> ScheduleInfo:
        return await self._client.schedules.get(self.id)

    def __repr__(self) -> str:
        return f"<ScheduleHandle {self.id}>"
