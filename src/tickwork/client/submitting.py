"""Submissions that are more than one plain task: schedules, and lists of tasks of any types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tickwork.client.handle import Handle, ScheduleHandle
from tickwork.client.middleware import send_plainly
from tickwork.errors import (
    ConfigError,
    DuplicateTask,
    StoreError,
    StoreUnavailable,
    TaskExists,
    TaskNotFound,
    TickworkError,
)
from tickwork.handlers.options import Options, TaskOptions, known_only, returns_existing, wanted_durability
from tickwork.ids import new_id
from tickwork.model.info import Task
from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.contract import SUBMIT_MAX, BlockingTasks, Receipt, Store
from tickwork.texts import shown

if TYPE_CHECKING:
    from tickwork.client.client import Client

Answer = Handle[Any] | TickworkError


class _Wanted(NamedTuple):
    """A task of a list that may be sent to the store; `place` is that in the list."""

    place: int
    spec: Spec
    durability: Durability | None
    may_exist: bool


def existing(receipt: Receipt, spec: Spec) -> str | None:
    """The id of the task that was there already, if that is why this one was not taken."""
    match receipt.verdict:
        case "exists":
            return spec.id
        case "duplicate":
            return receipt.other
        case _:
            return None


def refusal(receipt: Receipt, spec: Spec) -> TickworkError:
    """Why a submission has led to no task of its own."""
    match receipt.verdict:
        case "exists":
            return TaskExists(spec.id)
        case "duplicate":
            return DuplicateTask(spec.dedup_key or "", receipt.other)
        case "orphan":
            return TaskNotFound(receipt.other)
        case other:
            return StoreError(f"the store answered {other!r}")


def handle_of(client: Client, receipt: Receipt, spec: Spec, options: Options) -> Handle[Any]:
    """Of the task that was submitted, or of the one that was there already if the options say that it may be."""
    if receipt.verdict == "created":
        return Handle(client, spec.id)
    if returns_existing(options) and (other := existing(receipt, spec)):
        return Handle(client, other, created=False)
    raise refusal(receipt, spec)


def blocking_tasks(client: Client) -> BlockingTasks | None:
    """For threads without an event loop: None if the store is not open yet, or has nothing for them, or if there is
    middleware, which needs an event loop."""
    access = client._access
    store = access.opened_store()
    if store is None or not store.capabilities.blocking_submits or access.send is not send_plainly:
        return None
    return cast("BlockingTasks", store.tasks)


async def submit_spec(client: Client, spec: Spec, durability: Durability | None, began: float | None) -> Receipt:
    store = await client._access.open_to_submit(began)
    (receipt,) = await client._access.send(store, [spec], durability)
    return receipt


async def submit_and_tell(client: Client, task: Task) -> tuple[Handle[Any], Spec]:
    """Submit a task that has no cron line. Answers its spec too, from which it can be shown without a look at it."""
    options = options_of(task)
    durability = wanted_durability(options)
    spec = client._access.spec(task.type, task.payload, options)
    client._access.check_that_tasks_can_run()
    store = await client._access.open_to_submit()
    (receipt,) = await client._access.send(store, [spec], durability)
    return handle_of(client, receipt, spec, options), spec


async def submit_cron(client: Client, type: str, payload: Any, options: Options) -> ScheduleHandle:
    known_only(options, Options)
    for wrong in ("schedule_at", "delay", "expires", "depends_on", "durability"):
        if options.get(wrong) is not None:
            raise ConfigError(f"{wrong} cannot be given together with cron")
    may_exist = returns_existing(options)
    schedule_id = options.get("id") or f"{type}.{new_id()}"
    of_schedule = (*TaskOptions.__annotations__, "timezone", "dedup_key", "dedup_ttl", "unique")
    try:
        await client.schedules.put(
            schedule_id,
            type,
            payload,
            cron=options.get("cron"),
            create=True,
            on_exhausted="stop",
            **{name: options[name] for name in of_schedule if name in options},  # type: ignore[literal-required]
        )
    except TaskExists:
        if not may_exist:
            raise
        return ScheduleHandle(client, schedule_id, created=False)
    return ScheduleHandle(client, schedule_id)


def options_of(task: Task) -> Options:
    """What is said of a task that is given as a record, beside its type and its payload."""
    if not isinstance(task, Task):
        raise ConfigError(f"a task must be given as a Task, not {shown(task)}")
    given = {name: value for name in Options.__annotations__ if (value := getattr(task, name)) is not None}
    return cast("Options", given)


async def submit_tasks(client: Client, tasks: Iterable[Task]) -> list[Answer]:
    """Each task is looked at first; then all that may be taken go to the store, in their order and in few calls."""
    client._access.check_that_tasks_can_run()
    store = await client._access.open_to_submit()
    answers: list[Answer] = []
    wanted: list[_Wanted] = []
    for place, task in enumerate(tasks):
        try:
            options = options_of(task)
            if "cron" in options:
                answers.append(await submit_cron(client, task.type, task.payload, options))
                continue
            durability, may_exist = wanted_durability(options), returns_existing(options)
            spec = client._access.spec(task.type, task.payload, options)
        except TickworkError as error:
            answers.append(error)
        else:
            wanted.append(_Wanted(place, spec, durability, may_exist))
            answers.append(Handle(client, spec.id))
    for place, refused in await _send(client, store, wanted):
        answers[place] = refused
    return answers


async def _send(client: Client, store: Store, wanted: list[_Wanted]) -> list[tuple[int, Answer]]:
    """The places whose answer is not the handle of a new task."""
    found: list[tuple[int, Answer]] = []
    away: StoreUnavailable | None = None
    for durability, batch in _batches(wanted):
        if away is not None:
            found += [(each.place, away) for each in batch]
            continue
        try:
            receipts = await client._access.send(store, [each.spec for each in batch], durability)
        except TickworkError as error:  # those of earlier batches were taken all the same
            away = error if isinstance(error, StoreUnavailable) else None
            found += [(each.place, error) for each in batch]
            continue
        for each, receipt in zip(batch, receipts, strict=True):
            if receipt.verdict != "created":
                other = existing(receipt, each.spec) if each.may_exist else None
                answer = refusal(receipt, each.spec) if other is None else Handle[Any](client, other, created=False)
                found.append((each.place, answer))
    return found


def _batches(wanted: list[_Wanted]) -> Iterator[tuple[Durability | None, list[_Wanted]]]:
    """In their order, as one may depend on one before it. A call has one durability."""
    for durability, alike in groupby(wanted, key=lambda each: each.durability):
        rest = list(alike)
        for start in range(0, len(rest), SUBMIT_MAX):
            yield durability, rest[start : start + SUBMIT_MAX]
