"""What has to be done again and again: each duty is made of transitions that are safe to repeat.

A duty does a bounded piece of work and answers in how many seconds it wants to run again (None: at its interval).
`repeat` calls it, listens for its hint, reports its errors and backs off. Two nodes doing the same duty do no harm.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice

from msgspec.structs import replace

from tickwork.cron import Cron
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.host import is_gone
from tickwork.model.facts import Bus, Event, Fact
from tickwork.model.tasks import Misfire, Overlap, Schedule, Spec, Status
from tickwork.observe.loggers import Log
from tickwork.store.base import Advance, Settled, Store

SKIP_TOLERANCE = 5_000  # a tick this late still counts as on time for misfire="skip"
COUNT_MAX = 1_000  # missed ticks are counted up to here
BACKOFF_MAX = 30.0
PRUNE_AGAIN = 1.0
PRUNE_LOOK = 5.0  # `retention_max` holds within that time, however rarely old tasks are to be removed
WORKERS_A_SECOND = 100
UNAVAILABLE_MAX = 1.0  # for a store that cannot be reached: work must go on soon after its return

_LOG = Log.of(None, "duties")

Duty = Callable[[], Awaitable[float | None]]


async def repeat(
    name: str, duty: Duty, interval: float, store: Store, topic: str | None = None, log: Log = _LOG
) -> None:
    """Run a duty for ever; cancelled when the node stops or is no leader any more."""
    try:
        await _repeat(name, duty, interval, store, topic, log)
    finally:
        store.contact.forget(name)


async def _repeat(name: str, duty: Duty, interval: float, store: Store, topic: str | None, log: Log) -> None:
    failures = 0
    with store.hint(topic or f"*{name}") as hint:
        while True:
            try:
                pause = await duty()
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
            except Exception:  # a bug in one duty must not end it, nor the others
                failures += 1
                pause = min(1.0 * 2.0 ** min(failures, 5), BACKOFF_MAX)
                log.exception("%s failed, trying again in %.1f s", name, pause)
            if pause == 0:
                await asyncio.sleep(0)
            else:
                await hint.wait(interval if pause is None else min(pause, interval) if not failures else pause)


async def promote(store: Store, limit: int) -> float | None:
    next_due_in = (await store.promote(limit)).next_due_in
    return None if next_due_in is None else next_due_in / 1000


async def reclaim(store: Store, limit: int, log: Log = _LOG) -> float | None:
    taken = await store.reclaim(limit)
    for worker_id in taken.lost_workers:
        log.warning("worker %s has not been heard of for a whole lease: counted as lost", worker_id)
    if taken.ids:
        log.warning("took back %d tasks of lost workers", len(taken.ids))
    return 0 if len(taken.ids) >= limit else None


async def take_back(store: Store, limit: int, every: float = 0.0, log: Log = _LOG) -> float | None:
    """Work of processes of this host that are provably gone need not wait for its leases."""
    workers = await store.workers()
    dead = [
        worker for worker in workers if worker.lost_at is None and is_gone(worker.host, worker.pid, worker.pid_started)
    ]
    gone, nodes = tuple(worker.id for worker in dead), tuple(worker.node for worker in dead)
    taken = 0
    while gone:  # they count as lost once all was taken back
        ids = (await store.reclaim(limit, gone, nodes=nodes)).ids
        taken += len(ids)
        if len(ids) < limit:
            log.warning("processes of this host are gone; tasks taken back: %d (%s)", taken, ", ".join(gone))
            break
    return max(every, len(workers) / WORKERS_A_SECOND)  # every node looks at all: with many, each looks less often


async def propagate(store: Store, limit: int, bus: Bus) -> float | None:
    """Tell dependants and schedules what became of the tasks they wait for."""
    settled = await store.settled(limit)
    for entry in settled:
        await _tell_outcome(store, entry, bus)
        await store.unsettle([entry])
    return 0 if len(settled) == limit else None


async def _tell_outcome(store: Store, entry: Settled, bus: Bus) -> None:
    for dependant in entry.dependants:
        await store.resolve(dependant, entry.id, entry.status is Status.SUCCESS, entry.fence)
    if entry.schedule_id is None:
        return
    schedule = await store.report_run(entry.schedule_id, entry.id, entry.status, entry.fence)
    if schedule is not None and _exhausted(schedule, entry.status):
        reason = f"task {entry.id} used up its retries"
        await store.set_schedule(schedule.id, stopped=reason)
        bus.publish(Event(0, store.now(), Fact.SCHEDULE_STOPPED, schedule.id, detail=reason))


def _exhausted(schedule: Schedule, status: Status) -> bool:
    return schedule.active and schedule.on_exhausted == "stop" and status in (Status.DEAD, Status.FAILED)


async def prune(store: Store, limit: int) -> float | None:
    """Where something was removed there will soon be more: tasks keep ending, and as many are kept as may be."""
    pruned = await store.prune(limit)
    if pruned >= limit:
        return 0
    return PRUNE_AGAIN if pruned else None


async def fire_schedules(store: Store, limit: int, bus: Bus, log: Log = _LOG) -> float | None:
    """Turn every tick that is due into a task, once, whoever else does the same."""
    due, later = await store.due_schedules(limit)
    # Together, since each of them waits for the store several times; and to the end, so that none goes on unwatched.
    fired = await asyncio.gather(*(_try_to_fire(store, schedule, bus, log) for schedule in due), return_exceptions=True)
    for error in fired:
        if isinstance(error, BaseException):
            raise error
    if due:
        return 0 if all(fired) else 1.0  # what was fired has a next tick now, which may be the first of all
    return None if later is None else later / 1000


async def _try_to_fire(store: Store, schedule: Schedule, bus: Bus, log: Log) -> bool:
    try:
        await fire(store, schedule, bus)
    except StoreError:
        raise
    except Exception:  # a zone that this host does not know, say: it must not hold up the others
        log.exception("schedule %s cannot be fired here, trying again", schedule.id)
        return False
    return True


def cron_of(schedule: Schedule) -> Cron:
    return Cron(schedule.cron or "", schedule.timezone, "instant" if schedule.dst == "instant" else "once")


async def fire(store: Store, schedule: Schedule, bus: Bus) -> None:
    now, seen = store.now(), schedule.next_at
    if schedule.cron is None or seen is None:
        return
    cron = cron_of(schedule)
    ticks, missed = ticks_to_run(schedule, cron, seen, now)
    step, runs = Advance(cron.next_ms(now), missed=missed), tuple[Spec, ...]()
    if ticks:
        before = await _unfinished(store, schedule)
        if before is not None and schedule.overlap is Overlap.SKIP:
            step = replace(step, skipped=before, missed=missed + len(ticks) - 1)
        else:
            runs = tuple(_runs_of(schedule, ticks, before))
    # In one step: whoever comes late finds that the schedule has moved on, and creates nothing; and no tick is without
    # its task, or its task unknown to the next leader, if this process dies.
    done = await store.advance(schedule.id, seen, step, runs)
    if done is None:
        return
    if done.fired is not None:
        _tell(bus, now, Fact.SCHEDULE_FIRED, schedule, done.fired)
    elif done.skipped:
        _tell(bus, now, Fact.SCHEDULE_SKIPPED, schedule, done.skipped)
    else:
        _tell(bus, now, Fact.SCHEDULE_MISSED, schedule, f"{missed} ticks")


def _runs_of(schedule: Schedule, ticks: list[int], before: str | None) -> Iterator[Spec]:
    """Ticks that are caught up one after another queue behind each other, unless overlapping is allowed."""
    for tick in ticks:
        alone = before is None or schedule.overlap is Overlap.ALLOW
        run = run_of(schedule, tick, () if alone else (before,))  # type: ignore[arg-type]
        before = run.id
        yield run


def ticks_to_run(schedule: Schedule, cron: Cron, first: int, now: int) -> tuple[list[int], int]:
    """The ticks from `first` to `now` that are to run by the misfire policy, and how many are not."""
    newest = _newest(cron, first, now)
    if schedule.misfire is Misfire.ALL:
        run = _newest_ticks(cron, max(first, now - schedule.misfire_grace), now, schedule.misfire_cap)
    else:
        grace = SKIP_TOLERANCE if schedule.misfire is Misfire.SKIP else schedule.misfire_grace
        run = [newest] if now - newest <= grace else []
    if first == newest:
        return run, 1 - len(run)
    missed = sum(1 for _ in islice(_ticks(cron, first, now), COUNT_MAX + len(run))) - len(run)
    return run, missed


def _ticks(cron: Cron, first: int | None, now: int) -> Iterator[int]:
    tick = first
    while tick is not None and tick <= now:
        yield tick
        tick = cron.next_ms(tick)


def _newest_ticks(cron: Cron, first: int, now: int, most: int) -> list[int]:
    """The last ticks from `first` to `now`, at most so many, without walking through all that were before."""

    def ticks_from(start: int) -> list[int]:
        return list(islice(_ticks(cron, cron.next_ms(start - 1), now), most + 1))

    start = first + bisect_left(range(first, now), True, key=lambda moment: len(ticks_from(moment)) <= most)
    return ticks_from(start)


def _newest(cron: Cron, first: int, now: int) -> int:
    """The last tick not after `now`, by halving the time in which it must lie rather than by walking all ticks."""
    newest, low, high = first, first, now
    while low < high:
        middle = (low + high) // 2
        tick = cron.next_ms(middle)
        if tick is not None and tick <= now:
            newest = low = tick
        else:
            high = middle
    return newest


def run_of(schedule: Schedule, tick: int, after: tuple[str, ...] = (), *, by_hand: str = "") -> Spec:
    """The task of one tick. Its id and nonce follow from the tick, so a second one changes nothing. `by_hand` makes it
    another one, beside the tick of that moment."""
    return replace(
        schedule.task,
        id=f"{schedule.id}@{tick}{by_hand}",
        nonce="tick",
        schedule_id=schedule.id,
        scheduled_at=tick,
        depends_on=after,
        run_after="end",
    )


async def _unfinished(store: Store, schedule: Schedule) -> str | None:
    if schedule.last_task_id is None:
        return None
    record = await store.get(schedule.last_task_id)
    return None if record is None or record.status.ended else schedule.last_task_id


def _tell(bus: Bus, now: int, fact: Fact, schedule: Schedule, detail: str) -> None:
    if bus.wants(fact):
        bus.publish(Event(0, now, fact, schedule.id, schedule.task.type, schedule.task.queue, detail=detail))
