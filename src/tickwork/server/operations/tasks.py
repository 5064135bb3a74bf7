"""Tasks: submit, look, steer one by one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tickwork.client.dependants import find_followers
from tickwork.client.events import number_at
from tickwork.client.submitting import submit_and_tell
from tickwork.client.views import task_info
from tickwork.errors import TickworkError
from tickwork.handlers.options import known_id
from tickwork.model.info import Explanation, Task
from tickwork.model.tasks import Record, Spec, Status
from tickwork.server import filters, finding
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.exports import csv_of
from tickwork.server.operations import operation
from tickwork.server.problems import Problem, Refused, problem_of
from tickwork.server.rows import Attempt, EventRow, TaskRow, TaskView, event_row, row_of, task_view
from tickwork.store.contract import PAGE_MAX

Name = Annotated[str, Meta(min_length=1, max_length=128, pattern="^[A-Za-z0-9._:@-]+$")]
Seconds = Annotated[float, Meta(ge=0, le=3_153_600_000)]
Limit = Annotated[int, Meta(ge=1, le=500)]
Q = Annotated[str, Meta(max_length=2000)]
Cursor = Annotated[str, Meta(max_length=2000)]  # it may hold names of a queue, a type and labels
DEPENDENCIES_MAX = 100
FOLLOWERS_LOOK = 2000  # tasks that were cancelled last
CLOCKS = 60_000  # milliseconds by which a clock may have been set back while facts were logged
EXPORT_MAX = 10_000  # rows
EXPORT_PAGES = 10  # that one export looks through, each of up to 10,000 tasks


class NewTask(Struct, forbid_unknown_fields=True, kw_only=True):
    """A task to submit. `delay` is in seconds; `cron` makes a schedule of that line instead of one task."""

    type: Name
    payload: Any | UnsetType = UNSET
    id: Name | None = None
    queue: Name | None = None
    priority: Annotated[int, Meta(ge=1, le=10)] | None = None
    delay: Seconds | None = None
    schedule_at: datetime | None = None
    cron: Annotated[str, Meta(max_length=200)] | None = None
    timezone: Annotated[str, Meta(max_length=64)] | None = None
    max_retry: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    timeout: Seconds | None = None
    dedup_key: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    dedup_ttl: Seconds | None = None
    unique: Literal["queued", "unfinished"] | None = None
    expires: Seconds | None = None
    retention: Seconds | None = None
    key: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    tags: dict[str, str] | None = None
    context: dict[str, Any] | None = None
    executor: Name | None = None
    target: Name | None = None
    requires: dict[str, str] | None = None
    depends_on: Annotated[list[Name], Meta(max_length=1000)] | None = None
    if_exists: Literal["raise", "return"] | None = None


class NewTasks(Struct, forbid_unknown_fields=True, kw_only=True):
    """Tasks to submit together, 1,000 at most. One may depend on another before it."""

    tasks: Annotated[list[NewTask], Meta(min_length=1, max_length=1000)]


class Submitted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one of several tasks: its id, or why it was refused. `created` is false where it existed."""

    id: str | None = None
    created: bool = False
    problem: Problem | None = None


class SubmittedTasks(Struct, frozen=True, kw_only=True):
    created: int
    refused: int
    tasks: list[Submitted]


class TaskPage(Struct, frozen=True, kw_only=True):
    """A page of tasks. It may be short, or even empty, while `cursor` says that there is more: one request looks at a
    bounded number of tasks. `total` is how many match where counters know it."""

    items: list[TaskRow]
    cursor: str | None
    looked: int
    total: int | None


class Payload(Struct, frozen=True, kw_only=True):
    """The large values of a task."""

    payload: Any
    context: dict[str, Any]
    result: Any


class Dependencies(Struct, frozen=True, kw_only=True):
    """The tasks that one depends on and those that depend on it, as far as they are still there. `cut`: those that
    were cancelled with it were not looked for, as too many tasks were cancelled since."""

    upstream: list[TaskRow]
    dependants: list[TaskRow]
    gone: list[str]
    cut: bool


class CancelTask(Struct, forbid_unknown_fields=True):
    """`force` also asks a running one to stop; it may still succeed."""

    force: bool = False


class RetryTask(Struct, forbid_unknown_fields=True):
    """`cascade` also brings back the tasks that were cancelled because this one did not succeed."""

    cascade: bool = False


class RescheduleTask(Struct, forbid_unknown_fields=True):
    """The new time: `at`, or `delay` seconds from now."""

    at: datetime | None = None
    delay: Seconds | None = None


class Logs(Struct, frozen=True, kw_only=True):
    """The last lines that the handler has logged, the newest at the end."""

    lines: list[str]


