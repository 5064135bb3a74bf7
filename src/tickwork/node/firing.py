"""Firing schedules: a tick that is due becomes a task, in the same store transition that sets the next tick."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from msgspec.structs import replace

from tickwork.client.middleware import SubmitChain
from tickwork.errors import ConfigError, StoreError, TickworkError
from tickwork.model.facts import Fact
from tickwork.model.schedules import Overlap, Schedule
from tickwork.model.tasks import Spec
from tickwork.model.ticks import cron_of, run_of, ticks_to_run
from tickwork.node.duties import LOG
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.observe.observations import ScheduleTicked
from tickwork.store.contract import Advance, Receipt, Store


async def fire_schedules(
    store: Store, limit: int, bus: Bus, log: Log = LOG, chain: SubmitChain | None = None
) -> float | None:
    """Create the tasks of all ticks that are due. Each tick gets one task, also if other nodes do this at the same
    time. `chain` is the middleware around submits, None if there is none."""
    after: str | None = None
    while True:
        due, later = await store.schedules.due(limit, after)
        # Concurrently, since each waits for the store several times. All are awaited, so that none goes on after an
        # error.
        firing = (_try_to_fire(store, schedule, bus, log, chain) for schedule in due)
        fired = await asyncio.gather(*firing, return_exceptions=True)
        for error in fired:
            if isinstance(error, BaseException):
                raise error
        failed = [schedule.id for schedule, done in zip(due, fired, strict=True) if not done]
        after = failed[-1] if failed else after
        if later != 0 or after is None:
            break  # else those that cannot be fired would hold up the ones behind them
    if after is not None:
        return 1.0
    if due:
        return 0  # a schedule that was fired has a new next tick, which may be due first
    return None if later is None else later / 1000


async def _try_to_fire(store: Store, schedule: Schedule, bus: Bus, log: Log, chain: SubmitChain | None) -> bool:
    try:
        await fire(store, schedule, bus, log, chain)
    except StoreError:
        raise
    except Exception:  # for instance a time zone that this host does not have: the others must still fire
        log.exception("schedule %s cannot be fired here, trying again", schedule.id)
        return False
    return True


async def fire(store: Store, schedule: Schedule, bus: Bus, log: Log = LOG, chain: SubmitChain | None = None) -> None:
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
    if chain is None or not runs:
        done = await store.schedules.advance(schedule.id, seen, step, runs)
    else:
        done = await _ThroughMiddleware(store, schedule, step, log).advance(chain, list(runs))
    if done is None:
        return
    late = max(now - seen, 0) / 1000
    if done.fired is not None:
        _publish(bus, Fact.SCHEDULE_FIRED, schedule, done.fired, late)
    elif done.skipped:
        _publish(bus, Fact.SCHEDULE_SKIPPED, schedule, done.skipped, late)
    else:
        _publish(bus, Fact.SCHEDULE_MISSED, schedule, f"{done.missed} ticks", late)


class _ThroughMiddleware:
    """One step of a schedule whose runs go through middleware first. The step is made once at most."""

    def __init__(self, store: Store, schedule: Schedule, step: Advance, log: Log) -> None:
        self._store, self._schedule, self._step, self._log = store, schedule, step, log
        self._wanted = 0
        self._made = False
        self._done: Advance | None = None

    async def advance(self, chain: SubmitChain, runs: list[Spec]) -> Advance | None:
        """A refusal by a middleware is a tick that is missed. Any other error of it leaves the schedule as it is, so
        that the tick is fired later, unless the step was made before."""
        self._wanted = len(runs)
        try:
            await chain.submit(runs, self._create)
        except BaseException as error:
            if isinstance(error, StoreError) or _stops_this_duty(error):
                raise
            if self._made:
                self._log.error("schedule %s: a middleware failed after its tick", self._schedule.id, exc_info=error)
            elif isinstance(error, TickworkError) and not isinstance(error, ConfigError):
                self._log.warning("schedule %s: a middleware has refused its run: %s", self._schedule.id, error)
            elif isinstance(error, Exception):
                raise
            else:  # SystemExit would end the node, and a cancellation from inside the duty
                raise RuntimeError(f"a middleware ended with {type(error).__name__}") from error
        if not self._made:
            await self._create([])
        return self._done

    async def _create(self, runs: list[Spec]) -> list[Receipt]:
        if self._made:
            raise ConfigError("a middleware may call next(call) once for the tick of a schedule")
        step = replace(self._step, missed=self._step.missed + self._wanted - len(runs))
        done = self._done = await self._store.schedules.advance(
            self._schedule.id, self._schedule.next_at, step, tuple(runs)
        )
        self._made = True
        if done is None:  # another node has fired it
            return [Receipt(run.id, "exists") for run in runs]
        if done.fired is None:
            return [Receipt(run.id, "duplicate", done.skipped) for run in runs]
        return [Receipt(run.id, "created") for run in runs]


def _stops_this_duty(error: BaseException) -> bool:
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


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


def _publish(bus: Bus, fact: Fact, schedule: Schedule, detail: str, late: float) -> None:
    if bus.wants(fact):
        bus.publish(fact, ScheduleTicked(fact, schedule.id, schedule.task.type, schedule.task.queue, detail, late))
