"""`app.schedules`: create, read, change and run schedules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Unpack, cast

from msgspec import Struct
from msgspec.structs import replace

from tickwork.backoff import Backoff
from tickwork.client.access import Access
from tickwork.client.editing import OF_SCHEDULE, ScheduleChanges, check_dedup, edited
from tickwork.client.reports import runs_of
from tickwork.client.targets import check_targets
from tickwork.client.views import payload_of
from tickwork.clock import to_datetime
from tickwork.cron.zones import find_zone
from tickwork.errors import ConfigError, DuplicateTask, ScheduleNotFound, StoreError, StoreUnavailable, TaskExists
from tickwork.handlers.context import copied
from tickwork.handlers.options import ScheduleOptions, TaskOptions, known_only, known_schedule, name
from tickwork.handlers.registry import Registry
from tickwork.ids import new_tail
from tickwork.model import ticks
from tickwork.model.info import Page
from tickwork.model.reports import ScheduleRun
from tickwork.model.schedules import UNDECLARED, Misfire, Overlap, Schedule
from tickwork.model.tasks import Priority
from tickwork.payload.parameters import MISSING
from tickwork.texts import shown

EDIT_TRIES = 50  # each failure means that another process has changed the schedule meanwhile


class ScheduleInfo(Struct, frozen=True, kw_only=True):
    """A schedule as users see it."""

    id: str
    name: str
    type: str
    cron: str | None
    timezone: str
    description: str
    enabled: bool
    overlap: Overlap
    misfire: Misfire
    on_exhausted: str
    executor: str
    target: str | None = None
    requires: dict[str, str] = {}
    next_at: datetime | None
    last_fire_at: datetime | None
    last_task_id: str | None
    last_status: str
    stopped: str
    created_at: datetime
    updated_at: datetime
    # What its runs are submitted with; None is what the handler says where they run.
    payload: Any = None
    queue: str = "default"
    priority: int = Priority.NORMAL
    max_retry: int | None = None
    timeout: float | None = None
    retry: Backoff | None = None
    key: str | None = None
    tags: dict[str, str] = {}
    context: dict[str, Any] = {}
    serializer: str = "json"
    dedup_key: str | None = None
    dedup_ttl: float | None = None
    unique: str | None = None
    retention: float | None = None
    dst: str = "once"
    misfire_grace: float = 3600.0
    misfire_cap: int = 100


class Schedules:
    """Durable recurring definitions. Each tick becomes a task, exactly once, whoever fires it."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def put(
        self,
        id: str,
        type: str,
        payload: Any = MISSING,
        *,
        cron: str | None = None,
        create: bool = False,
        if_changed: bool = False,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleInfo:
        """Create or replace a schedule; without a cron line it runs only when triggered.

        `create` refuses to replace one; `if_changed` leaves an equal one as it is.
        """
        schedule = self.build(id, type, payload, cron, options)
        await check_targets(await self._access.open_to_submit(), [schedule.task])
        put = await self._put(schedule, if_changed, create)
        if put is None:
            raise TaskExists(id, "schedule")
        return info_of(put, self._access.registry)

    async def _put(self, schedule: Schedule, if_changed: bool, create: bool) -> Schedule | None:
        self._access.check_that_tasks_can_run()
        store = await self._access.open_to_submit()
        if schedule.cron is not None:
            schedule = replace(schedule, next_at=ticks.cron_of(schedule).next_ms(store.now()))
        return await store.schedules.put(schedule, if_changed, create)

    async def _declare(self, id: str, type: str, payload: Any, cron: str, options: ScheduleOptions) -> None:
        """Put a schedule that a program has in its code. If it had stopped because no process declared it, it goes on,
        and its misfire rule decides about the ticks of that time."""
        schedule = replace(self.build(id, type, payload, cron, options), declared=True)
        put = await self._put(schedule, if_changed=True, create=False)
        if put is not None and put.stopped == UNDECLARED:
            await (await self._access.open_store()).schedules.change(id, stopped="")

    def build(self, id: str, type: str, payload: Any, cron: str | None, options: ScheduleOptions) -> Schedule:
        """Check everything that can be checked without the store."""
        known_only(options, ScheduleOptions)
        of_task = (*TaskOptions.__annotations__, "dedup_key", "dedup_ttl", "unique")
        given = {key: options[key] for key in of_task if key in options}  # type: ignore[literal-required]
        task = self._access.spec(type, payload, cast("TaskOptions", given))
        check_dedup(self._access, task)
        if len(name("a schedule's id", id)) > 100:
            raise ConfigError(
                f"a schedule's id must be at most 100 characters, as its runs add a time to it: {shown(id)}"
            )
        schedule = Schedule(
            id=id,
            cron=cron,
            timezone=find_zone(options.get("timezone") or self._access.config.timezone).name,
            task=replace(task, id="", nonce=""),
            **{name: OF_SCHEDULE[name](value) for name, value in options.items() if name in OF_SCHEDULE},
        )
        if cron is not None:
            ticks.cron_of(schedule)
        return schedule

    async def edit(self, schedule_id: str, **changes: Unpack[ScheduleChanges]) -> ScheduleInfo:
        """Change what is named, and leave all else as it is: its history, a pause, and the next tick where neither the
        cron line nor the zone is changed.

        What may be changed are `type`, `payload`, `cron` and the options of `put`. None takes an option of its runs
        back to its default; `cron=None` leaves only triggers. Changes that others make at the same time are kept.
        """
        for _ in range(EDIT_TRIES):
            store, old = await self._access.open_to_submit(), await self._find(schedule_id)
            _refuse_unreadable(old)
            new = edited(self._access, old, changes, store.now())
            await check_targets(store, [new.task])
            put = await store.schedules.put(new, seen=old)
            if put is not None:
                return info_of(put, self._access.registry)
        raise StoreUnavailable(f"schedule {schedule_id} is changed by others all the time")

    async def list(self, *, cursor: str | None = None) -> Page[ScheduleInfo]:
        """A page of about 250 schedules, sorted by id; `cursor` of a page asks for the next one. `async for schedule in
        app.schedules` goes through all pages."""
        if cursor is not None and not isinstance(cursor, str):
            raise ConfigError(f"cursor must be a text, not {shown(cursor)}")
        found, cursor = await (await self._access.open_store()).schedules.page(cursor)
        return Page([info_of(schedule, self._access.registry) for schedule in found], cursor)

    async def __aiter__(self) -> AsyncIterator[ScheduleInfo]:
        cursor: str | None = None
        while True:
            page = await self.list(cursor=cursor)
            for schedule in page:
                yield schedule
            cursor = page.cursor
            if cursor is None:
                return

    async def get(self, schedule_id: str) -> ScheduleInfo:
        return info_of(await self._find(schedule_id), self._access.registry)

    async def _find(self, schedule_id: str) -> Schedule:
        schedule = await (await self._access.open_store()).schedules.get(known_schedule(schedule_id))
        if schedule is None:
            raise ScheduleNotFound(schedule_id)
        return schedule

    async def pause(self, schedule_id: str) -> None:
        if not await (await self._access.open_store()).schedules.change(known_schedule(schedule_id), paused=True):
            raise ScheduleNotFound(schedule_id)

    async def resume(self, schedule_id: str) -> None:
        """Go on with the next tick from now; ticks of the pause are not made up for."""
        store, schedule = await self._access.open_store(), await self._find(schedule_id)
        next_at = None if schedule.cron is None else ticks.cron_of(schedule).next_ms(store.now())
        await store.schedules.change(schedule_id, paused=False, next_at=next_at, stopped="")

    async def trigger(self, schedule_id: str) -> str:
        """Run it once now, beside its ticks; answers the task's id."""
        store, schedule = await self._access.open_store(), await self._find(schedule_id)
        _refuse_unreadable(schedule)
        run = ticks.run_of(schedule, store.now(), by_hand=f".{new_tail()}")
        (receipt,) = await self._access.send(store, [run], None)
        if receipt.verdict == "duplicate":
            raise DuplicateTask(schedule.task.dedup_key or "", receipt.other)
        return receipt.id

    async def next_runs(self, schedule_id: str, n: int = 5) -> Sequence[datetime]:
        schedule = await self._find(schedule_id)
        if schedule.cron is None or not schedule.active:
            return []
        return ticks.cron_of(schedule).upcoming(n, to_datetime((await self._access.open_store()).now()))

    async def runs(self, schedule_id: str) -> Sequence[ScheduleRun]:
        """How its last runs ended, 60 at most, the latest first; ticks that were left out are among them. A run is told
        a few seconds after its end."""
        return await runs_of(self._access, schedule_id)

    async def delete(self, schedule_id: str) -> None:
        if not await (await self._access.open_store()).schedules.drop(known_schedule(schedule_id)):
            raise ScheduleNotFound(schedule_id)


