"""Why a task is not running: the reason as data, and in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from tickwork.client.access import Access
from tickwork.client.views import seen_at
from tickwork.clock import to_datetime
from tickwork.errors import TaskNotFound
from tickwork.handlers.options import known_id
from tickwork.model.info import Explanation, Reason
from tickwork.model.members import Worker
from tickwork.model.needs import has_needs, may_run
from tickwork.model.tasks import Record, Spec, Status
from tickwork.store.contract import AHEAD_MAX, Situation, Store

WAITING_MAX = 20  # tasks that one waits for, looked at to explain it
Shown = Callable[[datetime], str]  # how to say a time


def in_utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


async def of_task(access: Access, task_id: str, shown: Shown = in_utc) -> Explanation:
    """Of a task in the store."""
    known_id(task_id)
    store = await access.open_store()
    found = await store.queries.situation(task_id)
    if found is None:
        raise TaskNotFound(task_id)
    waiting = found.record.waiting[:WAITING_MAX]
    ended = [upstream for upstream in waiting if await _has_ended(store, upstream)]
    return explain(found, seen_at(await store.members.workers(), store.now()), ended, shown)


async def _has_ended(store: Store, task_id: str) -> bool:
    record = await store.queries.get(task_id)
    return record is not None and record.status.ended


def explain(found: Situation, workers: list[Worker], ended: Sequence[str] = (), shown: Shown = in_utc) -> Explanation:
    """`ended` are those of the tasks it waits for that have ended already; `shown` is how to say a time."""
    record, status = found.record, found.record.status
    if status is Status.PENDING:
        due = to_datetime(record.due_at)
        problem = f" ({_first_line(record)})" if record.last_error else ""
        return Explanation(Reason.NOT_DUE, f"It waits for its time, {shown(due)}{problem}.", until=due)
    if status is Status.RETRYING:
        due = to_datetime(record.due_at)
        text = f"Attempt {record.attempt} failed ({_first_line(record)}); the next one is due at {shown(due)}."
        return Explanation(Reason.RETRY_NOT_DUE, text, until=due)
    if status is Status.BLOCKED:
        text = f"It waits for {', '.join(record.waiting)}." + _untold(ended, workers)
        return Explanation(Reason.BLOCKED, text, blockers=tuple(record.waiting))
    if status is Status.RUNNING:
        return _running(record)
    if status is Status.ASSIGNED:
        until = to_datetime(record.lease_until)
        text = f"It is assigned to {record.worker_id}, which has until {shown(until)} to take it."
        return Explanation(Reason.ASSIGNED, text, until=until, blockers=(record.worker_id or "",))
    if status.ended:
        line = _first_line(record) or record.message.partition("\n")[0]
        return Explanation(
            Reason.ENDED, f"It has ended: {status}" + (f" ({line})." if line and status is not Status.SUCCESS else ".")
        )
    return _why_ready(found, [worker for worker in workers if worker.lost_at is None])


def _first_line(record: Record) -> str:
    return (record.last_error or "").partition("\n")[0]


def _running(record: Record) -> Explanation:
    asked = ", and was asked to stop" if record.cancel else ""
    return Explanation(
        Reason.STOPPING if record.cancel else Reason.RUNNING,
        f"It is running on {record.worker_id}, attempt {record.attempt}{asked}.",
        blockers=(record.worker_id or "",),
    )


def _why_ready(found: Situation, alive: list[Worker]) -> Explanation:
    spec = found.record.spec
    for pause in found.pauses:
        reason = Reason.QUEUE_PAUSED if pause.kind == "queue" else Reason.TYPE_PAUSED
        note = f": {pause.note}." if pause.note else "."
        text = f"{pause.kind.capitalize()} {pause.name} is paused{note}"
        return Explanation(reason, text, ahead=found.ahead, blockers=(pause.name,))
    if not alive:
        return Explanation(Reason.NO_WORKER, "No worker is up.", ahead=found.ahead)
    serving = [worker for worker in alive if spec.queue in worker.queues]
    if not serving:
        return Explanation(Reason.QUEUE_UNSERVED, f"No worker that is up serves queue {spec.queue}.", ahead=found.ahead)
    able = [worker for worker in serving if spec.type in worker.task_types]
    if not able:
        text = f"No worker that is up on queue {spec.queue} knows task type {spec.type}."
        return Explanation(Reason.TYPE_UNKNOWN, text, ahead=found.ahead)
    fitting = [worker for worker in able if may_run(spec.kind, worker.task_types, worker.id, worker.labels)]
    if not fitting:
        return Explanation(Reason.LABELS_MISSING, _who_is_missing(spec, able), ahead=found.ahead)
    own = [worker for worker in fitting if worker.node or worker.assigned]
    if not own:
        text = f"Only workers that were registered by hand know task type {spec.type}, and those are given no tasks."
        return Explanation(Reason.TYPE_UNKNOWN, text, ahead=found.ahead)
    taking = [worker for worker in own if worker.status != "draining"]
    if not taking:
        text = "All workers that may run it are draining: they take no more tasks."
        names = tuple(worker.id for worker in own)
        return Explanation(Reason.WORKERS_DRAINING, text, ahead=found.ahead, blockers=names)
    return _in_line(found, taking)


def _who_is_missing(spec: Spec, able: list[Worker]) -> str:
    labels = ", ".join(need for need in spec.needs.split(",") if not need.startswith("@"))
    which = f" has the labels that it requires: {labels}" if labels else ""
    if "@" not in spec.needs:
        return f"No worker that is up and knows task type {spec.type}{which}."
    if any(has_needs(f"@{spec.target}", worker.id, {}) for worker in able):
        return f"It names worker {spec.target}, which lacks labels that it requires: {labels}."
    return f"It names worker {spec.target}, which is not up, or does not serve queue {spec.queue} and type {spec.type}."


def _in_line(found: Situation, able: list[Worker]) -> Explanation:
    """Nothing is wrong: it is a matter of time."""
    full = [worker.id for worker in able if found.running.get(worker.id, 0) >= worker.capacity]
    before = _before(found.ahead)
    if len(full) == len(able):
        text = f"All workers that may run it are busy{'; ' + before if before else ''}."
        return Explanation(Reason.WORKERS_BUSY, text, ahead=found.ahead, blockers=tuple(full))
    if found.ahead:
        return Explanation(Reason.IN_LINE, f"It is ready; {before}.", ahead=found.ahead)
    return Explanation(Reason.NEXT, "It is ready and will be taken next.", ahead=0)


def _before(ahead: int) -> str:
    if ahead >= AHEAD_MAX:
        return f"{AHEAD_MAX:,} or more tasks of its queue are before it"
    if ahead > 1:
        return f"{ahead} tasks of its queue are before it"
    return "one task of its queue is before it" if ahead else ""


def _untold(ended: Sequence[str], workers: list[Worker]) -> str:
    if not ended:
        return ""
    have = f" {', '.join(ended)} {'has' if len(ended) == 1 else 'have'} ended"
    if all(worker.lost_at is not None for worker in workers):
        return f"{have}, but no node is up that would tell it so."
    return f"{have}, and it will be told so in a moment."
