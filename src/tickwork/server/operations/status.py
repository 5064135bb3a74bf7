"""How things are: the numbers of the whole, health, and the overview."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from tickwork.client.breakers import unclosed
from tickwork.client.health import health_of
from tickwork.client.queues import count_in_queue
from tickwork.client.views import queue_stats, seen_at
from tickwork.clock import to_datetime
from tickwork.ids import name_of
from tickwork.model.health import Health
from tickwork.model.info import QueueStats
from tickwork.model.tasks import Status
from tickwork.server.attention import Attention, attention
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.mutes import FailureRow
from tickwork.server.operations import operation
from tickwork.server.operations.dead_letters import list_failures
from tickwork.server.operations.queues import QueueRow, list_queues
from tickwork.server.operations.reports import Minutes, SeriesView, get_series
from tickwork.server.operations.tasks import Name
from tickwork.server.stops import stops_of


class ServerStatus(Struct, frozen=True, kw_only=True):
    """The namespace as a whole."""

    namespace: str
    store: str
    version: str
    time: datetime
    leader: str | None
    term: int | None
    workers: int
    slots: int
    busy: int
    tasks: dict[str, int]
    queues: QueueStats
    dropped_dead_letters: int
    health: Health


class Counts(Struct, frozen=True, kw_only=True):
    """The numbers beside the entries of the dashboard."""

    time: datetime
    tasks: dict[str, int]
    queues: int
    workers: int
    schedules: int
    held: int  # tasks at limits, breakers and switches
    breakers: int  # that are open
    firing: int  # alerts that are not silenced


QUEUE_PAGES = 5  # of a thousand tasks


class QueueCounts(QueueStats, frozen=True, kw_only=True):
    """`at_least`: of a queue with very many tasks, those that are delayed, run or are dead were not all counted."""

    at_least: bool


class Overview(Struct, frozen=True, kw_only=True):
    """All that the first page shows, in one answer."""

    status: ServerStatus
    attention: list[Attention]
    series: SeriesView
    queues: list[QueueRow]
    failures: list[FailureRow]
    held: int
    lost: int  # workers, in the last hour


@operation("GET", "/status", Right.VIEW)
async def get_status(call: Call) -> ServerStatus:
    """How the scheduler and its store are."""
    from tickwork import __version__

    store, stats = await call.space.store(), await call.space.stats()
    leader = await store.members.leader()
    alive = [each for each in seen_at(await call.space.members(), store.now()) if each.lost_at is None]
    access = call.client._access
    return ServerStatus(
        namespace=call.space.namespace,
        store=store.url,
        version=__version__,
        time=to_datetime(store.now()),
        leader=None if leader is None else name_of(leader.id),
        term=None if leader is None else leader.term,
        workers=len(alive),
        slots=sum(each.capacity for each in alive),
        busy=sum(each.running for each in alive),
        tasks={status.value: stats.statuses.get(status, 0) for status in Status},
        queues=queue_stats(stats),
        dropped_dead_letters=stats.dropped,
        health=await health_of(access.open_store, "store", access.config),
    )


@operation("GET", "/stats/queues", Right.VIEW)
async def get_queue_stats(call: Call, queue: Name | None = None) -> QueueCounts:
    """How many tasks wait, run and are dead, and how many workers there are; of one queue, or of all together."""
    found, whole = queue_stats(await call.space.stats()), True
    if queue is not None:
        found, whole = await count_in_queue(await call.space.store(), queue, QUEUE_PAGES)
    return QueueCounts(**msgspec.structs.asdict(found), at_least=not whole)


@operation("GET", "/counts", Right.VIEW)
async def get_counts(call: Call) -> Counts:
    """The numbers beside the entries of the dashboard."""
    store, stats = await call.space.store(), await call.space.stats()
    schedules, cursor = 0, None
    for _ in range(40):
        page, cursor = await store.schedules.page(cursor)
        schedules += len(page)
        if cursor is None:
            break
    alerts = await call.client.alerts()
    serving = [each for each in await call.space.members() if each.lost_at is None]
    queues = {queue for queue, _ in stats.ready} | {queue for each in serving for queue in each.queues}
    return Counts(
        time=to_datetime(store.now()),
        tasks={status.value: stats.statuses.get(status, 0) for status in Status},
        queues=len(queues),
        workers=stats.workers,
        schedules=schedules,
        held=await _held(call) + (await stops_of(store)).aside(stats),
        breakers=len(await unclosed(store)),
        firing=sum(each.state == "firing" and each.silenced is None for each in alerts),
    )


async def _held(call: Call) -> int:
    """Tasks that wait at limits, breakers and switches, as far as the most crowded ones know."""
    return sum(waiting for _, waiting in await (await call.space.store()).gates.crowded(100))


@operation("GET", "/overview", Right.VIEW)
async def get_overview(call: Call, minutes: Annotated[Minutes, Meta(description="How far back.")] = 60) -> Overview:
    """All that the first page of the dashboard shows."""
    status, failures = await get_status(call), await list_failures(call, None, 50)
    now = status.time
    lost = [each.lost_at for each in await call.space.members() if each.lost_at is not None]
    return Overview(
        status=status,
        attention=await attention(
            call.space, await call.space.stats(), failures.items, await call.client.alerts(), call.mask
        ),
        series=await get_series(call, minutes, "all"),
        queues=await list_queues(call),
        failures=[each for each in failures.items if each.dead][:8],
        held=await _held(call),
        lost=sum(now - to_datetime(at) < timedelta(hours=1) for at in lost),
    )
