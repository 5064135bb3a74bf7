"""Tickwork's tasks as Django's results."""

from __future__ import annotations

import builtins
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from tickwork.contrib.django.interface import Task, TaskError, TaskResult, TaskResultDoesNotExist, TaskResultStatus
from tickwork.handlers.middleware import RunCall
from tickwork.model.info import AttemptInfo, TaskInfo
from tickwork.model.tasks import Priority, Status

CONTEXT = "django"  # where the context of a task holds what Tickwork has no place for
STATUSES = {
    Status.RUNNING: TaskResultStatus.RUNNING,
    Status.SUCCESS: TaskResultStatus.SUCCESSFUL,
    Status.FAILED: TaskResultStatus.FAILED,
    Status.DEAD: TaskResultStatus.FAILED,
    Status.CANCELLED: TaskResultStatus.FAILED,
}  # all others wait for their run


def options_of(task: Any) -> dict[str, Any]:
    """What a Django task says, as options of a submission."""
    said: dict[str, Any] = {}
    if task.priority:
        said["priority"] = task.priority
    options: dict[str, Any] = {"queue": task.queue_name, "priority": _band(task.priority)}
    if task.run_after is not None:
        after = task.run_after if timezone.is_aware(task.run_after) else timezone.make_aware(task.run_after)
        said["run_after"] = after.isoformat()
        options["schedule_at"] = after
    return {**options, "context": {CONTEXT: said}} if said else options


def _band(priority: int) -> int:
    """Django's priorities go from -100 to 100, and most tasks have 0; Tickwork has three bands."""
    if priority == 0:
        return int(Priority.NORMAL)
    return int(Priority.HIGH if priority > 0 else Priority.LOW)


def new_result(task: Any, id: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Of a task that has just been submitted."""
    return TaskResult(
        task=task, id=id, status=TaskResultStatus.READY, enqueued_at=_enqueued_at(id, datetime.now(UTC)),
        started_at=None, finished_at=None, last_attempted_at=None, args=list(args), kwargs=dict(kwargs),
        backend=task.backend, errors=[], worker_ids=[],
    )  # fmt: skip


def running_result(
    task: Any, call: RunCall, args: list[Any], kwargs: dict[str, Any], earlier: Sequence[AttemptInfo]
) -> Any:
    """Of a task whose run begins now."""
    now = timezone.now()
    return TaskResult(
        task=task, id=call.id, status=TaskResultStatus.RUNNING, enqueued_at=_enqueued_at(call.id, call.submitted_at),
        started_at=_as_in_django(earlier[0].started_at) if earlier else now, finished_at=None, last_attempted_at=now,
        args=args, kwargs=kwargs, backend=task.backend, errors=earlier_errors(earlier),
        worker_ids=[*(attempt.worker_id for attempt in earlier), call.worker_id],
    )  # fmt: skip


def result_of(info: TaskInfo, alias: str) -> Any:
    """Raises `TaskResultDoesNotExist` for what is no Django task, or is one whose function is not there any more."""
    payload = info.payload
    if not isinstance(payload, dict) or payload.keys() != {"args", "kwargs"}:
        raise TaskResultDoesNotExist(f"task {info.id} is of type {info.type}, which is no Django task")
    runs = runs_of(info)
    result = TaskResult(
        task=_task_of(info, alias), id=info.id, status=STATUSES.get(info.status, TaskResultStatus.READY),
        enqueued_at=_enqueued_at(info.id, info.submitted_at), started_at=_as_in_django(runs[0][1]) if runs else None,
        finished_at=_as_in_django(info.finished_at), last_attempted_at=_as_in_django(runs[-1][1]) if runs else None,
        args=payload["args"], kwargs=payload["kwargs"], backend=alias, errors=errors_of(info),
        worker_ids=[worker for worker, _ in runs],
    )  # fmt: skip
    if info.status is Status.SUCCESS and info.result is not None:
        object.__setattr__(result, "_return_value", info.result.data)
    return result


def _task_of(info: TaskInfo, alias: str) -> Any:
    try:
        task = import_string(info.type)
    except ImportError as error:
        raise TaskResultDoesNotExist(f"the function of task {info.id} is not there any more: {error}") from error
    if not isinstance(task, Task):
        raise TaskResultDoesNotExist(f"task {info.id} is of type {info.type}, which is no Django task")
    said = info.context.get(CONTEXT, {})
    after = said.get("run_after")
    return task.using(
        priority=said.get("priority", 0),
        queue_name=info.queue,
        run_after=None if after is None else _as_in_django(datetime.fromisoformat(after)),
        backend=alias,
    )


def runs_of(info: TaskInfo) -> list[tuple[str, datetime]]:
    """Who ran the task and since when, each run that is known, also the one that is under way."""
    runs = [(attempt.worker_id, attempt.started_at) for attempt in info.attempts]
    if info.started_at is not None and (not runs or info.started_at != runs[-1][1]):
        runs.append((info.worker_id or "", info.started_at))
    return runs


def errors_of(info: TaskInfo) -> list[Any]:
    """Those of earlier runs, and of the last one if the task has ended by it."""
    found = earlier_errors(info.attempts)
    match info.status:
        case Status.CANCELLED:
            message = info.result.message if info.result is not None else ""
            found.append(TaskError(exception_class_path="tickwork.errors.TaskCancelled", traceback=message))
        case Status.DEAD | Status.FAILED:
            found.append(error_of(info.last_error or ""))
    return found


def earlier_errors(attempts: Sequence[AttemptInfo]) -> list[Any]:
    return [error_of(attempt.error) for attempt in attempts if attempt.error]


def error_of(text: str) -> Any:
    """A stored error: `Type: message`, and below it the traceback, whose last line has the type with its module. A text
    of Tickwork's own, such as that of a timeout, has no traceback."""
    head, _, trace = text.partition("\n\n")
    name = re.escape(head.partition(":")[0])
    lines = re.findall(rf"^((?:\w+\.)*{name})(?::|$)", trace, re.MULTILINE)
    if not lines:
        return TaskError(exception_class_path="tickwork.errors.TaskFailed", traceback=text)
    path = lines[-1]
    if "." not in path:  # Python leaves out these two
        path = f"{'builtins' if hasattr(builtins, path) else '__main__'}.{path}"
    return TaskError(exception_class_path=path, traceback=trace)


def _enqueued_at(id: str, otherwise: datetime) -> datetime | None:
    """When the id was drawn, by the clock of the process that enqueued the task: so the result that it got there and
    those that are read later are equal. Runs of a schedule have ids of another kind."""
    try:
        drawn = uuid.UUID(id)
    except ValueError:
        return _as_in_django(otherwise)
    moment = datetime.fromtimestamp((drawn.int >> 80) / 1000, UTC) if drawn.version == 7 else otherwise
    return _as_in_django(moment)


def _as_in_django(moment: datetime | None) -> datetime | None:
    """Aware, or in local time where the project has no time zones."""
    if moment is None or settings.USE_TZ:
        return moment
    naive: datetime = timezone.make_naive(moment)
    return naive
