"""Schedules that fire and are listed, tasks that wait for others, notes of one long run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.growth.claims import Taker
from benchmarks.growth.lab import TYPE, Lab, Used, at_once, in_lab, plain, submit_all
from benchmarks.growth.points import Measured
from tickwork import Scheduler
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec
from tickwork.node.duties import propagate
from tickwork.node.firing import fire_schedules
from tickwork.observe.bus import Bus
from tickwork.store.contract import Store

BATCH = 100
DUE = 1_000
NOTES = 500
YEARLY = "0 0 1 1 *"
PAUSE = "longest pause ms"  # of the event loop, in CPU time: what others on this machine do is no pause of ours


# --- schedules


@in_lab
async def by_schedules(lab: Lab) -> Measured:
    """The costs are those of a tick that is fired and of a schedule in the list of all."""
    due = min(lab.ask.tasks(DUE), lab.ask.size)
    async with lab.store() as store:
        before = lab.bytes_kept()
        past, future = store.now() - 1000, store.now() + 86_400_000
        schedules = (_schedule(place, past if place < due else future) for place in range(lab.ask.size))
        await at_once(store.schedules.put(schedule) for schedule in schedules)
        kept = lab.bytes_kept() - before
        with lab.watch() as firing:
            while await fire_schedules(store, BATCH, Bus()) == 0:
                pass
        fired = (await store.queries.stats()).statuses
    listing, pause, listed = await _list_all(lab)
    costs = {f"fire: {name}": cost for name, cost in firing.costs(due).items()}
    costs |= {f"list: {name}": cost for name, cost in listing.costs(lab.ask.size).items()}
    lost = due - sum(fired.values()) + lab.ask.size - listed
    return Measured(costs | {PAUSE: pause * 1e3, "bytes each": kept / lab.ask.size}, lost=lost)


def _schedule(place: int, next_at: int) -> Schedule:
    return Schedule(id=f"schedule-{place}", cron=YEARLY, task=Spec(id="", type=TYPE, nonce=""), next_at=next_at)


async def _list_all(lab: Lab) -> tuple[Used, float, int]:
    """What it used, the longest pause of the event loop when it is done again, and how many there were."""
    app = lab.app()
    await app.queue_stats()
    try:
        with lab.watch() as used:
            listed = await _count(app)
        async with longest_pause() as longest:
            await _count(app)
    finally:
        await app.shutdown()
    return used, longest.seconds, listed


async def _count(app: Scheduler) -> int:
    """None is kept: a garbage collector that looks through all of them would be a pause too."""
    count = 0
    async for _ in app.schedules:
        count += 1
    return count


class Longest(Struct):
    seconds: float = 0.0


@asynccontextmanager
async def longest_pause(step: float = 0.0) -> AsyncIterator[Longest]:
    """How much CPU time of its thread the event loop once took before it came round again. Without a `step` this looks
    at every round of the loop, which then never rests."""
    longest = Longest()

    async def tick() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(step)
            longest.seconds = max(longest.seconds, time.thread_time() - before)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    try:
        yield longest
        await asyncio.sleep(2 * step)  # a pause that has just ended is noticed now
    finally:
        ticking.cancel()


# --- tasks that wait for others


@in_lab
async def by_dependants(lab: Lab) -> Measured:
    """One task ends, and those that wait for it become ready."""
    async with lab.store() as store:
        await _warm(lab, store)
        (first,) = plain(1)
        waiting = [replace(spec, depends_on=(first.id,)) for spec in plain(lab.ask.size)]
        await submit_all(store, [first, *waiting])
        return await _told(lab, store, lab.ask.size)


@in_lab
async def by_dependencies(lab: Lab) -> Measured:
    """Many tasks end, and the one that waits for all of them becomes ready."""
    async with lab.store() as store:
        await _warm(lab, store)
        before, (last,) = plain(lab.ask.size), plain(1)
        last = replace(last, depends_on=tuple(spec.id for spec in before))
        await submit_all(store, [*before, last])
        return await _told(lab, store, 1)


async def _warm(lab: Lab, store: Store) -> None:
    """Scripts are loaded and statements prepared from here on."""
    first, second = plain(2)
    await submit_all(store, [first, replace(second, depends_on=(first.id,))])
    await _told(lab, store, 1)


async def _told(lab: Lab, store: Store, waiting: int) -> Measured:
    """What it costs to run what can run and to tell those that wait, for each end that one waits for."""
    taker = Taker(store)
    with lab.watch() as used:
        await taker.drain()
        while await propagate(store, BATCH, Bus()) == 0:
            pass
    ready = await taker.drain()
    costs = {"told/s": lab.ask.size / used.wall} | used.costs(lab.ask.size)
    if lab.server is not None:
        costs["commands each"] = used.commands / lab.ask.size
    return Measured(costs, lost=waiting - ready)


# --- notes


@in_lab
async def by_notes(lab: Lab) -> Measured:
    """A run that has written so many lines writes some more."""
    notes = lab.ask.tasks(NOTES)
    async with lab.store() as store:
        await submit_all(store, plain(1))
        (grant,) = (await Taker(store).take()).grants
        for first in range(0, lab.ask.size, 100):
            lines = [f"line {number}" for number in range(first, min(first + 100, lab.ask.size))]
            await store.tasks.note(grant.lease, None, "", lines)
        with lab.watch() as used:
            for number in range(notes):
                await store.tasks.note(grant.lease, number / notes, "going on", [f"step {number}"])
    return Measured(used.costs(notes))
