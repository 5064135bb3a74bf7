"""What the code under test has submitted, and assertions about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from tickwork.client.functions import TaskFunction
from tickwork.client.views import payload_of
from tickwork.errors import TickworkError
from tickwork.payload.parameters import MISSING
from tickwork.texts import shown

if TYPE_CHECKING:
    from tickwork.backoff import Backoff
    from tickwork.client.handle import Handle
    from tickwork.model.info import TaskInfo
    from tickwork.model.tasks import Status
    from tickwork.scheduler import Scheduler

LISTED_MAX = 10  # tasks that a failed assertion tells of
NEAR_MAX = 100  # those whose texts are compared with what is wanted
COMPARED_MAX = 500  # characters of such a text


class SubmittedFields(TypedDict, total=False):
    """What else a submitted task must have: fields of its `TaskInfo`, and `delay`, from the submit to its time."""

    id: str
    queue: str
    priority: int
    status: Status | str
    delay: float | timedelta
    scheduled_at: datetime
    max_retry: int | None
    timeout: float | None
    retry: Backoff | None
    key: str | None
    dedup_key: str | None
    tags: Mapping[str, str]
    context: Mapping[str, Any]
    depends_on: Iterable[str | Handle[Any]]
    schedule_id: str | None
    expires_at: datetime | None
    retention: float | None
    serializer: str
    executor: str


async def submitted(app: Scheduler, type: str | TaskFunction[..., Any] | None = None) -> list[TaskInfo]:
    """All tasks that the store has, or those of a type, in the order in which they were submitted.

    (mail,) = await submitted(app, "send_mail")
    assert mail.payload == {"to": "ann@example.org"}
    """
    found: list[TaskInfo] = []
    cursor: str | None = None
    while True:
        page = await app.list_tasks(type=_name(type), limit=1000, cursor=cursor)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found[::-1]


async def assert_submitted(
    app: Scheduler,
    type: str | TaskFunction[..., Any],
    payload: Any = MISSING,
    *,
    times: int | None = None,
    **fields: Unpack[SubmittedFields],
) -> list[TaskInfo]:
    """Check that a task of this type was submitted, at least once or so many `times`, and give those that were.

    `payload` and the fields are compared where they are given; `unittest.mock.ANY` fits every value. If there is no
    such task, the `AssertionError` tells what was submitted instead.

        await assert_submitted(app, send_mail, {"to": "ann@example.org"}, queue="mails", delay=60)
    """
    wanted = _Wanted(app, type, payload, fields)
    everything = await submitted(app)
    found = [task for task in everything if wanted.fits(task)]
    if found if times is None else len(found) == times:
        return found
    if times is None or not found:
        raise AssertionError(f"{wanted} was not submitted; {_instead(wanted, everything)}")
    raise AssertionError(f"{wanted} was submitted {_times(len(found))}, not {_times(times)}:{_listed(found)}")


async def assert_not_submitted(
    app: Scheduler,
    type: str | TaskFunction[..., Any] | None = None,
    payload: Any = MISSING,
    **fields: Unpack[SubmittedFields],
) -> None:
    """Check that no such task was submitted, or none at all if no type is given.

    `payload` and the fields are compared as in `assert_submitted`.
    """
    wanted = _Wanted(app, type, payload, fields)
    found = [task for task in await submitted(app) if wanted.fits(task)]
    if found:
        raise AssertionError(f"{wanted} was submitted {_times(len(found))}:{_listed(found)}")


class _Wanted:
    """A type, and what a task of it must have."""

    def __init__(
        self, app: Scheduler, type: str | TaskFunction[..., Any] | None, payload: Any, fields: SubmittedFields
    ) -> None:
        _check_names(fields)
        self.type = _name(type)
        self.values: dict[str, Any] = {name: _as_shown(name, value) for name, value in fields.items()}
        if payload is not MISSING:
            self.values = {"payload": _plain(app, self.type, payload), **self.values}

    def fits(self, task: TaskInfo) -> bool:
        return self.type in (None, task.type) and not self.differences(task)

    def differences(self, task: TaskInfo) -> dict[str, Any]:
        """What the task has in the place of what is wanted."""
        having = {name: _value(task, name) for name in self.values}
        return {name: value for name, value in having.items() if self.values[name] != value}

    def distance(self, task: TaskInfo) -> tuple[bool, int]:
        """Smaller is nearer: tasks of the type come first, and those with few differences."""
        return self.type not in (None, task.type), len(self.differences(task))

    def unlikeness(self, task: TaskInfo) -> float:
        """Smaller is nearer: how far the texts of what differs are from each other."""
        different = self.differences(task)
        mine = [self.type or "", *(repr(self.values[name]) for name in different)]
        its = [task.type, *(repr(value) for value in different.values())]
        return 1 - SequenceMatcher(None, "\n".join(mine)[:COMPARED_MAX], "\n".join(its)[:COMPARED_MAX]).ratio()

    def __str__(self) -> str:
        values = "".join(f", {name}={shown(value)}" for name, value in self.values.items())
        return f"{self.type or 'any task'}{values}"


def _check_names(fields: SubmittedFields) -> None:
    unknown = fields.keys() - SubmittedFields.__annotations__.keys()
    if unknown:
        known = ", ".join(["payload", *SubmittedFields.__annotations__])
        raise TypeError(f"a submitted task has no {', '.join(sorted(unknown))}; what can be compared is {known}")


def _name(type: str | TaskFunction[..., Any] | None) -> str | None:
    return type.type if isinstance(type, TaskFunction) else type


def _plain(app: Scheduler, type: str | None, payload: Any) -> Any:
    """The payload as a task has it: of plain values, where the test may have objects of its own."""
    if type is None:
        return payload
    try:
        return payload_of(app._access.spec(type, payload, {}), app.registry)
    except TickworkError:  # it does not fit its handler, such as one with `ANY` in it
        return payload


def _as_shown(name: str, value: Any) -> Any:
    if name == "delay" and not isinstance(value, timedelta) and isinstance(value, int | float):
        return timedelta(seconds=value)
    if name == "depends_on" and isinstance(value, Iterable):
        return tuple(str(getattr(each, "id", each)) for each in value)
    return value


def _value(task: TaskInfo, name: str) -> Any:
    return task.scheduled_at - task.submitted_at if name == "delay" else getattr(task, name)


def _instead(wanted: _Wanted, everything: list[TaskInfo]) -> str:
    if not everything:
        return "nothing was submitted at all"
    near = sorted(everything, key=wanted.distance)[:NEAR_MAX]
    nearest = sorted(near, key=lambda task: (wanted.distance(task), wanted.unlikeness(task)))
    lines = [f"\n  {_told(task, wanted.differences(task))}" for task in nearest[:LISTED_MAX]]
    return f"submitted instead, the nearest first:{''.join(lines)}{_more(everything)}"


def _told(task: TaskInfo, differences: dict[str, Any]) -> str:
    values = {"payload": task.payload, **differences}
    return f"{task.type}" + "".join(f", {name}={shown(value)}" for name, value in values.items())


def _listed(tasks: list[TaskInfo]) -> str:
    return "".join(f"\n  {task.type} {task.id}, payload={shown(task.payload)}" for task in tasks[:LISTED_MAX]) + _more(
        tasks
    )


def _more(tasks: list[TaskInfo]) -> str:
    return f"\n  and {len(tasks) - LISTED_MAX} more" if len(tasks) > LISTED_MAX else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
