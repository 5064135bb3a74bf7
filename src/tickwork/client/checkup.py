"""What is right and wrong with a store, its workers and its schedules, and what to do: for `tickwork doctor` and the
dashboard."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from tickwork.client.breakers import BreakerInfo
from tickwork.client.client import Client
from tickwork.client.limits import LimitInfo
from tickwork.client.queues import QueueInfo
from tickwork.client.schedules import ScheduleInfo
from tickwork.client.switches import SwitchInfo
from tickwork.clock import to_datetime, to_millis
from tickwork.ids import name_of
from tickwork.model.members import Leader, Worker
from tickwork.model.schedules import UNDECLARED
from tickwork.model.tasks import CANNOT_READ, Band, Status
from tickwork.store.contract import Finding, NotPermitted, Pause, Stats, Store
from tickwork.texts import duration, many, moment

LATE = 10_000  # milliseconds that a tick may be overdue
SKEW = 5_000  # milliseconds that a written time may lie ahead of the clock
RECENT = 3_600_000
EPOCH_OF_THIS_RELEASE = 1_735_689_600_000  # no honest clock shows a time before 2025
WAITING = (Status.READY, Status.PENDING, Status.RETRYING)
START_LEADER = "start one that does: `tickwork up MODULE:APP` or `tickwork up --role scheduler`"
WEBHOOKS = "tickwork.webhooks."  # begins the names of their queues; one that is paused is switched off


class Patient(NamedTuple):
    """Everything that is looked at, read in one go."""

    now: int
    host_now: int
    stats: Stats
    workers: list[Worker]
    queues: list[QueueInfo]
    pauses: list[Pause]
    schedules: list[ScheduleInfo]
    newest_event_at: int | None
    audit: list[str] | None  # None: it may not be done
    audit_seconds: float | None  # None: it was not asked for
    store: tuple[Finding, ...] = ()  # what its kind of store says of its server
    leader: Leader | None = None
    switches: Sequence[SwitchInfo] = ()
    breakers: Sequence[BreakerInfo] = ()
    limits: Sequence[LimitInfo] = ()


async def examine(client: Client, *, audit: bool = True) -> Patient:
    """An audit looks at every task; all else takes a moment."""
    store = await client._access.open_store()
    last = await store.log.last()
    newest = await client.events.read(last - 1, 1) if last else []
    faults, seconds = await _audit(store) if audit else (None, None)
    return Patient(
        now=store.now(),
        host_now=round(time.time() * 1000),
        stats=await store.queries.stats(),
        workers=await store.members.workers(),
        queues=await client.queues.list(),
        pauses=await store.queries.paused(),
        schedules=[schedule async for schedule in client.schedules],
        newest_event_at=to_millis(newest[0].at) if newest else None,
        audit=faults,
        audit_seconds=seconds,
        store=tuple(await store.queries.health()),
        leader=await store.members.leader(),
        switches=await client.switches.list(),
        breakers=await client.breakers.list(),
        limits=await client.limits.list(),
    )


async def _audit(store: Store) -> tuple[list[str] | None, float]:
    started = time.monotonic()
    try:
        return await store.queries.audit(), time.monotonic() - started
    except NotPermitted:
        return None, 0.0


def check_patient(patient: Patient) -> Iterator[Finding]:
    yield from check_audit(patient)
    yield from check_clock(patient)
    yield from check_workers(patient)
    yield from check_leader(patient)
    yield from check_waiting(patient)
    yield from check_rules(patient)
    yield from check_schedules(patient)
    yield from check_dead_letters(patient)


def check_audit(patient: Patient) -> Iterator[Finding]:
    if patient.audit_seconds is None:
        return
    if patient.audit is None:
        advice = "run doctor with a user that has the rights of `tickwork acl --for audit`"
        yield Finding("warning", "no audit: a worker's user may not look through all keys", advice)
        return
    total = sum(patient.stats.statuses.values())
    unreadable = [line for line in patient.audit if CANNOT_READ in line]
    faults = [line for line in patient.audit if CANNOT_READ not in line]
    for line in unreadable[:10]:
        yield Finding("problem", line)
    if unreadable:
        yield Finding(
            "problem",
            f"{len(unreadable):,} of what is stored cannot be read by this version",
            "a newer version wrote it, or it was damaged: let that version run it, or delete it with "
            "`tickwork delete ID` or `tickwork schedules delete ID`",
        )
    for problem in faults[:10]:
        yield Finding("problem", f"audit: {problem}")
    if faults:
        yield Finding(
            "problem",
            f"the audit found {many(len(faults), 'fault')}",
            "keep a copy of the store and report this: no sequence of calls should lead here; if keys of a Redis were "
            "lost or evicted, `tickwork doctor --mend` puts right what is left",
        )
    if not patient.audit:
        yield Finding("ok", f"the audit of {many(total, 'task')} found nothing ({duration(patient.audit_seconds)})")


def check_clock(patient: Patient) -> Iterator[Finding]:
    ahead = max([patient.newest_event_at or 0, *(worker.beat_at for worker in patient.workers)]) - patient.now
    now = moment(to_datetime(patient.now))
    if patient.now < EPOCH_OF_THIS_RELEASE:
        yield Finding("problem", f"the clock shows {now}", "set it; tasks run at wrong times")
    elif ahead > SKEW:
        yield Finding(
            "problem",
            f"the store holds times {duration(ahead / 1000)} ahead of its clock, so the clock was set back",
            "set it right (NTP); until then leases and delays last longer than they should",
        )
    elif abs(patient.now - patient.host_now) > SKEW:
        apart = duration(abs(patient.now - patient.host_now) / 1000)
        yield Finding("warning", f"this host's clock and the store's are {apart} apart", "the store's decides; use NTP")
    else:
        yield Finding("ok", f"the clock shows {now}")


def check_workers(patient: Patient) -> Iterator[Finding]:
    alive = [worker for worker in patient.workers if worker.lost_at is None]
    silent = [worker for worker in alive if worker.expires_at < patient.now]
    waiting = sum(patient.stats.statuses.get(status, 0) for status in WAITING)
    start = "start one: tickwork up MODULE:APP"
    if not alive:
        if waiting:
            yield Finding("problem", f"no worker is up, with {many(waiting, 'task')} waiting", start)
        else:
            yield Finding("warning", "no worker is up", start)
    elif silent:
        names = ", ".join(worker.id for worker in silent)
        advice = "a node takes their tasks back by itself; if none is up, start one: tickwork up MODULE:APP"
        yield Finding("problem", f"no heartbeat for a whole lease: {names}", advice)
    else:
        slots = sum(worker.capacity for worker in alive)
        yield Finding("ok", f"{many(len(alive), 'worker')} up with {many(slots, 'slot')}")
    lost = [worker for worker in patient.workers if worker.lost_at and patient.now - worker.lost_at < RECENT]
    if lost:
        yield Finding(
            "warning",
            f"{many(len(lost), 'worker')} lost in the last hour; their tasks were taken back",
            "look at how those processes ended: out of memory, or killed?",
        )
    draining = [worker.id for worker in alive if worker.status == "draining"]
    if draining:
        yield Finding(
            "warning",
            f"{many(len(draining), 'worker')} asked to take no more tasks: {', '.join(draining)}",
            "when they may go on: tickwork workers resume ID",
        )
    stuck = sum(worker.leaked for worker in alive)
    if stuck:
        yield Finding(
            "warning",
            f"{many(stuck, 'handler')} asked to stop, but still running",
            'let them look at ctx.cancelled, or run them with run_in="process"',
        )


def check_leader(patient: Patient) -> Iterator[Finding]:
    alive = any(worker.lost_at is None for worker in patient.workers)
    if patient.leader is not None:
        yield Finding("ok", f"node {name_of(patient.leader.id)} leads, term {patient.leader.term}")
    elif alive or any(schedule.next_at is not None for schedule in patient.schedules):
        yield Finding("problem", "no node leads: schedules do not run, and ended tasks are not removed", START_LEADER)


def _resume(pause: Pause) -> str:
    if pause.kind == "queue" and pause.name.startswith(WEBHOOKS):
        return f"webhooks enable {pause.name.removeprefix(WEBHOOKS)}"
    return f"queues resume {'--type ' if pause.kind == 'type' else ''}{pause.name}"


def check_waiting(patient: Patient) -> Iterator[Finding]:
    """Tasks that nobody is going to take."""
    alive = [worker for worker in patient.workers if worker.lost_at is None]
    paused_types = {pause.name for pause in patient.pauses if pause.kind == "type"}
    for pause in patient.pauses:
        note = f": {pause.note}" if pause.note else ""
        since = duration((patient.now - pause.at) / 1000)
        yield Finding(
            "warning",
            f"{pause.kind} {pause.name} has been paused for {since}{note}",
            f"when it may go on: tickwork {_resume(pause)}",
        )
    for (queue, kind), count in sorted(patient.stats.parked.items()):
        if kind in paused_types or any(queue in worker.queues and kind in worker.task_types for worker in alive):
            continue
        yield Finding(
            "problem",
            f"{many(count, 'task')} of type {kind} in queue {queue}, where no worker knows that type",
            "start a worker whose application has a handler for it, or cancel them",
        )
    for found in patient.queues:
        ready = sum(patient.stats.ready.get((found.name, band), 0) for band in Band)
        if ready and alive and not found.workers and not found.paused:
            yield Finding(
                "problem",
                f"{many(ready, 'task')} ready in queue {found.name}, which no worker serves",
                f"start one with --queues {found.name}",
            )


def check_rules(patient: Patient) -> Iterator[Finding]:
    """What somebody has set and may have forgotten, and what holds tasks."""
    for switch in patient.switches:
        yield Finding(
            "warning",
            f"{switch.of} {_since('has been switched off', switch.since, patient)}{_said(switch.by, switch.note)}",
            f"to start its tasks again: tickwork switches on {switch.of}",
        )
    for breaker in patient.breakers:
        state = _since("was opened by hand and has been open", breaker.since, patient) if breaker.by_hand else (
            f"is {breaker.state.replace('_', '-')} after {many(breaker.failures, 'failure')}"
        )  # fmt: skip
        yield Finding(
            "warning",
            f"breaker {breaker.of} {state}{_said(breaker.by, breaker.note)}",
            f"to let its tasks through at once: tickwork breakers close {breaker.of}",
        )
    for limit in patient.limits:
        if limit.origin == "hand":
            yield Finding(
                "warning",
                f"{limit.of} {_since('has been limited by hand', limit.since, patient)} ({limit.text})"
                f"{_said(limit.by, limit.note)}",
                f"to go by the code again: tickwork limits remove {limit.of}",
            )


def _since(what: str, since: datetime | None, patient: Patient) -> str:
    return what if since is None else f"{what} for {duration((patient.now - to_millis(since)) / 1000)}"


def _said(by: str, note: str) -> str:
    return (f" by {by}" if by else "") + (f": {note}" if note else "")


def check_schedules(patient: Patient) -> Iterator[Finding]:
    late = [
        (schedule.id, overdue)
        for schedule in patient.schedules
        if schedule.next_at is not None and (overdue := patient.now - to_millis(schedule.next_at)) > LATE
    ]
    leader = patient.leader
    for schedule_id, overdue in late:
        yield Finding(
            "problem",
            f"schedule {schedule_id} is {duration(overdue / 1000)} late",
            START_LEADER if leader is None else f"look at the log of node {name_of(leader.id)}, which leads",
        )
    for schedule in patient.schedules:
        if schedule.stopped == UNDECLARED:
            yield Finding(
                "warning",
                f"schedule {schedule.id} has stopped: {UNDECLARED}",
                f"if it is not wanted any more: tickwork schedules delete {schedule.id}; else start the program that "
                "has it in its code",
            )
        elif schedule.stopped and not schedule.stopped.startswith(CANNOT_READ):
            advice = f"when that is mended: tickwork schedules resume {schedule.id}"
            yield Finding("warning", f"schedule {schedule.id} has stopped: {schedule.stopped}", advice)
    yield from orphans(patient)
    if patient.schedules and not late:
        yield Finding("ok", f"{many(len(patient.schedules), 'schedule')}, none late")


def orphans(patient: Patient) -> Iterator[Finding]:
    """Schedules whose tasks nobody can run, as those of functions that a program no longer has."""
    alive = [worker for worker in patient.workers if worker.lost_at is None]
    known = {kind for worker in alive for kind in worker.task_types}
    for schedule in patient.schedules:
        if alive and schedule.enabled and schedule.stopped != UNDECLARED and schedule.type not in known:
            yield Finding(
                "warning",
                f"schedule {schedule.id} fires tasks of type {schedule.type}, which no worker that is up knows",
                f"if it is not wanted any more: tickwork schedules delete {schedule.id}; else start a worker whose "
                "application has a handler for it",
            )


def check_dead_letters(patient: Patient) -> Iterator[Finding]:
    dead = patient.stats.statuses.get(Status.DEAD, 0)
    if dead:
        advice = "look at them with `tickwork dlq list`; run them again with `tickwork dlq retry-all`"
        yield Finding("warning", many(dead, "dead letter"), advice)
    else:
        yield Finding("ok", "no dead letters")
    if patient.stats.dropped:
        yield Finding(
            "warning",
            f"{patient.stats.dropped:,} dead letters were dropped, as there were more than dlq_max",
            "empty them sooner, or raise dlq_max",
        )