def _refuse_unreadable(schedule: Schedule) -> None:
    if schedule.unreadable:
        raise StoreError(f"schedule {schedule.id}: {schedule.stopped}; delete it, or put it anew")


def info_of(schedule: Schedule, registry: Registry) -> ScheduleInfo:
    task = schedule.task
    cron = None if schedule.cron is None else ticks.cron_of(schedule)
    return ScheduleInfo(
        id=schedule.id,
        name=schedule.name or schedule.id,
        type=schedule.task.type,
        cron=schedule.cron,
        timezone=schedule.timezone if cron is None else cron.timezone,  # the line may name its own
        description="only when triggered" if cron is None else cron.describe(),
        enabled=schedule.active,
        overlap=schedule.overlap,
        misfire=schedule.misfire,
        on_exhausted=schedule.on_exhausted,
        executor=task.executor or "local",
        target=task.target,
        requires=dict(task.requires),
        next_at=None if schedule.next_at is None or not schedule.active else to_datetime(schedule.next_at),
        last_fire_at=None if schedule.last_fire_at is None else to_datetime(schedule.last_fire_at),
        last_task_id=schedule.last_task_id,
        last_status=schedule.last_status,
        stopped=schedule.stopped,
        created_at=to_datetime(schedule.created_at),
        updated_at=to_datetime(schedule.updated_at),
        payload=payload_of(task, registry),
        queue=task.queue,
        priority=task.priority,
        max_retry=task.max_retry,
        timeout=task.timeout,
        retry=task.retry,
        key=task.key,
        tags=dict(task.tags),
        context=copied(task.context),
        serializer=task.serializer,
        dedup_key=task.dedup_key,
        dedup_ttl=task.dedup_ttl / 1000 if task.dedup_key is not None and task.unique is None else None,
        unique=task.unique,
        retention=None if task.retention is None else task.retention / 1000,
        dst=schedule.dst,
        misfire_grace=schedule.misfire_grace / 1000,
        misfire_cap=schedule.misfire_cap,
    )
