"""A task as it moves on: its status, its progress and the lines that its handler writes, until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from tickwork.client.access import Access
from tickwork.clock import to_datetime
from tickwork.errors import StoreUnavailable, TaskNotFound
from tickwork.handlers.options import known_id
from tickwork.model.info import TaskUpdate
from tickwork.model.tasks import History, Record
from tickwork.store.contract import Store
from tickwork.store.hints import Hint

POLL = 0.5  # seconds between two looks; the end of the task is told at once
OUTAGE = 1.0


async def follow(access: Access, task_id: str) -> AsyncGenerator[TaskUpdate, None]:
    """How it is now, with the lines that are kept of it, and then each change. The last one is that of its end."""
    known_id(task_id)
    store = await access.open_store()
    before: TaskUpdate | None = None
    lines: list[str] = []
    with store.hint(task_id) as ended:
        while True:
            try:
                record, history = await _look(store, task_id, ended)
            except StoreUnavailable as error:  # it goes on where it was when the store is back
                store.contact.lost("follow", error)
                await asyncio.sleep(OUTAGE)
                continue
            store.contact.made("follow")
            new, missed = lines_since(lines, history.lines)
            update = _update(record, store.now(), new, missed)
            if before is None or new or _state(before) != _state(update):
                yield update
            if record.status.ended:
                return
            before, lines = update, history.lines
            await ended.wait(POLL)


async def _look(store: Store, task_id: str, ended: Hint) -> tuple[Record, History]:
    """The record first: all lines of a task that has ended are there before."""
    record = await store.queries.get(task_id, ended)
    if record is None:
        raise TaskNotFound(task_id)
    return record, await store.queries.history(task_id)


def lines_since(before: Sequence[str], now: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """The lines that were added, of a list that keeps the last ones only, and whether some may have been missed."""
    for kept in range(min(len(before), len(now)), 0, -1):
        if list(before[-kept:]) == list(now[:kept]):
            return tuple(now[kept:]), False
    return tuple(now), bool(before)


def _update(record: Record, now: int, lines: tuple[str, ...], missed: bool) -> TaskUpdate:
    return TaskUpdate(
        id=record.id, at=to_datetime(now), status=record.status, attempt=record.attempt, progress=record.progress,
        progress_note=record.progress_note, lines=lines, missed=missed,
    )  # fmt: skip


def _state(update: TaskUpdate) -> tuple[object, ...]:
    return update.status, update.attempt, update.progress, update.progress_note
