"""Who was cancelled because a task did not succeed.

Stores keep an index of those that wait for a task only (`Store.dependants`). A cancelled one is found among the tasks
that were cancelled since the task has ended, which is as far back as anyone has to look.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from graphlib import TopologicalSorter

from tickwork.model.tasks import Record, Status
from tickwork.model.transitions import because_of
from tickwork.store.contract import Query, Store


async def cancelled_with(store: Store, *records: Record) -> list[Record]:
    """The tasks that were cancelled because one of these, or one of them, did not succeed; upstream ones come first."""
    return [follower for _, follower in await followers_of(store, records)]


async def followers_of(store: Store, records: Iterable[Record]) -> list[tuple[str, Record]]:
    """The same, each with the id of that of the records with which it was cancelled."""
    return (await find_followers(store, records, None))[0]


async def find_followers(
    store: Store, records: Iterable[Record], most: int | None
) -> tuple[list[tuple[str, Record]], bool]:
    """The same, among the `most` tasks that were cancelled last, and whether these were all since then."""
    roots = [record for record in records if record.status.ended and record.status is not Status.SUCCESS]
    if not roots:
        return [], True
    found: dict[str, Record] = {}
    origin = {record.id: record.id for record in roots}
    since = _cancelled_since(store, min(record.finished_at or 0 for record in roots))
    cancelled: list[Record] = []
    async for each in since:
        if len(cancelled) == most:
            return [], False  # links of a chain may be missing, so that none of it can be told for sure
        cancelled.append(each)
    # Of a chain each link was cancelled after the one before, so that one pass from the oldest on finds all.
    for each in reversed(cancelled):
        for upstream in origin.keys() & set(each.spec.depends_on) if each.id not in origin else ():
            if each.message == because_of(upstream):
                found[each.id], origin[each.id] = each, origin[upstream]
                break
    graph = {task_id: found.keys() & set(each.spec.depends_on) for task_id, each in found.items()}
    return [(origin[task_id], found[task_id]) for task_id in TopologicalSorter(graph).static_order()], True


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
