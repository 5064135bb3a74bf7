"""Records as users see them. Pure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tickwork.clock import to_datetime
from tickwork.errors import ConfigError, PayloadError
from tickwork.handlers.context import copied
from tickwork.handlers.registry import Registry
from tickwork.ids import name_of
from tickwork.model import facts
from tickwork.model.info import AttemptInfo, Event, QueueStats, TaskInfo, TaskResult, WorkerInfo
from tickwork.model.members import Worker, WorkerStatus
from tickwork.model.tasks import Attempt, Band, History, ParkReason, Record, Spec, Status
from tickwork.payload.codec import JSON, BuiltinSerializer
from tickwork.store.contract import Stats
from tickwork.texts import shown

NO_HISTORY = History()
FACTS: dict[str, facts.Fact] = {fact.value: fact for fact in facts.Fact}


HELD_BY: dict[ParkReason, Literal["limit", "breaker", "switch"]] = {
    ParkReason.LIMITED: "limit", ParkReason.BREAKER_OPEN: "breaker", ParkReason.SWITCHED_OFF: "switch",
}  # fmt: skip


def task_info(record: Record, registry: Registry, history: History = NO_HISTORY) -> TaskInfo:
    spec = record.spec
    asked = record.submitted_at + spec.delay if spec.at is None else spec.at
    expires_at = spec.deadline(asked if record.fence else record.due_at)
    return TaskInfo(
        id=spec.id,
        type=spec.type,
        queue=spec.queue,
        priority=spec.priority,
        payload=payload_of(spec, registry),
        status=record.status,
        attempt=record.attempt,
        retry_count=record.retry_count,
        max_retry=spec.max_retry,
        losses=record.losses,
        worker_id=record.worker_id,
        schedule_id=spec.schedule_id,
        submitted_at=to_datetime(record.submitted_at),
        scheduled_at=to_datetime(spec.scheduled_at or record.due_at),
        started_at=None if record.started_at is None else to_datetime(record.started_at),
        finished_at=None if record.finished_at is None else to_datetime(record.finished_at),
        last_error=record.last_error,
        execution_time=record.execution_time,
        result=_result(record),
        tags=dict(spec.tags),
        context=copied(spec.context),
        progress=record.progress,
        progress_note=record.progress_note,
        log=tuple(history.lines),
        depends_on=spec.depends_on,
        waiting_for=tuple(record.waiting),
        key=spec.key,
        cancelling=record.cancel,
        timeout=spec.timeout,
        retry=spec.retry,
        dedup_key=spec.dedup_key,
        dedup_ttl=spec.dedup_ttl / 1000 if spec.dedup_key is not None and spec.unique is None else None,
        unique=spec.unique,
        expires_at=None if expires_at is None else to_datetime(expires_at),
        retention=None if spec.retention is None else spec.retention / 1000,
        attempts=tuple(map(_attempt_info, history.attempts)),
        serializer=spec.serializer,
        executor=spec.executor or "local",
        target=spec.target,
        requires=dict(spec.requires),
        held_by=HELD_BY.get(record.parked) if record.status is Status.PENDING and record.parked else None,
    )


def _attempt_info(attempt: Attempt) -> AttemptInfo:
    return AttemptInfo(
        number=attempt.number,
        started_at=to_datetime(attempt.started_at),
        finished_at=to_datetime(attempt.finished_at),
        worker_id=attempt.worker_id,
        end=attempt.end,
        duration=attempt.duration,
        error=attempt.error,
    )


def payload_of(spec: Spec, registry: Registry) -> Any:
    """Plain values where the serializer is known here, else the bytes as they are; None if there is no payload."""
    try:
        serializer = registry.serializer(spec.serializer)
        if not spec.payload and isinstance(serializer, BuiltinSerializer):
            return None
        return serializer.decode(spec.payload)
    except Exception:  # a serializer of the user's own may raise anything; a record must be readable all the same
        return spec.payload


def _result(record: Record) -> TaskResult | None:
    if not record.status.ended:
        return None
    message = record.message or (record.last_error or "").partition("\n")[0]
    match record.status:
        case Status.SUCCESS:
            return TaskResult(record.code, record.message, _plain(record.result))
        case Status.CANCELLED:
            return TaskResult(record.code or TaskResult.CANCELLED, message)
        case _:
            return TaskResult(record.code or TaskResult.FAILED, message)


def _plain(result: bytes | None) -> Any:
    """As `payload_of`: what cannot be read is shown as it is."""
    if result is None:
        return None
    try:
        return JSON.decode(result)
    except (PayloadError, msgspec.DecodeError, ValueError):
        return result


def seen_at(workers: list[Worker], now: int) -> list[Worker]:
    """The workers as they are now: one whose time is over counts as lost, also while no node is up to say so."""
    return [
        msgspec.structs.replace(worker, lost_at=worker.expires_at)
        if worker.lost_at is None and worker.expires_at <= now
        else worker
        for worker in workers
    ]


def worker_info(worker: Worker) -> WorkerInfo:
    return WorkerInfo(
        id=worker.id,
        status=worker.status,
        node=name_of(worker.node),
        host=worker.host.partition("/")[0],
        pid=worker.pid,
        address=worker.address,
        version=worker.version,
        queues=worker.queues,
        task_types=worker.task_types,
        labels=dict(worker.labels),
        weight=worker.weight,
        capacity=worker.capacity,
        running=worker.running,
        leaked=worker.leaked,
        cpu=worker.cpu,
        memory=worker.memory,
        loop_lag=worker.loop_lag,
        started_at=to_datetime(worker.started_at),
        beat_at=to_datetime(worker.beat_at),
        expires_at=to_datetime(worker.expires_at),
        lost_at=None if worker.lost_at is None else to_datetime(worker.lost_at),
        order=worker.order,
        follows=worker.follows,
    )


def worker_infos(workers: list[Worker], status: str | None = None) -> list[WorkerInfo]:
    """Those of a status, if one is wanted; all but offline ones are online."""
    if status is not None and status not in tuple(WorkerStatus):
        raise ConfigError(f"unknown status {shown(status)} of a worker; known are {', '.join(WorkerStatus)}")
    return [worker_info(worker) for worker in workers if status is None or _is(worker.status, status)]


def _is(found: WorkerStatus, wanted: str) -> bool:
    return found == wanted or (wanted == WorkerStatus.ONLINE and found is not WorkerStatus.OFFLINE)


def event(fact: facts.Event) -> Event:
    return Event(
        seq=fact.seq,
        at=to_datetime(fact.at),
        kind=FACTS.get(fact.kind, fact.kind),
        id=fact.id,
        type=fact.type,
        queue=fact.queue,
        worker_id=fact.worker_id,
        attempt=fact.attempt,
        duration=fact.duration,
        detail=fact.detail,
    )


def queue_stats(stats: Stats) -> QueueStats:
    bands = dict.fromkeys(Band, 0)
    for (_, band), count in stats.ready.items():
        bands[Band(band)] += count
    return QueueStats(
        delayed_count=stats.statuses[Status.PENDING] + stats.statuses[Status.RETRYING],
        high_count=bands[Band.HIGH],
        normal_count=bands[Band.NORMAL],
        low_count=bands[Band.LOW],
        running_count=stats.statuses[Status.RUNNING],
        worker_count=stats.workers,
        dlq_count=stats.statuses[Status.DEAD],
    )
