"""Schedules: create, edit, pause, trigger, and when they run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from msgspec import UNSET, Meta, Struct, UnsetType

from tickwork.client.reports import runs_of
from tickwork.client.schedules import ScheduleInfo, info_of
from tickwork.clock import to_datetime
from tickwork.cron import Cron
from tickwork.cron.zones import find_zone
from tickwork.errors import ConfigError, StoreError
from tickwork.model.reports import ScheduleRun
from tickwork.model.schedules import Schedule
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.operations import operation
from tickwork.server.operations.queues import Note
from tickwork.server.operations.tasks import Cursor, Name, Seconds, get_task
from tickwork.server.problems import refused_cursor
from tickwork.server.rows import TaskView

Line = Annotated[str, Meta(max_length=200)]
Zone = Annotated[str, Meta(max_length=64)]
Count = Annotated[int, Meta(ge=1, le=100)]
CALENDAR_MAX = 20_000  # runs that a calendar counts


class _Options(Struct, forbid_unknown_fields=True, kw_only=True):
    name: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET
    timezone: Zone | UnsetType | None = UNSET
    dst: Literal["once", "instant"] | UnsetType = UNSET
    overlap: Literal["skip", "queue", "allow"] | UnsetType = UNSET
    misfire: Literal["latest", "skip", "all"] | UnsetType = UNSET
    misfire_grace: Seconds | UnsetType = UNSET
    misfire_cap: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType = UNSET
    on_exhausted: Literal["stop", "continue"] | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    queue: Name | UnsetType | None = UNSET
    priority: Annotated[int, Meta(ge=1, le=10)] | UnsetType | None = UNSET
    max_retry: Annotated[int, Meta(ge=0, le=1000000)] | UnsetType | None = UNSET
    timeout: Seconds | UnsetType | None = UNSET
    retention: Seconds | UnsetType | None = UNSET
    key: Annotated[str, Meta(max_length=512)] | UnsetType | None = UNSET
    tags: dict[str, str] | UnsetType | None = UNSET
    context: dict[str, Any] | UnsetType | None = UNSET
    executor: Name | UnsetType | None = UNSET
    target: Name | UnsetType | None = UNSET
    requires: dict[str, str] | UnsetType | None = UNSET
    dedup_key: Annotated[str, Meta(max_length=512)] | UnsetType | None = UNSET
    dedup_ttl: Seconds | UnsetType | None = UNSET
    unique: Literal["queued", "unfinished"] | UnsetType | None = UNSET


class NewSchedule(_Options, forbid_unknown_fields=True, kw_only=True):
    """A schedule to create. Without a cron line it runs only when triggered."""

    id: Annotated[str, Meta(min_length=1, max_length=100, pattern="^[A-Za-z0-9._:@-]+$")]
    type: Name
    payload: Any | UnsetType = UNSET
    cron: Line | None = None


class EditSchedule(_Options, forbid_unknown_fields=True, kw_only=True):
    """What is named is changed, all else stays. null takes an option of its runs back to its default."""

    type: Name | UnsetType = UNSET
    payload: Any | UnsetType = UNSET
    cron: Line | UnsetType | None = UNSET


class PauseSchedule(Struct, forbid_unknown_fields=True):
    """`note` says why; the audit log keeps it."""

    note: Note = ""


class ScheduleRow(ScheduleInfo, frozen=True, kw_only=True):
    """A schedule, and how its last runs ended, the latest first. `declared` ones are written again by the program that
    has them in its code."""

    paused: bool
    declared: bool
    runs: list[ScheduleRun]
    late: float | None  # seconds that 95 % of the runs shown were late at most
    next_mark: str  # what clocks do at `next_at`; mostly empty


class SchedulePage(Struct, frozen=True, kw_only=True):
    items: list[ScheduleRow]
    cursor: str | None


class NextRun(Struct, frozen=True, kw_only=True):
    """A time at which a schedule runs: as an instant, and as its own clocks show it. `mark` tells of clocks that are
    set forward or back."""

    at: datetime
    local: str
    mark: str


class PreviewLine(Struct, forbid_unknown_fields=True, kw_only=True):
    cron: Line
    timezone: Zone = "UTC"
    dst: Literal["once", "instant"] = "once"
    count: Count = 10


class LinePreview(Struct, frozen=True, kw_only=True):
    """A cron line in words, and when it comes. What is wrong with a line is said in `problem`."""

    description: str
    timezone: str
    runs: list[NextRun]
    problem: str | None


class CalendarSlot(Struct, frozen=True, kw_only=True):
    """How many runs begin in a half hour, and of which schedules, some."""

    at: datetime
    count: int
    schedules: list[str]


class Calendar(Struct, frozen=True, kw_only=True):
    slots: list[CalendarSlot]
    total: int
    at_least: bool


@operation("GET", "/schedules", Right.VIEW)
async def list_schedules(call: Call, cursor: Cursor | None = None) -> SchedulePage:
    """A page of schedules, sorted by id within the page, with how their last runs ended."""
    store = await call.space.store()
    try:
        found, cursor = await store.schedules.page(cursor)
    except StoreError as error:
        if cursor is not None and type(error) is StoreError:  # a store knows its own
            raise refused_cursor(cursor) from None
        raise
    return SchedulePage(items=[await _row(call, each) for each in found], cursor=cursor)


async def _row(call: Call, schedule: Schedule) -> ScheduleRow:
    info = info_of(schedule, call.client.registry)
    runs = await runs_of(call.client._access, info.id, is_there=True)
    late = sorted(each.late for each in runs if each.late is not None)
    hidden = call.mask.of(info.payload, info.context, info.tags)
    fields = {name: getattr(info, name) for name in ScheduleInfo.__struct_fields__}
    fields |= {"payload": hidden.value(info.payload), "context": hidden.value(info.context)}
    fields |= {"tags": hidden.value(info.tags), "key": hidden.name(info.key), "dedup_key": hidden.name(info.dedup_key)}
    return ScheduleRow(
        **fields,
        paused=schedule.paused,
        declared=schedule.declared,
        runs=list(runs[:30]),
        late=late[min(int(len(late) * 0.95), len(late) - 1)] if late else None,
        next_mark="" if info.next_at is None else _mark(info.next_at.astimezone(ZoneInfo(info.timezone))),
    )


@operation("POST", "/schedules", Right.OPERATE, status=201, changes="created a schedule")
async def create_schedule(call: Call, body: NewSchedule) -> ScheduleRow:
    """Create a schedule; one of that id is not replaced (409)."""
    call.tell(body.id, f"{body.type} {body.cron or 'only when triggered'}")
    await call.plane.quotas.check_schedules(call.space)
    given = _given(body)
    schedule_id, kind, cron = given.pop("id"), given.pop("type"), given.pop("cron", None)
    given = {name: value for name, value in given.items() if value is not None or name == "payload"}
    await call.client.schedules.put(schedule_id, kind, cron=cron, create=True, **given)
    return await get_schedule(call, body.id)


def _given(body: Struct) -> dict[str, Any]:
    found = {name: getattr(body, name) for name in body.__struct_fields__}
    return {name: value for name, value in found.items() if value is not UNSET}


@operation("POST", "/schedules/preview", Right.VIEW)
async def preview_line(call: Call, body: PreviewLine) -> LinePreview:
    """What a cron line means and when it comes, without a schedule."""
    try:
        cron = Cron(body.cron, find_zone(body.timezone).name, dst=body.dst)
        now = to_datetime((await call.space.store()).now())
        return LinePreview(
            description=cron.describe(), timezone=cron.timezone, runs=next_runs(cron, body.count, now), problem=None
        )
    except ConfigError as error:
        return LinePreview(description="", timezone=body.timezone, runs=[], problem=str(error))


@operation("GET", "/schedules/calendar", Right.VIEW)
async def get_calendar(call: Call, hours: Annotated[int, Meta(ge=1, le=168)] = 24) -> Calendar:
    """When the schedules run in the next hours, by half hours."""
    now = to_datetime((await call.space.store()).now())
    end = now + timedelta(hours=hours)
    counts: dict[datetime, int] = {}
    names: dict[datetime, dict[str, None]] = {}
    total, at_least = 0, False
    async for schedule in call.client.schedules:
        if schedule.cron is None or not schedule.enabled:
            continue
        at, cron = now, cron_of(schedule.cron, schedule.timezone, schedule.dst)
        while total < CALENDAR_MAX and (following := cron.next(at)) is not None and following <= end:
            at = following.astimezone(UTC)
            slot = at.replace(minute=at.minute - at.minute % 30, second=0, microsecond=0)
            counts[slot] = counts.get(slot, 0) + 1
            names.setdefault(slot, {})[schedule.id] = None
            total += 1
        at_least = total >= CALENDAR_MAX
    slots = [CalendarSlot(at=at, count=counts[at], schedules=list(names[at])[:10]) for at in sorted(counts)]
    return Calendar(slots=slots, total=total, at_least=at_least)


@operation("GET", "/schedules/{id}", Right.VIEW)
async def get_schedule(call: Call, id: str) -> ScheduleRow:
    """One schedule."""
    return await _row(call, await call.client.schedules._find(id))


@operation("PATCH", "/schedules/{id}", Right.OPERATE, changes="edited a schedule")
async def edit_schedule(call: Call, id: str, body: EditSchedule) -> ScheduleRow:
    """Change what is named, and leave all else as it is."""
    given = _given(body)
    before = await call.client.schedules.get(id)
    told = [f"{name}: {getattr(before, name, None)!r} -> {value!r}" for name, value in given.items() if name in _TOLD]
    call.tell(id, "; ".join([*told, *(name for name in given if name not in _TOLD)]))
    await call.client.schedules.edit(id, **given)
    return await get_schedule(call, id)


_TOLD = ("cron", "timezone", "type", "queue", "overlap", "misfire", "enabled")  # whose values are no secret


@operation("DELETE", "/schedules/{id}", Right.OPERATE, status=204, changes="deleted a schedule")
async def delete_schedule(call: Call, id: str) -> None:
    """Remove a schedule. One that a program has in its code is written again at its next start."""
    call.tell(id)
    await call.client.schedules.delete(id)


@operation("POST", "/schedules/{id}/pause", Right.OPERATE, changes="paused a schedule")
async def pause_schedule(call: Call, id: str, body: PauseSchedule) -> ScheduleRow:
    """Let it rest until it is resumed."""
    call.tell(id, body.note)
    await call.client.schedules.pause(id)
    return await get_schedule(call, id)


@operation("POST", "/schedules/{id}/resume", Right.OPERATE, changes="resumed a schedule")
async def resume_schedule(call: Call, id: str) -> ScheduleRow:
    """Go on with the next tick from now; ticks of the pause are not made up for."""
    call.tell(id)
    await call.client.schedules.resume(id)
    return await get_schedule(call, id)


@operation("POST", "/schedules/{id}/trigger", Right.OPERATE, status=201, changes="triggered a schedule")
async def trigger_schedule(call: Call, id: str) -> TaskView:
    """Run it once now, beside its ticks; answers the task."""
    call.tell(id)
    return await get_task(call, await call.client.schedules.trigger(id))


@operation("GET", "/schedules/{id}/next", Right.VIEW)
async def get_next_runs(call: Call, id: str, count: Count = 10) -> list[NextRun]:
    """When it runs next."""
    schedule = await call.client.schedules.get(id)
    if schedule.cron is None or not schedule.enabled:
        return []
    now = to_datetime((await call.space.store()).now())
    return next_runs(cron_of(schedule.cron, schedule.timezone, schedule.dst), count, now)


@operation("GET", "/schedules/{id}/runs", Right.VIEW)
async def get_runs(call: Call, id: str) -> list[ScheduleRun]:
    """How its last runs ended, 60 at most, the latest first; ticks that were left out are among them."""
    return list(await call.client.schedules.runs(id))


def cron_of(line: str, timezone: str, dst: str) -> Cron:
    return Cron(line, timezone, "instant" if dst == "instant" else "once")


def next_runs(cron: Cron, count: int, after: datetime) -> list[NextRun]:
    zone = ZoneInfo(cron.timezone)
    runs: list[NextRun] = []
    for at in cron.upcoming(count, after):
        local = at.astimezone(zone)
        runs.append(NextRun(at=at.astimezone(UTC), local=f"{local:%a %d %b %Y %H:%M:%S %Z}", mark=_mark(local)))
    return runs


def _mark(local: datetime) -> str:
    """What clocks do at that time or just before it."""
    before = (local.astimezone(UTC) - timedelta(hours=1)).astimezone(local.tzinfo).utcoffset()
    after = (local.astimezone(UTC) + timedelta(hours=1)).astimezone(local.tzinfo).utcoffset()
    now = local.utcoffset()
    if before is None or after is None or now is None:
        return ""
    if local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():
        return f"clocks show this time twice; this is the {'second' if local.fold else 'first'} time"
    if now > before:
        return "clocks have just been set forward"
    return "clocks have just been set back" if now < before else ""
