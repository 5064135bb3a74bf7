"""Tasks as the API shows them: a row of a list, and one task whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tickwork.clock import to_datetime
from tickwork.model import facts
from tickwork.model.info import AttemptInfo, TaskInfo
from tickwork.model.tasks import Status
from tickwork.server.masking import Mask, TaskMask
from tickwork.texts import cut

VALUE_MAX = 65_536  # bytes of a payload or result that is shown with its task; a larger one is asked for by itself
LINE_MAX = 200  # characters of an error in a list
ERROR_MAX = 32_768
_encode = msgspec.json.encode

HeldBy = Literal["limit", "breaker", "switch"]


class TaskRow(Struct, frozen=True, kw_only=True):
    """A task in a list. `why` says, of one that waits, what it waits for; `error` is the first line of the last one."""

    id: str
    type: str
    queue: str
    priority: int
    status: Status
    attempt: int
    max_retry: int | None
    submitted_at: datetime
    scheduled_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    execution_time: float | None
    worker_id: str | None
    schedule_id: str | None
    key: str | None
    tags: dict[str, str]
    error: str | None
    progress: float | None
    held_by: HeldBy | None
    cancelling: bool
    why: str | None = None


class Attempt(Struct, frozen=True, kw_only=True):
    """A run before the last one. `end` is failed, snoozed or lost, or the status in which a retry by hand found it."""

    number: int
    started_at: datetime
    finished_at: datetime
    worker_id: str
    end: str
    duration: float | None
    error: str | None


class TaskView(TaskRow, frozen=True, kw_only=True):
    """A task whole. A payload, context or result of more than 64 kB is left out, and `large` names it: it is asked for
    by itself. `masked` says that some of it is hidden from your role."""

    payload: Any
    payload_bytes: int
    context: dict[str, Any]
    result: Any
    result_code: int | None
    result_message: str
    last_error: str | None
    retry_count: int
    losses: int
    progress_note: str
    depends_on: list[str]
    waiting_for: list[str]
    timeout: float | None
    retry: Any
    dedup_key: str | None
    dedup_ttl: float | None
    unique: str | None
    expires_at: datetime | None
    retention: float | None
    serializer: str
    executor: str
    target: str | None
    requires: dict[str, str]
    attempts: list[Attempt]
    log: list[str]
    large: list[str]
    masked: bool


class EventRow(Struct, frozen=True, kw_only=True):
    """One fact of the log. `id` is the task's, or that of the worker, schedule, queue or whatever it is about."""

    seq: int
    at: datetime
    kind: str
    id: str
    type: str
    queue: str
    worker_id: str
    attempt: int
    duration: float
    detail: str


def event_row(fact: facts.Event, mask: Mask) -> EventRow:
    return EventRow(
        seq=fact.seq,
        at=to_datetime(fact.at),
        kind=fact.kind,
        id=mask.rule(fact.id) if fact.kind.startswith("switch.") else fact.id,
        type=fact.type,
        queue=fact.queue,
        worker_id=fact.worker_id,
        attempt=fact.attempt,
        duration=fact.duration,
        detail=mask.text(fact.detail),
    )


def row_of(info: TaskInfo, mask: Mask, why: str | None = None, held_by: HeldBy | None = None) -> TaskRow:
    """`held_by`, of one that is ready: by what somebody has shut, which its record does not tell."""
    return TaskRow(**_row(info, mask, why, held_by))


def _row(info: TaskInfo, mask: Mask, why: str | None, held_by: HeldBy | None = None) -> dict[str, Any]:
    hidden = mask.of(info.payload, info.context, info.tags)
    error = hidden.error(info.last_error)
    return {
        "id": info.id,
        "type": info.type,
        "queue": info.queue,
        "priority": info.priority,
        "status": info.status,
        "attempt": info.attempt,
        "max_retry": info.max_retry,
        "submitted_at": info.submitted_at,
        "scheduled_at": info.scheduled_at,
        "started_at": info.started_at,
        "finished_at": info.finished_at,
        "execution_time": info.execution_time,
        "worker_id": info.worker_id,
        "schedule_id": info.schedule_id,
        "key": hidden.name(info.key),
        "tags": hidden.value(info.tags),
        "error": None if not error else cut(error.partition("\n")[0], LINE_MAX),
        "progress": info.progress,
        "held_by": info.held_by or held_by,
        "cancelling": info.cancelling,
        "why": _why(why, info, hidden),
    }


def _why(why: str | None, info: TaskInfo, hidden: TaskMask) -> str | None:
    """It may have the first line of the last error in it, or the key of the task."""
    error = (info.last_error or "").partition("\n")[0]
    return hidden.text(why) if why and error and error in why else hidden.name(why)


def task_view(info: TaskInfo, mask: Mask, why: str | None = None) -> TaskView:
    result = None if info.result is None else info.result.data
    hidden = mask.of(info.payload, info.context, info.tags, result)
    shown = {"payload": hidden.value(info.payload), "context": hidden.value(info.context)}
    shown["result"] = hidden.value(result)
    sizes = {name: len(_encode(value)) for name, value in shown.items()}
    large = [name for name, size in sizes.items() if size > VALUE_MAX]
    empty: dict[str, Any] = {"payload": None, "context": {}, "result": None}
    error = hidden.error(info.last_error)
    return TaskView(
        **_row(info, mask, why),
        **{name: empty[name] if name in large else value for name, value in shown.items()},
        payload_bytes=sizes["payload"],
        result_code=None if info.result is None else info.result.code,
        result_message="" if info.result is None else hidden.text(info.result.message),
        last_error=None if error is None else cut(error, ERROR_MAX),
        retry_count=info.retry_count,
        losses=info.losses,
        progress_note=hidden.text(info.progress_note),
        depends_on=list(info.depends_on),
        waiting_for=list(info.waiting_for),
        timeout=info.timeout,
        retry=msgspec.to_builtins(info.retry),
        dedup_key=hidden.name(info.dedup_key),
        dedup_ttl=info.dedup_ttl,
        unique=info.unique,
        expires_at=info.expires_at,
        retention=info.retention,
        serializer=info.serializer,
        executor=info.executor,
        target=info.target,
        requires=info.requires,
        attempts=[_attempt(each, hidden.error(each.error)) for each in info.attempts],
        log=[hidden.text(line) for line in info.log],
        large=large,
        masked=bool(mask),
    )


def _attempt(attempt: AttemptInfo, error: str | None) -> Attempt:
    return Attempt(
        number=attempt.number,
        started_at=attempt.started_at,
        finished_at=attempt.finished_at,
        worker_id=attempt.worker_id,
        end=attempt.end,
        duration=attempt.duration,
        error=None if error is None else cut(error, ERROR_MAX),
    )
