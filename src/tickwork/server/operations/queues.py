"""Queues and task types: what waits where, pause and resume."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from tickwork.client.queues import queue_infos
from tickwork.client.views import seen_at
from tickwork.clock import to_datetime
from tickwork.model.members import Worker
from tickwork.model.reports import Percentiles
from tickwork.model.tasks import Status
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.operations import operation
from tickwork.server.operations.tasks import Name
from tickwork.server.problems import not_found
from tickwork.server.rows import HeldBy
from tickwork.server.schemas import schema_of
from tickwork.server.series import Series, series
from tickwork.store.contract import PAGE_MAX, Pause, Query, Store

Note = Annotated[str, Meta(max_length=2000)]
RATE_OVER = timedelta(minutes=5)
HOUR = timedelta(hours=1)
HOLDS_LOOK = 100  # limits, breakers and switches, those at which most tasks wait


class PauseQueue(Struct, forbid_unknown_fields=True):
    """`note` says why; people read it where they see the pause."""

    note: Note = ""


class Changed(Struct, frozen=True):
    """Whether something was changed: false if it was so already."""

    changed: bool


class Hold(Struct, frozen=True):
    """A limit, breaker or switch at which tasks of a queue wait. `waiting` is null where tasks of other queues wait
    there too, as it is not known how many are of which."""

    by: HeldBy
    of: str
    waiting: int | None


class QueueRow(Struct, frozen=True, kw_only=True):
    """A queue. `running` is counted among the first thousand tasks that run. `latency` is how long, in seconds, the
    first of its ready tasks waits; `in_rate` and `out_rate` are tasks a minute over the last five; `done` is how many
    tasks ended in each minute of the last hour; `holds` is what holds tasks of it back, which are not ready
    meanwhile."""

    name: str
    ready: int
    running: int
    high: int
    normal: int
    low: int
    parked: dict[str, int]
    workers: int
    slots: int
    paused: bool
    note: str
    paused_at: datetime | None
    waiting_since: datetime | None
    latency: float | None
    in_rate: float
    out_rate: float
    failure_rate: float | None
    done: list[int]
    holds: list[Hold]


class TypeRow(Struct, frozen=True, kw_only=True):
    """A task type that a worker knows or that has run of late. `queues` are those that its workers take from, `seen_in`
    those in which it was seen in the last hour. `schema` is that of its payload, where this server has the application
    at hand."""

    name: str
    workers: int
    queues: list[str]
    paused: bool
    note: str
    submitted: int
    ended: int
    failure_rate: float | None
    wait: Percentiles | None
    run: Percentiles | None
    options: dict[str, Any]
    schema: dict[str, Any] | None
    seen_in: list[str]


@operation("GET", "/queues", Right.VIEW)
async def list_queues(call: Call) -> list[QueueRow]:
    """The queues that have work, workers or a pause, with how fast they are."""
    store = await call.space.store()
    members = seen_at(await call.space.members(), store.now())
    stats, pauses = await call.space.stats(), await store.queries.paused()
    found = queue_infos(stats, pauses, members, await store.queries.waiting_since())
    past = await series(call.space, HOUR, by="queue")
    since = {pause.name: pause.at for pause in pauses if pause.kind == "queue"}
    now = store.now()
    running, holds = await _running(call), await _holds(store, past)
    rows: list[QueueRow] = []
    for each in found:
        of_queue = past.of(each.name)
        waiting = None if each.waiting_since is None else max(now / 1000 - each.waiting_since.timestamp(), 0.0)
        rows.append(
            QueueRow(
                name=each.name,
                ready=each.high + each.normal + each.low,
                running=running[each.name],
                high=each.high,
                normal=each.normal,
                low=each.low,
                parked=each.parked,
                workers=each.workers,
                slots=sum(one.capacity for one in members if one.lost_at is None and each.name in one.queues),
                paused=each.paused,
                note=each.note,
                paused_at=_moment(since.get(each.name)),
                waiting_since=each.waiting_since,
                latency=waiting,
                in_rate=of_queue.rate("submitted", RATE_OVER),
                out_rate=of_queue.rate("ended", RATE_OVER),
                failure_rate=of_queue.failure_rate,
                done=of_queue.counts("ended"),
                holds=holds.get(each.name, []),
            )
        )
    return rows


async def _running(call: Call) -> Counter[str]:
    """By queue; of the first thousand, where more than that run."""
    page, _ = await (await call.space.store()).queries.page(Query(Status.RUNNING, limit=PAGE_MAX))
    return Counter(each.spec.queue for each in page)


async def _holds(store: Store, past: Series) -> dict[str, list[Hold]]:
    """By queue, those at which most wait first. In which queues the tasks of a type are is known from those of the last
    hour. What holds a key or a tag is of no queue."""
    found: dict[str, dict[tuple[HeldBy, str], int | None]] = {}
    for gate, waiting in await store.gates.crowded(HOLDS_LOOK):
        word, _, rest = gate.partition(":")
        by = cast("HeldBy", word)
        of = rest.partition("/key=")[0]  # a limit for each key by itself is one gate a key
        kind, _, name = of.partition(":")
        queues = {name} if kind == "queue" else past.queues.get(name, set()) if kind == "type" else set()
        for queue in queues:
            known = found.setdefault(queue, {})
            before = known.get((by, of), 0)
            known[by, of] = None if before is None or len(queues) > 1 else before + waiting
    return {queue: [Hold(by, of, waiting) for (by, of), waiting in known.items()] for queue, known in found.items()}


def _moment(at: int | None) -> datetime | None:
    return to_datetime(at) if at else None


@operation("GET", "/queues/{name}", Right.VIEW)
async def get_queue(call: Call, name: str) -> QueueRow:
    """One queue."""
    for each in await list_queues(call):
        if each.name == name:
            return each
    raise not_found("queue", name)


@operation("POST", "/queues/{name}/pause", Right.OPERATE, changes="paused a queue")
async def pause_queue(call: Call, name: Name, body: PauseQueue) -> Changed:
    """Start nothing of this queue until it is resumed; what runs goes on."""
    call.tell(name, body.note)
    await call.plane.quotas.check_pauses(call.space, "queue", name)
    await call.client.queues.pause(name, body.note)
    return Changed(True)


@operation("POST", "/queues/{name}/resume", Right.OPERATE, changes="resumed a queue")
async def resume_queue(call: Call, name: Name) -> Changed:
    """Start tasks of this queue again."""
    call.tell(name)
    return Changed(await call.client.queues.resume(name))


@operation("GET", "/types", Right.VIEW)
async def list_types(call: Call) -> list[TypeRow]:
    """The task types: who knows them, how they do, and what their payload looks like."""
    store = await call.space.store()
    members = [each for each in seen_at(await call.space.members(), store.now()) if each.lost_at is None]
    paused = {pause.name: pause for pause in await store.queries.paused() if pause.kind == "type"}
    past = await series(call.space, HOUR, by="type")
    registry = call.client.registry
    known = {kind for each in members for kind in each.task_types}
    names = sorted(known | set(paused) | set(past.names) | set(registry.list()))
    return [
        _type_row(call, name, past, paused.get(name), [each for each in members if name in each.task_types])
        for name in names
    ]


def _type_row(call: Call, name: str, past: Series, pause: Pause | None, workers: list[Worker]) -> TypeRow:
    entry, of_type = call.client.registry.find(name), past.of(name)
    options = {} if entry is None else {key: _plain(value) for key, value in entry.options.items()}
    return TypeRow(
        name=name,
        workers=len(workers),
        queues=sorted({queue for worker in workers for queue in worker.queues}),
        paused=pause is not None,
        note="" if pause is None else pause.note,
        submitted=sum(of_type.counts("submitted")),
        ended=sum(of_type.counts("ended")),
        failure_rate=of_type.failure_rate,
        wait=of_type.wait,
        run=of_type.run,
        options=options,
        schema=None if entry is None else schema_of(entry),
        seen_in=sorted(past.queues.get(name, ())),
    )


def _plain(value: Any) -> Any:
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError):  # a function, an exception class
        return str(getattr(value, "__name__", value))


@operation("POST", "/types/{name}/pause", Right.OPERATE, changes="paused a type")
async def pause_type(call: Call, name: Name, body: PauseQueue) -> Changed:
    """Start nothing of this type, whatever its queue, until it is resumed."""
    call.tell(name, body.note)
    await call.plane.quotas.check_pauses(call.space, "type", name)
    await call.client.queues.pause_type(name, body.note)
    return Changed(True)


@operation("POST", "/types/{name}/resume", Right.OPERATE, changes="resumed a type")
async def resume_type(call: Call, name: Name) -> Changed:
    """Start tasks of this type again."""
    call.tell(name)
    return Changed(await call.client.queues.resume_type(name))
