"""The result of a task: wait for its end, and read what the handler returned or why there is nothing."""

from __future__ import annotations

import math
import random
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
from tickwork.store.contract import Store
from tickwork.store.hints import Hint

POLL = 1.0  # seconds between two looks, behind the hint that the task has ended: twice as long each time,
POLL_MAX = 30.0  # since many may wait for long
PHASE = random.uniform(0, POLL_MAX)  # noqa: S311 - the looks of this process are apart from those of others


class Patience:
    """How long somebody waits for a result, from now on."""

    def __init__(self, timeout: float | timedelta | None) -> None:
        self.seconds = wait_limit("timeout", timeout)
        self._until = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        return self._until - time.monotonic()


async def wait_for_result(access: Access, task_id: str, patience: Patience) -> Any:
    """The handler's return value once the task has ended."""
    known_id(task_id)
    store = await access.open_store()
    with store.hint(task_id) as ended:
        return await result_after(access, store, task_id, ended, patience)


async def result_after(access: Access, store: Store, task_id: str, ended: Hint, patience: Patience) -> Any:
    """The same for one whose hint is there. If a submit has announced that, nobody need look before it is raised."""
    pause, looks = POLL, not ended.announced
    while True:
        if looks:
            record = await store.queries.get(task_id, ended)
            if record is None:
                raise TaskNotFound(task_id)
            if record.status.ended:
                return result_of(record, access.registry)
        left = patience.left
        if left <= 0:
            raise await _too_late(access, task_id, patience)
        await ended.wait(min(left, until_look(time.monotonic(), pause)))
        pause, looks = min(2 * pause, POLL_MAX), True


def until_look(now: float, pause: float) -> float:
    """Seconds to the next look, half a pause at least. All looks of this process with such a pause come at the same
    moments, so that a store can answer them together."""
    return math.ceil((now + pause / 2 - PHASE) / pause) * pause + PHASE - now


async def _too_late(access: Access, task_id: str, patience: Patience) -> ResultTimeout:
    record = await access.record(task_id)
    late = f"task {task_id} has not ended within {patience.seconds:g} s; it is {record.status}."
    return ResultTimeout(f"{late} {await explain.of_task(access, task_id)}", task_info(record, access.registry))


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
