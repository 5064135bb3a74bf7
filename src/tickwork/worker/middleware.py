"""Runs through the middleware of a program."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

from msgspec import Raw

from tickwork.client.views import payload_of
from tickwork.clock import to_datetime
from tickwork.executors.base import Executor
from tickwork.executors.calling import encode_result
from tickwork.handlers.middleware import Middleware, RunCall, RunNext
from tickwork.handlers.registry import Entry, Registry
from tickwork.model.info import TaskResult
from tickwork.payload.codec import JSON
from tickwork.worker.run import Run

Encoded: TypeAlias = TaskResult | bytes | None


class RunChain:
    """The middleware of one scheduler around the runs of a worker."""

    def __init__(self, registry: Registry, worker_id: str) -> None:
        self._registry = registry
        self._worker_id = worker_id
        self._layers: tuple[Middleware, ...] = tuple(reversed(registry.middleware.around_run))

    @classmethod
    def of(cls, registry: Registry, worker_id: str) -> RunChain | None:
        """None if no middleware is around runs."""
        return cls(registry, worker_id) if registry.middleware.around_run else None

    async def run(self, executor: Executor, entry: Entry | None, run: Run) -> Encoded:
        """What the executor answers, or what the middleware made of it."""
        grant, context = run.grant, run.context
        assert context is not None, "a worker makes a context for every run that goes through middleware"

        async def call_handler(_: RunCall) -> Any:
            return _decoded(entry, await executor.run(grant, entry, context))

        following: RunNext = call_handler
        for middleware in self._layers:
            following = partial(_run, middleware, following)
        payload = partial(payload_of, grant.spec, self._registry)
        call = RunCall(context, self._worker_id, to_datetime(grant.submitted_at), grant.spec, payload)
        return encode_result(entry, await following(call))


async def _run(middleware: Middleware, following: RunNext, call: RunCall, /) -> Any:
    return await middleware.run(call, following)


def _decoded(entry: Entry | None, result: Encoded) -> Any:
    """Also of a handler of this process: so a middleware is given the same wherever a task runs."""
    if isinstance(result, TaskResult):
        raw = isinstance(result.data, Raw)
        return TaskResult(result.code, result.message, _decoded(entry, bytes(result.data)) if raw else result.data)
    if result is None:
        return None
    return JSON.decode(result) if entry is None else entry.decode_result(result)
