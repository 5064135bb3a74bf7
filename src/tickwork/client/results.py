"""The result of a task: wait for its end, and read what the handler returned or why there is nothing."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from tickwork.client import explain
from tickwork.client.access import Access
from tickwork.client.views import task_info
from tickwork.errors import PayloadError, ResultError, ResultTimeout, TaskCancelled, TaskFailed, TaskNotFound
from tickwork.handlers.options import known_id, wait_limit
from tickwork.handlers.registry import ANYTHING, Registry
from tickwork.model.info import TaskResult
from tickwork.model.tasks import Record, Status
from tickwork.payload.codec import JSON

POLL = 1.0  # behind the hint that the task has ended: twice as long each time,
POLL_MAX = 30.0  # since many may wait for long


async def wait_for_result(access: Access, task_id: str, timeout: float | timedelta | None = None) -> Any:
    """The handler's return value once the task has ended."""
    known_id(task_id)
    patience = wait_limit("timeout", timeout)
    deadline, pause = time.monotonic() + patience, POLL
    store = await access.open_store()
    with store.hint(task_id) as ended:
        while True:
            record = await store.queries.get(task_id, ended)
            if record is None:
                raise TaskNotFound(task_id)
            if record.status.ended:
                return result_of(record, access.registry)
            left = min(deadline - time.monotonic(), pause)
            if left <= 0:
                late = f"task {task_id} has not ended within {patience:g} s; it is {record.status}."
                why = await explain.of_task(access, task_id)
                raise ResultTimeout(f"{late} {why}", task_info(record, access.registry))
            await ended.wait(left)
            pause = min(2 * pause, POLL_MAX)


def result_of(record: Record, registry: Registry) -> Any:
    """Of a task that has ended: what its handler returned, or the error that says why there is nothing."""
    if record.status is Status.SUCCESS:
        return _value(record, registry)
    info = task_info(record, registry)
    if record.status is Status.CANCELLED:
        raise TaskCancelled(f"task {record.id} was cancelled" + (f": {record.message}" if record.message else ""), info)
    first_line = (record.last_error or "unknown error").partition("\n")[0]
    raise TaskFailed(f"task {record.id} failed for good ({record.status}): {first_line}", info)


def _value(record: Record, registry: Registry) -> Any:
    if record.unreadable:
        raise ResultError(f"task {record.id} has ended, but {record.unreadable}", task_info(record, registry))
    entry, data = registry.find(record.spec.type), None
    try:
        if record.result is not None:
            data = ANYTHING.decode(JSON, record.result) if entry is None else entry.decode_result(record.result)
    except PayloadError as error:
        text = f"task {record.id} has ended, but its stored result cannot be read: {error}"
        raise ResultError(text, task_info(record, registry)) from None
    if entry is not None and entry.returns_task_result:
        return TaskResult(record.code, record.message, data)
    return data
