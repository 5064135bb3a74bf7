"""Firing schedules: a tick that is due becomes a task, in the same store transition that sets the next tick."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from msgspec.structs import replace

from tickwork.errors import StoreError
from tickwork.model.facts import Event, Fact
from tickwork.model.schedules import Overlap, Schedule
from tickwork.model.tasks import Spec
from tickwork.model.ticks import cron_of, run_of, ticks_to_run
from tickwork.node.duties import LOG
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.store.contract import Advance, Store


async def fire_schedules(store: Store, limit: int, bus: Bus, log: Log = LOG) -> float | None:
    """Create the tasks of all ticks that are due. Each tick gets one task, also if other nodes do this at the same
    time."""
    due, later = await store.schedules.due(limit)
    # Concurrently, since each waits for the store several times. All are awaited, so that none goes on after an error.
    fired = await asyncio.gather(*(_try_to_fire(store, schedule, bus, log) for schedule in due), return_exceptions=True)
    for error in fired:
        if isinstance(error, BaseException):
            raise error
    if due:
        return 0 if all(fired) else 1.0  # a schedule that was fired has a new next tick, which may be due first
    return None if later is None else later / 1000


async def _try_to_fire(store: Store, schedule: Schedule, bus: Bus, log: Log) -> bool:
    try:
        await fire(store, schedule, bus)
    except StoreError:
        raise
    except Exception:  # for instance a time zone that this host does not have: the others must still fire
        log.exception("schedule %s cannot be fired here, trying again", schedule.id)
        return False
    return True


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
    # One transition creates the tasks and sets the next tick. A late leader finds that the next tick has changed, and
    # creates nothing. If this process dies, either both have happened or neither.
    done = await store.schedules.advance(schedule.id, seen, step, runs)
    if done is None:
        return
    if done.fired is not None:
        _publish(bus, now, Fact.SCHEDULE_FIRED, schedule, done.fired)
    elif done.skipped:
        _publish(bus, now, Fact.SCHEDULE_SKIPPED, schedule, done.skipped)
    else:
        _publish(bus, now, Fact.SCHEDULE_MISSED, schedule, f"{missed} ticks")


def _runs_of(schedule: Schedule, ticks: list[int], before: str | None) -> Iterator[Spec]:
    """The tasks of the ticks. Each depends on the one before it, unless runs may overlap."""
    for tick in ticks:
        alone = before is None or schedule.overlap is Overlap.ALLOW
        run = run_of(schedule, tick, () if alone else (before,))  # type: ignore[arg-type]
        before = run.id
        yield run


async def _unfinished(store: Store, schedule: Schedule) -> str | None:
    if schedule.last_task_id is None:
        return None
    record = await store.queries.get(schedule.last_task_id)
    return None if record is None or record.status.ended else schedule.last_task_id


def _publish(bus: Bus, now: int, fact: Fact, schedule: Schedule, detail: str) -> None:
    if bus.wants(fact):
        bus.publish(Event(0, now, fact, schedule.id, schedule.task.type, schedule.task.queue, detail=detail))
