"""In-process jobs: live objects that run later in this very process, so only on the memory store."""

from __future__ import annotations

import inspect
from typing import Any

from tickwork.client.client import Client
from tickwork.client.handle import Handle
from tickwork.errors import Abort, ConfigError, TaskExists
from tickwork.handlers.context import TaskContext
from tickwork.handlers.options import Options
from tickwork.handlers.periodic import Job, Runnable
from tickwork.ids import new_id
from tickwork.model.tasks import Status
from tickwork.texts import shown

ASYNC_JOB = "tickwork:job"
BLOCKING_JOB = "tickwork:blocking-job"
SWEEP_FROM = 100


class Jobs:
    """The jobs that wait, by the id of their task."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._registry = client.registry
        self._waiting: dict[str, Runnable] = {}
        self._coming: set[str] = set()
        self._sweep_at = SWEEP_FROM

    async def submit(self, job: Runnable, options: Options) -> Handle[Any]:
        if not self._client._access.types_are_known_here:
            raise ConfigError(
                "schedule() holds live objects of this process, so it needs memory://; "
                "on other stores register a handler and submit a payload"
            )
        run = job.run if isinstance(job, Job) else job
        if not callable(run):
            raise ConfigError(f"a job must be callable, or have an id and a method run(ctx): {shown(job)}")
        kind = ASYNC_JOB if inspect.iscoroutinefunction(run) else BLOCKING_JOB
        if not self._registry.has(kind):
            self._registry.register(kind, self._run_async if kind == ASYNC_JOB else self._run_blocking)
        if len(self._waiting) >= self._sweep_at:
            await self._sweep()
        task_id = job.id if isinstance(job, Job) else new_id()
        if task_id in self._waiting:
            raise TaskExists(task_id)
        self._waiting[task_id] = job  # first, as a worker may start it before `submit` is back
        self._coming.add(task_id)
        try:
            options["id"] = task_id
            return await self._client.submit(kind, None, **options)
        except BaseException:
            del self._waiting[task_id]
            raise
        finally:
            self._coming.discard(task_id)

    async def _sweep(self) -> None:
        """Let go of the objects of tasks that were cancelled or deleted, which nobody tells us of."""
        store = await self._client._access.open_store()
        for task_id in list(self._waiting):
            record = None if task_id in self._coming else await store.queries.get(task_id)
            if task_id not in self._coming and (record is None or record.status is Status.CANCELLED):
                self._waiting.pop(task_id, None)
        self._sweep_at = max(SWEEP_FROM, 2 * len(self._waiting))

    async def _run_async(self, ctx: TaskContext) -> Any:
        result = await self._call(ctx)
        self._waiting.pop(ctx.task_id, None)
        return result

    def _run_blocking(self, ctx: TaskContext) -> Any:
        result = self._call(ctx)
        self._waiting.pop(ctx.task_id, None)
        return result

    def _call(self, ctx: TaskContext) -> Any:
        job = self._waiting.get(ctx.task_id)
        if job is None:
            raise Abort("the job's object is not in this process any more")
        return job.run(ctx) if isinstance(job, Job) else job()
