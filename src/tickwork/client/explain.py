"""Why a task is not running: the reason as data, and in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from tickwork.client.access import Access
from tickwork.client.holds import Passage, Shown, held_up, passages, stopped_by_hand
from tickwork.client.views import HELD_BY, seen_at
from tickwork.clock import to_datetime
from tickwork.errors import TaskNotFound
from tickwork.handlers.options import known_id
from tickwork.model.info import Explanation, Reason
from tickwork.model.members import Worker
from tickwork.model.needs import has_needs, may_run
from tickwork.model.tasks import DELAYED, Record, Spec, Status
from tickwork.store.contract import AHEAD_MAX, Situation, Store

WAITING_MAX = 20  # tasks that one waits for, looked at to explain it


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
    workers = seen_at(await store.members.workers(), store.now())
    to_start = found.record.status in (*DELAYED, Status.READY)
    gates = await passages(store, access.registry, found.record.spec) if to_start else []
    return explain(found, workers, ended, shown, gates, store.now())


async def _has_ended(store: Store, task_id: str) -> bool:
    record = await store.queries.get(task_id)
    return record is not None and record.status.ended


def explain(
    found: Situation,
    workers: list[Worker],
    ended: Sequence[str] = (),
    shown: Shown = in_utc,
    gates: Sequence[Passage] = (),
    now: int = 0,
) -> Explanation:
    """`ended` are those of the tasks it waits for that have ended already; `shown` is how to say a time; `gates` are
    those that it has to pass."""
    record, status = found.record, found.record.status
    alive = [worker for worker in workers if worker.lost_at is None]
    if status in DELAYED:
        return _why_delayed(found, alive, shown, gates, now)
    if status is Status.BLOCKED:
        text = f"It waits for {', '.join(record.waiting)}." + _untold(ended, alive)
        return Explanation(Reason.BLOCKED, text, blockers=tuple(record.waiting))
    if status is Status.RUNNING:
        return _running(record, workers, shown, now)
    if status is Status.ASSIGNED:
        until = to_datetime(record.lease_until)
        lost = "" if _lost_since(record, workers) is None else ", but is lost"
        text = f"It is assigned to {record.worker_id}, which has until {shown(until)} to take it{lost}."
        return Explanation(Reason.ASSIGNED, text, until=until, blockers=(record.worker_id or "",))
    if status.ended:
        line = _first_line(record) or record.message.partition("\n")[0]
        return Explanation(
            Reason.ENDED, f"It has ended: {status}" + (f" ({line})." if line and status is not Status.SUCCESS else ".")
        )
    takers = _takers(found, alive, shown, gates, now)
    return takers if isinstance(takers, Explanation) else _in_line(found, takers)


def _first_line(record: Record) -> str:
    return (record.last_error or "").partition("\n")[0]


def _why_delayed(
    found: Situation, alive: list[Worker], shown: Shown, gates: Sequence[Passage], now: int
) -> Explanation:
    """One whose time has come, or that was held by a gate, is kept by the same as one that is ready."""
    record = found.record
    due = to_datetime(record.due_at)
    held = HELD_BY.get(record.parked) if record.parked is not None else None
    if held or record.due_at <= now:
        takers = _takers(found, alive, shown, gates, now)
        if isinstance(takers, Explanation):
            return replace(takers, ahead=None)
    if held:
        text = f"The {held} that held it lets it through now: it goes on in a moment, at {shown(due)} at the latest."
        return Explanation(Reason.NEXT, text, until=due)
    problem = _first_line(record)
    if record.status is Status.RETRYING:
        text = f"Attempt {record.attempt} failed ({problem}); the next one is due at {shown(due)}."
        return Explanation(Reason.RETRY_NOT_DUE, text, until=due)
    text = f"It waits for its time, {shown(due)}{f' ({problem})' if problem else ''}."
    return Explanation(Reason.NOT_DUE, text, until=due)


def _running(record: Record, workers: list[Worker], shown: Shown, now: int) -> Explanation:
    until = to_datetime(record.lease_until)
    blockers = (record.worker_id or "",)
    lost = _lost_since(record, workers)
    if lost is not None or record.lease_until <= now:
        which = f"Worker {record.worker_id}, which runs attempt {record.attempt},"
        state = f"is lost since {shown(to_datetime(lost))}" if lost is not None else "has not renewed its lease"
        ends = "ends" if record.lease_until > now else "ended"
        nobody = all(worker.lost_at is not None for worker in workers)
        then = "but no worker is up that would take the task back" if nobody else "then the task is taken back"
        text = f"{which} {state}; the lease {ends} at {shown(until)}, {then}."
        return Explanation(Reason.WORKER_LOST, text, until=until, blockers=blockers)
    asked = ", and was asked to stop" if record.cancel else ""
    text = f"It is running on {record.worker_id}, attempt {record.attempt}{asked}; its lease ends at {shown(until)}."
    return Explanation(Reason.STOPPING if record.cancel else Reason.RUNNING, text, until=until, blockers=blockers)


def _lost_since(record: Record, workers: list[Worker]) -> int | None:
    """A worker that is not known is none that was lost: its lease tells."""
    return next((worker.lost_at for worker in workers if worker.id == record.worker_id), None)


def _takers(
    found: Situation, alive: list[Worker], shown: Shown, gates: Sequence[Passage], now: int
) -> list[Worker] | Explanation:
    """The workers that would start it, or what keeps all of them from it."""
    for pause in found.pauses:
        reason = Reason.QUEUE_PAUSED if pause.kind == "queue" else Reason.TYPE_PAUSED
        since = f" since {shown(to_datetime(pause.at))}" if pause.at else ""
        note = f": {pause.note}." if pause.note else "."
        text = f"{pause.kind.capitalize()} {pause.name} is paused{since}{note}"
        return Explanation(reason, text, ahead=found.ahead, blockers=(pause.name,))
    stopped = stopped_by_hand(gates, shown)
    takers = _able(found, alive) if stopped is None else stopped
    if not isinstance(takers, Explanation):
        takers = held_up(gates, found.record.parked, now, shown) or takers
    return replace(takers, ahead=found.ahead) if isinstance(takers, Explanation) else takers


def _able(found: Situation, alive: list[Worker]) -> list[Worker] | Explanation:
    """The workers that may run it and take tasks, or why there is none."""
    spec = found.record.spec
    if not alive:
        return Explanation(Reason.NO_WORKER, "No worker is up.")
    serving = [worker for worker in alive if spec.queue in worker.queues]
    if not serving:
        return Explanation(Reason.QUEUE_UNSERVED, f"No worker that is up serves queue {spec.queue}.")
    able = [worker for worker in serving if spec.type in worker.task_types]
    if not able:
        text = f"No worker that is up on queue {spec.queue} knows task type {spec.type}."
        return Explanation(Reason.TYPE_UNKNOWN, text)
    fitting = [worker for worker in able if may_run(spec.kind, worker.task_types, worker.id, worker.labels)]
    if not fitting:
        return Explanation(Reason.LABELS_MISSING, _who_is_missing(spec, able))
    own = [worker for worker in fitting if worker.node or worker.assigned]
    if not own:
        text = f"Only workers that were registered by hand know task type {spec.type}, and those are given no tasks."
        return Explanation(Reason.TYPE_UNKNOWN, text)
    taking = [worker for worker in own if worker.status != "draining"]
    if not taking:
        text = "All workers that may run it are draining: they take no more tasks."
        return Explanation(Reason.WORKERS_DRAINING, text, blockers=tuple(worker.id for worker in own))
    return taking


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


def _untold(ended: Sequence[str], alive: list[Worker]) -> str:
    if not ended:
        return ""
    have = f" {', '.join(ended)} {'has' if len(ended) == 1 else 'have'} ended"
    if not alive:
        return f"{have}, but no node is up that would tell it so."
    return f"{have}, and it will be told so in a moment."
