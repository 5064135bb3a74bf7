"""Duties: work that a node repeats, such as taking back the tasks of lost workers.

`repeat` calls a duty again and again, waits for its hint, and waits longer after each error of the store. Any other
error ends it, and the node's supervisor starts it again. A duty is made of store transitions that are safe to repeat,
so two nodes may do the same duty at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

from tickwork.errors import StoreError, StoreUnavailable
from tickwork.host import is_gone
from tickwork.model.facts import Fact
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Status
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.observe.observations import ScheduleTicked
from tickwork.store.contract import MANY_MAX, Edge, OutboxEntry, Store

BACKOFF_MAX = 30.0
PRUNE_AGAIN = 1.0  # seconds until the next call, after one that removed something
PRUNE_LOOK = 5.0  # seconds within which `retention_max` is enforced, however long `cleanup_interval` is
SWEEPERS = 4  # nodes that look for expired leases as often as one alone would; of more, each looks less often
WORKERS_A_SECOND = 25  # members that one node looks at, on average
UNAVAILABLE_MAX = 1.0  # longest pause while the store cannot be reached: work must go on soon after its return

LOG = Log.of(None, "duties")


class Duty(NamedTuple):
    """Work that is repeated while a node runs: by the node that leads, or by all nodes.

    `run` does a bounded piece of it and returns in how many seconds it wants to run again, None for the usual `every`.
    A hint on `topic` (of `tickwork.store.hints`) wakes it before.
    """

    name: str
    run: Callable[[], Awaitable[float | None]]
    every: float
    topic: str | None = None
    who: Literal["leader", "all"] = "leader"


async def repeat(duty: Duty, store: Store, log: Log = LOG) -> None:
    """Do a duty until this coroutine is cancelled, which the node does when it stops or no longer leads."""
    try:
        await _repeat(duty, store, log)
    finally:
        store.contact.forget(duty.name)


async def _repeat(duty: Duty, store: Store, log: Log) -> None:
    name, every, failures = duty.name, duty.every, 0
    with store.hint(duty.topic or f"*{name}") as hint:
        while True:
            try:
                pause = await duty.run()
                failures = 0
                store.contact.made(name)
            except StoreUnavailable as error:
                failures += 1
                pause = min(0.1 * 2.0 ** min(failures, 10), UNAVAILABLE_MAX)
                store.contact.lost(name, error)
            except StoreError as error:
                failures += 1
                pause = min(0.1 * 2.0 ** min(failures, 10), BACKOFF_MAX)
                log.warning("%s failed, trying again in %.1f s: %s", name, pause, error)
            if pause == 0:
                await asyncio.sleep(0)
            else:
                await hint.wait(every if pause is None else min(pause, every) if not failures else pause)


async def promote(store: Store, limit: int) -> float | None:
    next_due_in = await store.tasks.promote(limit)
    return None if next_due_in is None else next_due_in / 1000


class Crowd:
    """How many nodes there are, as `take_back` has seen it last."""

    nodes = 1


async def reclaim(
    store: Store, limit: int, log: Log = LOG, crowd: Crowd | None = None, every: float = 0.0
) -> float | None:
    """Take back tasks whose lease has run out: `every` so many seconds by a few nodes, less often by each of many."""
    taken = await store.tasks.reclaim(limit)
    for worker_id in taken.lost_workers:
        log.warning("worker %s has sent no heartbeat for a whole lease: it counts as lost", worker_id)
    if taken.ids:
        log.warning("took back %d tasks of lost workers", len(taken.ids))
    if len(taken.ids) >= limit:
        return 0
    return None if crowd is None else every * max(1.0, crowd.nodes / SWEEPERS)


async def take_back(
    store: Store, limit: int, every: float = 0.0, log: Log = LOG, crowd: Crowd | None = None
) -> float | None:
    """Take back the tasks of processes of this host that are provably gone, without waiting for the end of their
    leases."""
    workers = await store.members.workers()
    if crowd is not None:
        crowd.nodes = len({worker.node for worker in workers if worker.lost_at is None})
    dead = [
        worker for worker in workers if worker.lost_at is None and is_gone(worker.host, worker.pid, worker.pid_started)
    ]
    gone, nodes = tuple(worker.id for worker in dead), tuple(worker.node for worker in dead)
    taken = 0
    while gone:  # the workers count as lost once all their tasks are taken back
        ids = (await store.tasks.reclaim(limit, gone, nodes=nodes)).ids
        taken += len(ids)
        if len(ids) < limit:
            log.warning("processes of this host are gone; tasks taken back: %d (%s)", taken, ", ".join(gone))
            break
    # Every node looks at all workers, so each does it less often the more there are.
    return max(every, len(workers) / WORKERS_A_SECOND)


async def propagate(store: Store, limit: int, bus: Bus) -> float | None:
    """Notify dependants and schedules of the ends of the tasks that they wait for."""
    entries = await store.tasks.outbox(limit)
    edges = [
        Edge(dependant, entry.id, entry.status is Status.SUCCESS, entry.fence)
        for entry in entries
        for dependant in entry.dependants
    ]
    answers = await store.tasks.resolve(edges) if edges else []
    untold = {edge.upstream for edge, answer in zip(edges, answers, strict=True) if answer is None}
    for entry in entries:
        try:
            await _report(store, entry, bus)
        except StoreUnavailable:
            if store.capabilities.partitions == 1:
                raise
            untold.add(entry.id)
    if told := [entry for entry in entries if entry.id not in untold]:
        await store.tasks.clear_outbox(told)
    return 0 if told and (len(entries) == limit or len(edges) >= MANY_MAX) else None


async def _report(store: Store, entry: OutboxEntry, bus: Bus) -> None:
    """Tell the schedule of a task how its run has ended."""
    if entry.schedule_id is None:
        return
    schedule = await store.schedules.report_run(entry.schedule_id, entry.id, entry.status, entry.fence)
    if schedule is not None and _exhausted(schedule, entry.status):
        reason = f"task {entry.id} used up its retries"
        await store.schedules.change(schedule.id, stopped=reason)
        task = schedule.task
        stopped = ScheduleTicked(Fact.SCHEDULE_STOPPED, schedule.id, task.type, task.queue, reason)
        bus.publish(Fact.SCHEDULE_STOPPED, stopped)


def _exhausted(schedule: Schedule, status: Status) -> bool:
    return schedule.active and schedule.on_exhausted == "stop" and status in (Status.DEAD, Status.FAILED)


async def prune(store: Store, limit: int) -> float | None:
    """Remove ended tasks. After a call that removed some, the next one comes soon, as tasks keep ending."""
    pruned = await store.operators.prune(limit)
    if pruned >= limit:
        return 0
    return PRUNE_AGAIN if pruned else None
