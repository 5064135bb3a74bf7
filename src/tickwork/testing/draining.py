"""`drain` and `wait_for`: let everything run, and look at what became of it, without sleeping."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tickwork.clock import ManualClock, to_millis
from tickwork.errors import ConfigError, TaskNotFound
from tickwork.handlers.options import aware, wait_limit
from tickwork.model.tasks import Status
from tickwork.store.hints import EVENTS
from tickwork.texts import shown

if TYPE_CHECKING:
    from tickwork.model.info import TaskInfo
    from tickwork.scheduler import Scheduler
    from tickwork.store.contract import Store

LOOK_AGAIN = 0.05  # seconds behind the hint that something has happened
LOOK_SOON = 0.001  # the same at first: not everything that is waited for raises that hint
NAMED_MAX = 5  # tasks told one by one when `drain` gives up
STARTED = (Status.READY, Status.ASSIGNED, Status.RUNNING)


async def drain(
    app: Scheduler,
    timeout: float | timedelta = 10,
    *,
    until: datetime | timedelta | float | None = None,
) -> None:
    """Return when nothing is ready, running, due, or still to be told to dependants and schedules.

    What waits for a later time stays, unless `until` says how far to go: a time, or how long from now. Then the
    scheduler's `ManualClock` is moved to each due time on the way, one after the other: of delayed tasks, retries,
    ticks of schedules, and deadlines. Everything runs at its own time, and the clock ends at `until`.

        await drain(app, until=timedelta(days=30))

    Raises `TimeoutError` if one of these times takes longer than `timeout` of real time, naming what is left and why.
    """
    store = await app._open()
    patience = wait_limit("timeout", timeout)
    if until is None:
        await _drain(app, store, patience)
        return
    clock = _clock_of(app)
    end = _end(clock.now(), until)
    while True:
        await _beaten(app, store, patience)
        due_at = await _drain(app, store, patience)
        if clock.now() >= end:
            return
        clock.set(end if due_at is None else min(due_at, end))


def _clock_of(app: Scheduler) -> ManualClock:
    if not isinstance(app._clock, ManualClock):
        raise ConfigError(
            "drain(until=...) moves the clock, so the scheduler needs one that can be moved: "
            "run(app, clock=ManualClock()), or Scheduler(..., clock=ManualClock())"
        )
    return app._clock


def _end(now: int, until: datetime | timedelta | float) -> int:
    if isinstance(until, datetime):
        end = to_millis(aware("until", until))
    else:
        end = now + round(wait_limit("until", until) * 1000)
    if end < now:
        raise ConfigError(f"until is {shown(until)}, before the time of the clock, and drain moves forward only")
    return end


async def _beaten(app: Scheduler, store: Store, patience: float) -> None:
    """Until the workers have seen the time of the clock. By real time they have no reason to send a heartbeat, and
    after a few steps without one they would count as lost."""
    deadline = time.monotonic() + patience
    node = None if app._node is None else app._node.id
    while True:
        members = [worker for worker in await store.members.workers() if worker.node == node and worker.lost_at is None]
        if all(worker.beat_at >= store.now() for worker in members) or time.monotonic() >= deadline:
            return
        await asyncio.sleep(LOOK_SOON)


async def _drain(app: Scheduler, store: Store, patience: float) -> int | None:
    """Answers when the next task, tick or deadline is due; None if nothing waits for a time."""
    deadline = time.monotonic() + patience
    quiet: object = None
    seen, pause = quiet, LOOK_SOON
    with store.hint(EVENTS) as hint:
        while True:
            left, due_at, mark = await _look(store)
            if not left and mark == quiet:  # two looks and nothing happened in between: it was all true at once
                return due_at
            quiet = None if left else mark
            if left and time.monotonic() >= deadline:
                raise TimeoutError(f"not drained within {patience:g} s: {', '.join(left)}{await _named(app)}")
            if left:
                pause = LOOK_SOON if mark != seen else min(2 * pause, LOOK_AGAIN)
                seen = mark
                await hint.wait(pause)


async def _look(store: Store) -> tuple[list[str], int | None, object]:
    """What is left to do, the next due time, and a mark that differs when anything has happened since the last look."""
    now = store.now()
    statuses = (await store.queries.stats()).statuses
    left = [f"{statuses[status]} {status}" for status in STARTED if statuses.get(status)]
    next_due_in = await store.tasks.promote(100)
    if next_due_in == 0:
        left.append("delayed tasks that are due")
    if untold := await store.tasks.outbox(100):
        left.append(f"{len(untold)} ends not told to dependants and schedules yet")
    schedules, next_tick_in = await store.schedules.due(100)
    left += [f"schedule {schedule.id} is due" for schedule in schedules[:NAMED_MAX]]
    waits = [wait for wait in (next_due_in, next_tick_in) if wait is not None]
    return left, now + min(waits) if waits else None, (await store.log.last(), statuses)


async def _named(app: Scheduler) -> str:
    lines = []
    for status in STARTED:
        page = await app.list_tasks(status, limit=NAMED_MAX)
        lines += [f"\n  {info.type} {info.id}: {await app.explain(info.id)}" for info in page]
    return "".join(lines[:NAMED_MAX])


async def wait_for(app: Scheduler, task_id: str, status: Status | str, timeout: float | timedelta = 10) -> TaskInfo:
    """Return the task once it has that status.

    Raises `AssertionError` when it ends in another way, and `TimeoutError` after `timeout` of real time.

        await wait_for(app, handle.id, "running")
    """
    wanted = Status.parse(status) if isinstance(status, str) else status
    store = await app._open()
    patience = wait_limit("timeout", timeout)
    deadline = time.monotonic() + patience
    with store.hint(EVENTS) as hint:
        while True:
            found = "is not there"
            try:
                info = await app.get_task(task_id)
            except TaskNotFound:  # the run of a schedule may be yet to come
                pass
            else:
                if info.status is wanted:
                    return info
                found = f"is {info.status}" + (f" ({info.last_error})" if info.last_error else "")
                if info.status.ended:
                    raise AssertionError(f"task {task_id} {found} and will not become {wanted}")
            if time.monotonic() >= deadline:
                raise TimeoutError(f"task {task_id} {found}, and was not {wanted} within {patience:g} s")
            await hint.wait(LOOK_AGAIN)
