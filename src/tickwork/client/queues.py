"""`app.queues`: what waits where, pause and resume."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from tickwork.client.access import Access
from tickwork.clock import to_datetime
from tickwork.handlers.options import name
from tickwork.handlers.options import note as read_note
from tickwork.model.info import QueueStats
from tickwork.model.members import Worker
from tickwork.model.tasks import Band, Status
from tickwork.store.contract import PAGE_MAX, Pause, Query, Stats, Store


class QueueInfo(Struct, frozen=True, kw_only=True):
    name: str
    high: int = 0
    normal: int = 0
    low: int = 0
    parked: dict[str, int] = {}
    workers: int = 0
    paused: bool = False
    note: str = ""
    waiting_since: datetime | None = None  # the first of its ready tasks; None if there is none


COUNTED = {
    "delayed_count": (Status.PENDING, Status.RETRYING), "running_count": (Status.RUNNING,), "dlq_count": (Status.DEAD,),
}  # fmt: skip


async def stats_of_queue(store: Store, queue: str) -> QueueStats:
    """Stores keep the number of ready tasks by queue; those in other statuses are counted one by one."""
    return (await count_in_queue(store, queue, None))[0]


async def count_in_queue(store: Store, queue: str, pages: int | None) -> tuple[QueueStats, bool]:
    """The same, of each status in no more than so many pages; and whether these were all."""
    ready, workers = (await store.queries.stats()).ready, await store.members.workers()
    counts: dict[str, int] = {}
    whole = True
    for field, statuses in COUNTED.items():
        found = [await _count(store, queue, status, pages) for status in statuses]
        counts[field] = sum(count for count, _ in found)
        whole = whole and all(is_all for _, is_all in found)
    stats = QueueStats(
        high_count=ready.get((queue, Band.HIGH), 0),
        normal_count=ready.get((queue, Band.NORMAL), 0),
        low_count=ready.get((queue, Band.LOW), 0),
        worker_count=sum(worker.lost_at is None and queue in worker.queues for worker in workers),
        **counts,
    )
    return stats, whole


async def _count(store: Store, queue: str, status: Status, pages: int | None) -> tuple[int, bool]:
    found, cursor = 0, None
    for _ in itertools.count() if pages is None else range(pages):
        records, cursor = await store.queries.page(Query(status, queue=queue, limit=PAGE_MAX, cursor=cursor))
        found += len(records)
        if cursor is None:
            return found, True
    return found, False


def queue_infos(
    stats: Stats, pauses: Iterable[Pause], workers: Iterable[Worker], waiting: Mapping[str, int]
) -> list[QueueInfo]:
    """The queues that have work, workers or a pause, by name."""
    paused = {pause.name: pause for pause in pauses if pause.kind == "queue"}
    serving = Counter(queue for worker in workers if worker.lost_at is None for queue in worker.queues)
    names = sorted({queue for queue, _ in stats.ready} | set(paused) | set(serving))
    return [
        QueueInfo(
            name=queue,
            high=stats.ready.get((queue, Band.HIGH), 0),
            normal=stats.ready.get((queue, Band.NORMAL), 0),
            low=stats.ready.get((queue, Band.LOW), 0),
            parked={kind: count for (where, kind), count in stats.parked.items() if where == queue},
            workers=serving[queue],
            paused=queue in paused,
            note=paused[queue].note if queue in paused else "",
            waiting_since=to_datetime(waiting[queue]) if queue in waiting else None,
        )
        for queue in names
    ]


class Queues:
    """The queues that have work, workers or a pause."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(self) -> list[QueueInfo]:
        store = await self._access.open_store()
        queries = store.queries
        return queue_infos(
            await queries.stats(), await queries.paused(), await store.members.workers(), await queries.waiting_since()
        )

    async def pause(self, queue: str, note: str = "") -> None:
        """Nothing of this queue is started until it is resumed; what runs goes on."""
        await (await self._access.open_store()).operators.pause("queue", name("queue", queue), read_note("note", note))

    async def resume(self, queue: str) -> bool:
        return await (await self._access.open_store()).operators.resume("queue", name("queue", queue))

    async def pause_type(self, type: str, note: str = "") -> None:
        """Nothing of this task type is started, whatever its queue."""
        await (await self._access.open_store()).operators.pause("type", name("type", type), read_note("note", note))

    async def resume_type(self, type: str) -> bool:
        return await (await self._access.open_store()).operators.resume("type", name("type", type))
