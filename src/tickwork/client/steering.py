"""Moving tasks by hand: cancel them, run them again or at once, delete them, or set a status.

A call for many answers for each what a call for it alone would have raised; one for a single task raises that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec.structs import replace

from tickwork.client.access import Access
from tickwork.client.dependants import followers_of
from tickwork.clock import to_millis
from tickwork.errors import (
    ConfigError,
    LeaseLost,
    NotCancellable,
    NotReschedulable,
    NotRetryable,
    StoreUnavailable,
    TaskNotFound,
    TickworkError,
)
from tickwork.handlers.options import aware, known_id, seconds
from tickwork.ids import is_token_of
from tickwork.model.info import Steered
from tickwork.model.outcomes import Aborted, Outcome, Stopped, Succeeded
from tickwork.model.tasks import DELAYED, MOVABLE, Lease, Record, Status
from tickwork.store.contract import MANY_MAX, Retried, Store, Verdict
from tickwork.texts import shown

A = TypeVar("A")


# `only`: a task is as good as not there in any other status.


async def cancel(access: Access, ids: Iterable[str], force: bool = False, only: Status | None = None) -> list[Steered]:
    operators = (await access.open_store()).operators

    def refusal(task_id: str, found: Status) -> TickworkError | None:
        return TaskNotFound(task_id) if only not in (None, found) else not_cancellable(task_id, found, force)

    return await _steer(ids, lambda some: operators.cancel(some, force, "cancelled by request", only), refusal)


def not_cancellable(task_id: str, found: Status, force: bool) -> TickworkError | None:
    if found is Status.RUNNING and not force:
        return NotCancellable(f"task {task_id} is running; force=True (--force) asks its handler to stop")
    if found.ended and found is not Status.CANCELLED:
        return NotCancellable(f"task {task_id} has ended already ({found})")
    return None


async def run_now(access: Access, ids: Iterable[str], only: Status | None = None) -> list[Steered]:
    operators = (await access.open_store()).operators

    def refusal(task_id: str, found: Status) -> TickworkError | None:
        if only not in (None, found):
            return TaskNotFound(task_id)
        if found is Status.BLOCKED:
            return NotRetryable(f"task {task_id} is blocked: it waits for other tasks, not for its time")
        if found.ended:
            return NotRetryable(f"task {task_id} has ended already ({found}): retry() (`tickwork retry`) runs it again")
        return None

    return await _steer(ids, lambda some: operators.run_now(some, only), refusal)


async def reschedule(access: Access, task_id: str, at: datetime | None, delay: float | timedelta | None) -> None:
    if (at is None) is (delay is None):
        raise ConfigError("reschedule takes the new time as at=..., or as delay=... from now")
    store = await access.open_store()
    if at is not None:
        moment = to_millis(aware("at", at))
    else:
        moment = await store.queries.time() + round(seconds("delay", delay) * 1000)

    def refusal(task_id: str, found: Status) -> TickworkError | None:
        if found in MOVABLE:
            return None
        if found is Status.BLOCKED:
            return NotReschedulable(f"task {task_id} is blocked: it waits for other tasks, not for its time")
        if found.ended:
            how = "retry() (`tickwork retry`) runs it again"
            return NotReschedulable(f"task {task_id} has ended already ({found}): {how}")
        return NotReschedulable(f"task {task_id} is {found}, so it waits for no time")

    await only_one(_steer([task_id], lambda some: store.operators.reschedule(some, max(moment, 1)), refusal))


async def delete(access: Access, ids: Iterable[str], only: Status | None = None) -> list[Steered]:
    operators = (await access.open_store()).operators

    def refusal(task_id: str, found: Status) -> TickworkError | None:
        if only not in (None, found):
            return TaskNotFound(task_id)
        if not found.ended:
            return TickworkError(f"task {task_id} is {found}: only ended tasks can be deleted; cancel it first")
        return None

    return await _steer(ids, lambda some: operators.delete(some, only), refusal)


async def retry(
    access: Access, ids: Iterable[str], only: Status | None = None, *, cascade: bool = False
) -> list[Steered]:
    store, ids = await access.open_store(), ids if isinstance(ids, str) else list(ids)
    looked = [await store.queries.get(task_id) for task_id in _named(_checked(ids))] if cascade else []
    followers = await followers_of(store, [record for record in looked if record is not None])
    answers: dict[str, Retried] = {}

    async def act(some: Sequence[str]) -> list[Status | None]:
        retried = await store.operators.retry(some, only)
        answers.update(zip(some, retried, strict=True))
        return [each.found for each in retried]

    steered = await _steer(ids, act, lambda task_id, found: _no_retry(task_id, answers[task_id], only))
    steered = [await _with_upstream(store, each, answers) for each in steered]
    if not followers:
        return steered
    again = await _in_slices([each.id for _, each in followers], lambda s: store.operators.retry(s, Status.CANCELLED))
    came = [(root, each.id) for (root, each), answer in zip(followers, again, strict=True) if not answer.upstream]
    return [replace(each, brought_back=tuple(one for root, one in came if root == each.id)) for each in steered]


def _no_retry(task_id: str, retried: Retried, only: Status | None) -> TickworkError | None:
    found = retried.found
    if found is None or only not in (None, found):
        return TaskNotFound(task_id)
    if retried.damaged:
        return NotRetryable(f"task {task_id} is damaged, and nothing is left of it that could run: delete it")
    if found in DELAYED:
        return NotRetryable(
            f"task {task_id} is {found}: it has not ended, but waits for its time. run_now() "
            "(`tickwork run-now` on the command line) lets it run at once"
        )
    return (
        None if found.ended else NotRetryable(f"task {task_id} is {found}: only a task that has ended can be retried")
    )


async def _with_upstream(store: Store, steered: Steered, answers: dict[str, Retried]) -> Steered:
    """A task may have been left as it is because of one on which it depends; here is who says why."""
    never = answers[steered.id].upstream if steered.done else ""
    if not never:
        return steered
    upstream = await store.queries.get(never)
    fate = "which is gone, and never ran: submit it anew"
    if upstream is not None:
        fate = (
            f"which is {upstream.status}: retry that one with cascade=True (--cascade on the command line), "
            "which brings this one back too"
        )
    error = NotRetryable(f"task {steered.id} depends on task {never}, {fate}")
    error.upstream = never
    return replace(steered, error=error)


async def only_one(steering: Awaitable[list[Steered]]) -> Steered:
    """The answer for a single task; its error is raised."""
    (steered,) = await steering
    if steered.error is not None:
        raise steered.error
    return steered


async def _steer(
    ids: Iterable[str],
    act: Callable[[Sequence[str]], Awaitable[list[Status | None]]],
    refusal: Callable[[str, Status], TickworkError | None],
) -> list[Steered]:
    checked = _checked(ids)
    named = _named(checked)
    answers: dict[str, Steered] = {}
    for task_id, found in zip(named, await _in_slices(named, act), strict=True):
        error = TaskNotFound(task_id) if found is None else refusal(task_id, found)
        answers[task_id] = Steered(task_id, found, error)
    return [answers[each.id] if each.done else each for each in checked]


def _checked(ids: Iterable[str]) -> list[Steered]:
    """Those that can be the id of a task, and for the others the error that says why not."""
    if isinstance(ids, str):
        raise ConfigError(f"app.tasks takes a list of ids or a TaskFilter, not the single text {shown(ids)}")
    checked: list[Steered] = []
    for task_id in ids:
        try:
            checked.append(Steered(known_id(task_id)))
        except TickworkError as error:
            checked.append(Steered(task_id if isinstance(task_id, str) else shown(task_id), None, error))
    return checked


def _named(checked: list[Steered]) -> list[str]:
    return list(dict.fromkeys(each.id for each in checked if each.done))


async def _in_slices(ids: list[str], act: Callable[[Sequence[str]], Awaitable[list[A]]]) -> list[A]:
    answers: list[A] = []
    for start in range(0, len(ids), MANY_MAX):
        answers += await act(ids[start : start + MANY_MAX])
    return answers


async def set_status(
    access: Access,
    task_id: str,
    wanted: Status,
    message: str,
    token: str | None,
    code: int = 0,
    data: bytes | None = None,
) -> None:
    """Move a task by hand, along the transition table only. `data` is JSON."""
    record, store = await access.record(task_id), await access.open_store()
    if token:
        await _end_held(store, record, wanted, token, _outcome(record.lease, wanted, message, code, data))
    elif record.status is Status.RUNNING and wanted.ended:
        raise LeaseLost(f"task {task_id} is running: its token is needed to end it, which its handler has as ctx.token")
    elif wanted is Status.CANCELLED and not record.status.ended:
        if await store.operators.cancel([task_id], False, message) == [Status.RUNNING]:
            raise LeaseLost(f"task {task_id} began to run meanwhile; nothing was changed")
    elif wanted is Status.READY and record.status.ended:
        await only_one(retry(access, [task_id]))
    elif wanted is Status.READY and record.status in DELAYED:
        await only_one(run_now(access, [task_id]))
    elif wanted is not record.status:
        raise TickworkError(f"task {task_id} is {record.status} and cannot become {wanted}")


async def _end_held(store: Store, record: Record, wanted: Status, token: str, outcome: Outcome) -> None:
    """End a run by its token. One that is wrong, late or of another task is refused in the same words, so that nobody
    learns from it."""
    if not wanted.ended:
        raise ConfigError(f"a token ends a running task; nothing becomes {wanted} by it")
    holds = is_token_of(str(token), record.id, record.fence, record.nonce) and record.status is Status.RUNNING
    verdict = (await store.tasks.finish([outcome])).verdicts[0] if holds else None
    if verdict is not None and verdict.kind == "later":
        raise StoreUnavailable(f"the partition of task {record.id} cannot be reached now; nothing was changed")
    # A call that was sent twice is answered with `already`; so is one that came after the worker's own outcome.
    if verdict is None or not (verdict.kind == "done" or (verdict.kind == "already" and _is_meant(verdict, wanted))):
        raise LeaseLost(f"this token does not hold task {record.id}; nothing was changed")


def _is_meant(verdict: Verdict, wanted: Status) -> bool:
    failed = (Status.FAILED, Status.DEAD)
    return verdict.status is wanted or (verdict.status in failed and wanted in failed)


def _outcome(lease: Lease, wanted: Status, message: str, code: int, data: bytes | None) -> Outcome:
    match wanted:
        case Status.SUCCESS:
            return Succeeded(lease, data, code, message)
        case Status.CANCELLED:
            return Stopped(lease, message=message)
        case _:
            return Aborted(lease, message or "failed by request")
