"""Schedules that were declared in code, and that nobody declares any more: they stop, and go on when somebody does.

Each worker says in its heartbeat which schedules its program declares. What the leader has seen is kept in its memory
only: a new leader waits for a whole `GRACE` before it stops a schedule, so that a deploy or a restart misses no tick.
A schedule that has stopped keeps its next tick, so that its misfire rule decides what is run when it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tickwork.model.members import Worker
from tickwork.model.schedules import UNDECLARED, Schedule
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store

GRACE = 300_000  # milliseconds for which a schedule goes on after the last process that declares it is gone
LOOK = 60.0  # seconds between two looks at all schedules
DECLARES_MAX = 200  # names that a heartbeat carries; a program with more is taken to declare every schedule


def declares(names: Collection[str]) -> tuple[str, ...] | None:
    """What a heartbeat says of the schedules of this program. None: there are too many to name."""
    return tuple(names) if len(names) <= DECLARES_MAX else None


def declared_by(workers: Collection[Worker], now: int) -> set[str] | None:
    """The schedules that a member declares which is up, or was lost a short time ago. None: it may be any schedule,
    since one of them does not say."""
    names: set[str] = set()
    for worker in workers:
        if worker.lost_at is not None and now - worker.lost_at >= GRACE:
            continue
        if worker.declares is None:
            return None
        names.update(worker.declares)
    return names


class Declarations:
    """The duty of the leader. `own` are the schedules that its own program declares: it may have no worker."""

    def __init__(self, store: Store, own: Callable[[], Collection[str]], log: Log) -> None:
        self._store = store
        self._own = own
        self._log = log
        self._missing: dict[str, int] = {}  # since when each schedule was seen to be declared by nobody
        self._looked_at = 0

    async def look(self) -> float | None:
        store, now = self._store, self._store.now()
        if now - self._looked_at > GRACE:  # another node has led meanwhile, or nobody
            self._missing = {}
        self._looked_at = now
        names = declared_by(await store.members.workers(), now)
        missing: dict[str, int] = {}
        cursor: str | None = None
        while True:
            schedules, cursor = await store.schedules.page(cursor)
            for schedule in schedules:
                wanted = not schedule.declared or names is None or schedule.id in names or schedule.id in self._own()
                if wanted and schedule.stopped == UNDECLARED:
                    await self._go_on(schedule)
                elif not wanted and schedule.active:
                    missing[schedule.id] = self._missing.get(schedule.id, now)
            if cursor is None:
                break
        self._missing = missing
        for schedule_id, since in list(missing.items()):
            if now - since >= GRACE:
                await self._stop(schedule_id)
        return None

    async def _stop(self, schedule_id: str) -> None:
        del self._missing[schedule_id]
        if await self._store.schedules.change(schedule_id, stopped=UNDECLARED):
            self._log.warning(
                "schedule %s has stopped, since %s; to remove it: tickwork schedules delete %s",
                schedule_id, UNDECLARED, schedule_id,
            )  # fmt: skip

    async def _go_on(self, schedule: Schedule) -> None:
        await self._store.schedules.change(schedule.id, stopped="")
        self._log.info("schedule %s goes on, since a running process declares it again", schedule.id)
