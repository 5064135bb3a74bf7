"""Who was cancelled because a task did not succeed.

Stores keep an index of those that wait for a task only (`Store.dependants`). A cancelled one is found among the tasks
that were cancelled since the task has ended, which is as far back as anyone has to look.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from graphlib import TopologicalSorter

from tickwork.model.tasks import Record, Status
from tickwork.model.transitions import because_of
from tickwork.store.contract import Query, Store


async def cancelled_with(store: Store, record: Record) -> list[Record]:
    """The tasks that were cancelled because this one, or one of them, did not succeed; upstream ones come first."""
    if not record.status.ended or record.status is Status.SUCCESS:
        return []
    found: dict[str, Record] = {}
    upstreams = {record.id}
    cancelled = [each async for each in _cancelled_since(store, record.finished_at or 0)]
    # Of a chain each link was cancelled after the one before, so that one pass from the oldest on finds all.
    for each in reversed(cancelled):
        if any(each.message == because_of(upstream) for upstream in upstreams.intersection(each.spec.depends_on)):
            found[each.id] = each
            upstreams.add(each.id)
    graph = {task_id: found.keys() & set(each.spec.depends_on) for task_id, each in found.items()}
    return [found[task_id] for task_id in TopologicalSorter(graph).static_order()]


async def _cancelled_since(store: Store, moment: int) -> AsyncIterator[Record]:
    cursor: str | None = None
    while True:
        records, cursor = await store.queries.page(Query(Status.CANCELLED, limit=500, cursor=cursor))
        for record in records:
            if (record.finished_at or 0) < moment:
                return
            yield record
        if cursor is None:
            return