@operation("POST", "/tasks", Right.SUBMIT, status=201, changes="submitted a task")
async def submit_task(call: Call, body: NewTask) -> TaskView:
    """Submit a task, or with `cron` a schedule.

    Answers the task. An id or dedup key that is taken is refused with 409, which names the task that has it, unless
    `if_exists` is `return`.
    """
    call.tell(body.type)
    await _check_quota(call, [body])
    if body.cron is not None:
        made = await call.client.submit_task(_task(body))
        await _count(call, [(body, made.id)])
        return await _schedule_as_task(call, made.id)
    handle, spec = await submit_and_tell(call.client, _task(body))
    await _count(call, [(body, handle.id)])
    if not handle.created or spec.depends_on:  # which may have ended
        return task_view(await call.client.get_task(handle.id), call.mask)
    return task_view(task_info(_as_submitted(spec, (await call.space.store()).now()), call.client.registry), call.mask)


def _as_submitted(spec: Spec, now: int) -> Record:
    """How a task is when it has just been taken; a worker may have it by now."""
    due = now + spec.delay if spec.at is None else spec.at
    status = Status.PENDING if due > now else Status.READY
    return Record(spec=spec, seq=0, status=status, submitted_at=now, due_at=max(due, now))


async def _schedule_as_task(call: Call, schedule_id: str) -> TaskView:
    """What a schedule will submit next, in the form of a task: its id is the schedule's."""
    schedule = await (await call.space.store()).schedules.get(schedule_id)
    if schedule is None:  # deleted meanwhile
        raise Refused(409, "gone", f"schedule {schedule_id} was deleted just now")
    due = schedule.next_at or schedule.created_at
    spec = msgspec.structs.replace(schedule.task, id=schedule_id, schedule_id=schedule_id, at=due)
    record = Record(spec=spec, seq=0, status=Status.PENDING, submitted_at=schedule.created_at, due_at=due)
    return task_view(task_info(record, call.client.registry), call.mask)


@operation("POST", "/tasks/batch", Right.SUBMIT, changes="submitted tasks")
async def submit_tasks(call: Call, body: NewTasks) -> SubmittedTasks:
    """Submit many tasks in one call.

    Each is answered for itself, in order: what is wrong with one hinders no other.
    """
    call.tell(f"{len({each.type for each in body.tasks})} types", count=len(body.tasks))
    await _check_quota(call, body.tasks)
    answers = await call.client.submit_tasks(map(_task, body.tasks))
    found = [
        Submitted(problem=problem_of(each))
        if isinstance(each, TickworkError)
        else Submitted(id=each.id, created=each.created)
        for each in answers
    ]
    await _count(call, [(new, each.id) for new, each in zip(body.tasks, found, strict=True) if each.id is not None])
    created = sum(each.created for each in found)
    return SubmittedTasks(created=created, refused=sum(each.problem is not None for each in found), tasks=found)


async def _check_quota(call: Call, tasks: list[NewTask]) -> None:
    names = {(each.type, each.queue) for each in tasks}
    await call.plane.quotas.check_submit(call.space, names, len(tasks))
    if schedules := sum(each.cron is not None for each in tasks):
        await call.plane.quotas.check_schedules(call.space, schedules)


async def _count(call: Call, taken: list[tuple[NewTask, str]]) -> None:
    """For quotas. A schedule is told as the change that it is, beside the submits, which a flood may wash away."""
    call.plane.quotas.count(call.space, {(new.type, new.queue) for new, _ in taken})
    for new, schedule_id in taken:
        if new.cron is not None:
            await call.space.audit.change(call.caller, "created a schedule", schedule_id, f"{new.type}: {new.cron}")


_FIELDS = tuple(name for name in NewTask.__struct_fields__ if name not in ("type", "payload"))


def _task(new: NewTask) -> Task:
    given = {name: value for name in _FIELDS if (value := getattr(new, name)) is not None}
    return Task(type=new.type, payload=new.payload, **given)


@operation("GET", "/tasks", Right.VIEW)
async def list_tasks(call: Call, q: Q = "", limit: Limit = 100, cursor: Cursor | None = None) -> TaskPage:
    """List tasks that a filter matches.

    `q` is a filter such as `status:dead type:mail`. Ended tasks come newest first, delayed ones by due time.
    """
    store = await call.space.store()
    wanted = await finding.read_filter(store, q, store.now(), call.mask)
    found = await finding.find(store, wanted, limit, cursor)
    return TaskPage(
        items=await finding.rows(call.space, found.records, call.mask),
        cursor=found.cursor,
        looked=found.looked,
        total=await _total(call, wanted),
    )


async def _total(call: Call, wanted: filters.Filter) -> int | None:
    if not wanted.only_status:
        return None
    counts = (await call.space.stats()).statuses
    return sum(counts[status] for status in wanted.status or Status if status in counts)


@operation("GET", "/tasks/export", Right.VIEW, media="text/csv")
async def export_tasks(call: Call, q: Q = "") -> str:
    """Tasks that a filter matches as CSV: 10,000 at most, or as many as are among the first 100,000 looked at."""
    store = await call.space.store()
    wanted = await finding.read_filter(store, q, store.now(), call.mask)
    found: list[TaskRow] = []
    cursor: str | None = None
    for _ in range(EXPORT_PAGES):
        page = await finding.find(store, wanted, min(PAGE_MAX, EXPORT_MAX - len(found)), cursor)
        found += [row_of(task_info(each, call.client.registry), call.mask) for each in page.records]
        cursor = page.cursor
        if cursor is None or len(found) >= EXPORT_MAX:
            break
    return csv_of(TaskRow, found)


