"""Schedules: definitions that fire tasks by a cron line, or only when they are triggered."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec, Status

SCHEDULES_PAGE = 250


class Advance(Struct, frozen=True):
    """A step of a schedule: its next tick, and what became of those before it."""

    next_at: int | None
    fired: str | None = None  # the task of the last tick that was run
    fire_at: int | None = None
    skipped: str = ""  # the earlier task that had not ended yet
    missed: int = 0


class Schedules(Protocol):
    async def put(
        self, schedule: Schedule, if_changed: bool = False, create: bool = False, seen: Schedule | None = None
    ) -> Schedule | None:
        """Create or replace a schedule; `created_at`, a pause and its history are kept, and so is `next_at` if the cron
        line, the zone and `dst` are those of before.

        `if_changed`: a definition equal to the stored one changes nothing, so that a restart does not move `next_at`.
        `create`: answers None, and changes nothing, when there is one already.
        `seen`: answers None, and changes nothing, unless there is one whose definition is still that of `seen`. Ticks,
        pauses and ends of runs since then do not count.
        """

    async def drop(self, schedule_id: str) -> bool:
        """False when there was none."""

    async def get(self, schedule_id: str) -> Schedule | None: ...

    async def page(self, cursor: str | None = None) -> tuple[list[Schedule], str | None]:
        """A page of about `SCHEDULES_PAGE` schedules, sorted by id, and the cursor of the next page, None at the end.
        A store need not keep the order from page to page, and may show a schedule twice; but each that is there all
        the while is shown."""

    async def due(self, limit: int, after: str | None = None) -> tuple[list[Schedule], int | None]:
        """Enabled schedules whose time has come, in the order of their times, ties by id; and in how many milliseconds
        the next one is due, 0 when there are more than `limit` now. `after` is one that is still due, since it could
        not be fired: those behind it are wanted."""

    async def advance(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...] = ()
    ) -> Advance | None:
        """Compare-and-set of `next_at`: None, and nothing is changed, when it is not `seen` any more.

        Notes a fire, a skip, missed ticks. The tasks of `ticks` are created in the same step, so none is ever created
        twice. In the answer `fired` is one of them, or `skipped` names the task that holds their dedup key. A tick that
        depends on a task which is not there does not wait for it.
        """

    async def change(
        self,
        schedule_id: str,
        *,
        paused: bool | None = None,
        next_at: int | None = None,
        stopped: str | None = None,
    ) -> bool:
        """Pause, resume or stop; a resume gives the next tick. False when there is no such schedule."""

    async def report_run(
        self, schedule_id: str, task_id: str, status: Status, fence: int | None = None
    ) -> Schedule | None:
        """Note how a schedule's last run ended; answers the schedule. None, and nothing is changed, when there is no
        such schedule, or when the task has been retried since the end with that fence."""
