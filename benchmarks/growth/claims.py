"""What a task costs, from its submit to its end, while a store holds more of something else.

Tasks are claimed and ended in batches, as a worker of a hundred slots does it, by calls of the store: no handler and no
worker is measured, only what the store makes of them on either side.
"""

from __future__ import annotations

import time

from msgspec.structs import replace

from benchmarks.growth.lab import QUEUE, TYPE, Lab, in_lab, plain, submit_all
from benchmarks.growth.points import Measured
from tickwork.ids import new_id, new_nonce
from tickwork.model.outcomes import Aborted, Outcome, Succeeded
from tickwork.model.tasks import Spec
from tickwork.store.contract import Claim, Claimed, Grant, Store

BATCH = 50
TASKS = 10_000
EMPTY_CLAIMS = 200
PATIENCE = 2.0  # seconds after which fewer empty claims have to do
ELSEWHERE = "elsewhere"  # a type for which no worker here has a handler
DAY = 86_400_000
CLAIM = "Redis us a claim"
CLAIM_HERE = "worker us a claim"


class Taker:
    """Claims as a worker does: the queues take turns in being the first."""

    def __init__(self, store: Store, queues: tuple[str, ...] = (QUEUE,), types: tuple[str, ...] = (TYPE,)) -> None:
        self._store, self._queues, self._types = store, queues, frozenset(types)

    def claim(self, limit: int = BATCH) -> Claim:
        self._queues = (*self._queues[1:], self._queues[0])
        return Claim("growth", self._queues, self._types, limit, 30_000, new_nonce())

    async def take(self, limit: int = BATCH) -> Claimed:
        return await self._store.tasks.claim(self.claim(limit))

    async def drain(self, end: type[Succeeded | Aborted] = Succeeded) -> int:
        """Run all there is; answers how many tasks that were."""
        grants, ran = (await self.take()).grants, 0
        while grants:
            ran += len(grants)
            finished = await self._store.tasks.finish([_ended(grant, end) for grant in grants], self.claim())
            grants = [] if finished.claimed is None else finished.claimed.grants
        return ran

    async def set_aside(self) -> None:
        """Look at every ready task, so that those which nobody here can start are in their side lanes."""
        claimed = await self.take()
        while claimed.grants or claimed.next_due_in == 0:
            claimed = await self.take()


def _ended(grant: Grant, end: type[Succeeded | Aborted]) -> Outcome:
    return Succeeded(grant.lease, b"1", 0, "", 0.001) if end is Succeeded else Aborted(grant.lease, "it failed", 0.001)


async def cost_of_tasks(
    lab: Lab, store: Store, queues: tuple[str, ...] = (QUEUE,), types: tuple[str, ...] = (TYPE,)
) -> Measured:
    """Of a submit, of a run, and of a claim that finds nothing."""
    taker, tasks = Taker(store, queues, types), lab.ask.tasks(TASKS)
    await submit_all(store, plain(100, queues, types))
    await taker.drain()  # scripts are loaded and statements prepared from here on
    specs = plain(tasks, queues, types)
    with lab.watch() as submitting:
        await submit_all(store, specs)
    with lab.watch() as running:
        ran = await taker.drain()
    costs = running.costs(tasks) | {f"submit: {name}": cost for name, cost in submitting.costs(tasks).items()}
    return Measured(costs | await _cost_of_empty_claims(lab, taker), lost=tasks - ran)


async def _cost_of_empty_claims(lab: Lab, taker: Taker) -> dict[str, float]:
    until, calls = time.monotonic() + PATIENCE, 0
    with lab.watch() as looking:
        while calls < EMPTY_CLAIMS and time.monotonic() < until:
            await taker.take()
            calls += 1
    costs = {CLAIM_HERE: looking.python / calls * 1e6}
    return costs if lab.server is None else {CLAIM: looking.redis / calls * 1e6} | costs


def names(word: str, count: int) -> tuple[str, ...]:
    return tuple(f"{word}-{number}" for number in range(count))


@in_lab
async def by_queues(lab: Lab) -> Measured:
    async with lab.store() as store:
        return await cost_of_tasks(lab, store, names("queue", lab.ask.size))


@in_lab
async def by_types(lab: Lab) -> Measured:
    async with lab.store() as store:
        return await cost_of_tasks(lab, store, types=names("type", lab.ask.size))


@in_lab
async def by_lanes_with_one_aside(lab: Lab) -> Measured:
    """The size is queues times types, about three times as many types as queues."""
    queues = max(round((lab.ask.size / 3) ** 0.5), 1)
    of_queues, of_types = names("queue", queues), names("type", max(lab.ask.size // queues, 1))
    async with lab.store() as store:
        await submit_all(store, [replace(spec, type=ELSEWHERE) for spec in plain(1, of_queues)])
        await Taker(store, of_queues, of_types).set_aside()
        return await cost_of_tasks(lab, store, of_queues, of_types)


@in_lab
async def by_parked(lab: Lab) -> Measured:
    async with lab.store() as store:
        await submit_all(store, plain(lab.ask.size, types=(ELSEWHERE,)))
        await Taker(store).set_aside()
        return await cost_of_tasks(lab, store)


@in_lab
async def by_delayed(lab: Lab) -> Measured:
    async with lab.store() as store:
        await submit_all(store, plain(1))
        before = lab.bytes_kept()
        await _submit_delayed(store, lab.ask.size)
        kept = lab.bytes_kept() - before
        measured = await cost_of_tasks(lab, store)
    return replace(measured, costs=measured.costs | {"bytes each": kept / lab.ask.size})


async def _submit_delayed(store: Store, count: int) -> None:
    """In pieces, so that a million specs are never held at once."""
    for first in range(0, count, 10_000):
        some = [_delayed(first + place) for place in range(min(10_000, count - first))]
        await submit_all(store, some)


def _delayed(place: int) -> Spec:
    return Spec(id=new_id(), type=TYPE, nonce=new_nonce(), payload=b"1", delay=DAY + place)


@in_lab
async def by_dead_letters(lab: Lab) -> Measured:
    """There is room for no more than are there, so each further death drops the oldest."""
    async with lab.store(dlq_max=lab.ask.size) as store:
        taker = Taker(store)
        await submit_all(store, plain(lab.ask.size))
        await taker.drain(Aborted)
        deaths = lab.ask.tasks(TASKS // 5)
        await submit_all(store, plain(deaths))
        with lab.watch() as dying:
            await taker.drain(Aborted)
        measured = await cost_of_tasks(lab, store)
    return replace(measured, costs=measured.costs | {f"death: {name}": us for name, us in dying.costs(deaths).items()})


@in_lab
async def by_retention(lab: Lab) -> Measured:
    """The size is `retention_max`, and so many are kept from the start: as many go as come."""
    async with lab.store(retention_max=lab.ask.size) as store:
        taker = Taker(store)
        await submit_all(store, plain(lab.ask.size))
        await taker.drain()
        tasks, piece = lab.ask.tasks(TASKS), 500
        pruned = 0
        with lab.watch() as steady:
            for first in range(0, tasks, piece):
                await submit_all(store, plain(min(piece, tasks - first)))
                await taker.drain()
                while gone := await store.operators.prune(piece):
                    pruned += gone
        stats = await store.queries.stats()
    kept = sum(stats.statuses.values())
    return Measured(steady.costs(tasks) | {"kept of what was asked": kept / lab.ask.size}, lost=tasks - pruned)
