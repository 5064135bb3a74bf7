"""Why a task is not running, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from tickwork.client.access import Access
from tickwork.clock import to_datetime
from tickwork.model.members import Worker
from tickwork.model.tasks import Record, Spec, Status
from tickwork.store.contract import Pause, Store

WAITING_MAX = 20  # tasks that one waits for, looked at to explain it
Shown = Callable[[datetime], str]  # how to say a time


def in_utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


async def of_task(access: Access, task_id: str, shown: Shown = in_utc) -> str:
    """Of a task in the store."""
    store, record = await access.open_store(), await access.record(task_id)
    ended = [task_id for task_id in record.waiting[:WAITING_MAX] if await _has_ended(store, task_id)]
    return explain(record, await store.queries.paused(), await store.members.workers(), ended, shown)


async def _has_ended(store: Store, task_id: str) -> bool:
    record = await store.queries.get(task_id)
    return record is not None and record.status.ended


def explain(
    record: Record,
    pauses: list[Pause],
    workers: list[Worker],
    ended: Sequence[str] = (),
    shown: Shown = in_utc,
) -> str:
    """Why a task is not running. `ended` are those of the tasks it waits for that have ended already; `shown` is how to
    say a time."""
    spec, status = record.spec, record.status
    if status is Status.PENDING:
        problem = (record.last_error or "").partition("\n")[0]
        return f"It waits for its time, {shown(to_datetime(record.due_at))}" + (f" ({problem})." if problem else ".")
    if status is Status.RETRYING:
        first_line = (record.last_error or "").partition("\n")[0]
        due = shown(to_datetime(record.due_at))
        return f"Attempt {record.attempt} failed ({first_line}); the next one is due at {due}."
    if status is Status.BLOCKED:
        return f"It waits for {', '.join(record.waiting)}." + _untold(ended, workers)
    if status is Status.RUNNING:
        asked = ", and was asked to stop" if record.cancel else ""
        return f"It is running on {record.worker_id}, attempt {record.attempt}{asked}."
    if status.ended:
        first_line = (record.last_error or record.message or "").partition("\n")[0]
        return f"It has ended: {status}" + (f" ({first_line})." if first_line and status is not Status.SUCCESS else ".")
    return _why_ready(spec, pauses, [worker for worker in workers if worker.lost_at is None])


def _why_ready(spec: Spec, pauses: list[Pause], alive: list[Worker]) -> str:
    for pause in pauses:
        if (pause.kind, pause.name) in (("queue", spec.queue), ("type", spec.type)):
            return f"{pause.kind.capitalize()} {pause.name} is paused" + (f": {pause.note}." if pause.note else ".")
    if not alive:
        return "No worker is up."
    serving = [worker for worker in alive if spec.queue in worker.queues]
    if not serving:
        return f"No worker that is up serves queue {spec.queue}."
    able = [worker for worker in serving if spec.type in worker.task_types]
    if not able:
        return f"No worker that is up on queue {spec.queue} knows task type {spec.type}."
    own = [worker for worker in able if worker.node]
    if not own:
        return f"Only workers that were registered by hand know task type {spec.type}, and those are given no tasks."
    if all(worker.running >= worker.capacity for worker in own):
        return "All workers that may run it are busy."
    return "It is ready and will be taken next."


def _untold(ended: Sequence[str], workers: list[Worker]) -> str:
    if not ended:
        return ""
    have = f" {', '.join(ended)} {'has' if len(ended) == 1 else 'have'} ended"
    if all(worker.lost_at is not None for worker in workers):
        return f"{have}, but no node is up that would tell it so."
    return f"{have}, and it will be told so in a moment."