@operation("GET", "/tasks/{id}", Right.VIEW)
async def get_task(call: Call, id: str) -> TaskView:
    """One task with its payload, attempts, result and log lines."""
    return task_view(await call.client.get_task(id), call.mask)


@operation("GET", "/tasks/{id}/payload", Right.VIEW)
async def get_payload(call: Call, id: str) -> Payload:
    """The payload, context and result of a task, however large."""
    info = await call.client.get_task(id)
    result = None if info.result is None else info.result.data
    hidden = call.mask.of(info.payload, info.context, info.tags, result)
    return Payload(payload=hidden.value(info.payload), context=hidden.value(info.context), result=hidden.value(result))


@operation("GET", "/tasks/{id}/attempts", Right.VIEW)
async def get_attempts(call: Call, id: str) -> list[Attempt]:
    """The runs of a task before its last one."""
    return (await get_task(call, id)).attempts


@operation("GET", "/tasks/{id}/logs", Right.VIEW)
async def get_logs(call: Call, id: str) -> Logs:
    """The last log lines of a task."""
    return Logs(lines=(await get_task(call, id)).log)


@operation("GET", "/tasks/{id}/explain", Right.VIEW)
async def explain_task(call: Call, id: str) -> Explanation:
    """Why a task is not running: the reason as data, and in a sentence."""
    found, mask = await call.client.explain(id), call.mask
    if not mask:
        return found
    return msgspec.structs.replace(
        found, text=mask.text(found.text), blockers=tuple(mask.rule(each) for each in found.blockers)
    )


@operation("GET", "/tasks/{id}/events", Right.VIEW)
async def get_task_events(call: Call, id: str) -> list[EventRow]:
    """What happened to a task, as far as the log still has it."""
    known_id(id)
    store = await call.space.store()
    record = await store.queries.get(id)
    begin = 0 if record is None else await number_at(store.log, record.submitted_at - CLOCKS)
    found, _ = await store.log.read(begin, PAGE_MAX, id)
    return [event_row(each, call.mask) for each in found]


@operation("GET", "/tasks/{id}/dependencies", Right.VIEW)
async def get_dependencies(call: Call, id: str) -> Dependencies:
    """The tasks that this one depends on, and those that depend on it."""
    store, record = await call.space.store(), await call.client._access.record(id)
    named = [(each, await store.queries.get(each)) for each in record.spec.depends_on[:DEPENDENCIES_MAX]]
    waiting = [await store.queries.get(each) for each in await store.queries.dependants(id, DEPENDENCIES_MAX)]
    followers, whole = await find_followers(store, [record], FOLLOWERS_LOOK)
    below = [each for each in waiting if each is not None] + [each for _, each in followers]
    mask, registry = call.mask, call.client.registry
    return Dependencies(
        upstream=[row_of(task_info(found, registry), mask) for _, found in named if found is not None],
        dependants=[row_of(task_info(each, registry), mask) for each in below[:DEPENDENCIES_MAX]],
        gone=[each for each, found in named if found is None],
        cut=not whole,
    )


@operation("POST", "/tasks/{id}/cancel", Right.OPERATE, changes="cancelled a task")
async def cancel_task(call: Call, id: str, body: CancelTask) -> TaskView:
    """Cancel a waiting task, or with `force` ask a running one to stop."""
    call.tell(id, "by force" if body.force else "")
    await call.client.cancel(id, body.force)
    return await get_task(call, id)


@operation("POST", "/tasks/{id}/retry", Right.OPERATE, changes="retried a task")
async def retry_task(call: Call, id: str, body: RetryTask) -> TaskView:
    """Run an ended task again, with fresh counters."""
    call.tell(id, "with those cancelled with it" if body.cascade else "")
    await call.client.retry(id, cascade=body.cascade)
    return await get_task(call, id)


@operation("POST", "/tasks/{id}/run-now", Right.OPERATE, changes="let a task run now")
async def run_task_now(call: Call, id: str) -> TaskView:
    """Let a task that waits for its time, or for its next attempt, run at once."""
    call.tell(id)
    await call.client.run_now(id)
    return await get_task(call, id)


@operation("POST", "/tasks/{id}/reschedule", Right.OPERATE, changes="rescheduled a task")
async def reschedule_task(call: Call, id: str, body: RescheduleTask) -> TaskView:
    """Move a waiting task to another time."""
    call.tell(id, f"to {body.at:%Y-%m-%dT%H:%M:%S%z}" if body.at is not None else f"by {body.delay} s from now")
    await call.client.reschedule(id, at=body.at, delay=body.delay)
    return await get_task(call, id)


@operation("DELETE", "/tasks/{id}", Right.OPERATE, status=204, changes="deleted a task")
async def delete_task(call: Call, id: str) -> None:
    """Remove an ended task and all that is known of it."""
    call.tell(id)
    await call.client.delete(id)
