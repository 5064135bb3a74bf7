"""Firing schedules: a tick that is due becomes a task, in one step with the move to the next tick."""

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
    """Turn every tick that is due into a task, once, whoever else does the same."""
    due, later = await store.schedules.due(limit)
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
    done = await store.schedules.advance(schedule.id, seen, step, runs)
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


async def _unfinished(store: Store, schedule: Schedule) -> str | None:
    if schedule.last_task_id is None:
        return None
    record = await store.queries.get(schedule.last_task_id)
    return None if record is None or record.status.ended else schedule.last_task_id


def _tell(bus: Bus, now: int, fact: Fact, schedule: Schedule, detail: str) -> None:
    if bus.wants(fact):
        bus.publish(Event(0, now, fact, schedule.id, schedule.task.type, schedule.task.queue, detail=detail))
