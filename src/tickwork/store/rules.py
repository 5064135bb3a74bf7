"""Decisions that all stores share: pure functions over records, schedules and queries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence, Set
from typing import TypeVar

from msgspec.structs import replace

from tickwork.clock import to_datetime
from tickwork.errors import StoreError
from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.members import Leader, Worker
from tickwork.model.needs import may_run
from tickwork.model.outcomes import Held, Outcome
from tickwork.model.policy import Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import DELAYED, ENDS, HELD, WAITING, ParkReason, Place, Record, Spec, Status
from tickwork.observe.loggers import Log
from tickwork.store.contract import (
    LOOK_MAX,
    Advance,
    Assignment,
    Claim,
    Claimed,
    Grant,
    Look,
    Query,
    Receipt,
    Unreadable,
    Waiting,
)
from tickwork.store.hints import Hint
from tickwork.texts import shown

T = TypeVar("T")

PARK_MAX = 100  # tasks that a claim may park in side lanes, so that one call stays bounded
OVERFLOW_PAUSE = 60.0  # seconds between two warnings that the dead-letter queue is full
LOST_WORKER_KEPT = 3_600_000  # milliseconds for which a lost worker is still listed
# Milliseconds for which locks and dedup keys are kept after their end. If the clock is set back, they hold again.
ENDED_KEPT = 3_600_000
NUMBER_MAX = 2**63 - 1  # greater than the number of any entry of a journal
VIRTUAL_MAX = 2**47  # beyond it, tasks of fair lanes come in the order of their submits
FORGOTTEN = 2  # keys of a fair lane that are forgotten with each task taken: more than can have become needless by it
FAIR_HEADS = 20  # tasks at the head of a fair lane that count as its first: any of them may have waited longest
UNLOCK_KEPT = 60_000  # milliseconds for which it is known who released a lock, as the call may be sent again


A = TypeVar("A")


def for_each(ids: Sequence[str], act: Callable[[str], A]) -> list[A]:
    """The answer for each id; `act` is called once for one that is given twice."""
    answers = {task_id: act(task_id) for task_id in dict.fromkeys(ids)}
    return [answers[task_id] for task_id in ids]


def announce(waiter: Hint, receipts: list[Receipt]) -> None:
    """To be called when a task was submitted together with the hint that its end is to raise."""
    (receipt,) = receipts
    waiter.announced = receipt.verdict == "created"


class Budget:
    """How many more tasks that may not start one claim may move: to side lanes, or to their end if they are overdue.
    `spent`: it found more than that, so that another claim may find tasks at once."""

    def __init__(self) -> None:
        self.left = PARK_MAX
        self.spent = False


class Overflow:
    """Warns that a full dead-letter queue drops its oldest tasks: at the first one, then at most once a minute."""

    def __init__(self) -> None:
        self._unreported = 0
        self._quiet_until = 0.0

    def add(self, log: Log, task_id: str, kind: str) -> None:
        self._unreported += 1
        if (now := time.monotonic()) < self._quiet_until:
            return
        log.warning(
            "the dead-letter queue is full: dropped %d of its oldest tasks, the last one %s (%s); "
            "empty it, or raise dlq_max", self._unreported, task_id, kind,
        )  # fmt: skip
        self._unreported, self._quiet_until = 0, now + OVERFLOW_PAUSE


def runs(record: Record) -> bool:
    return record.status is Status.RUNNING


def is_suspect(record: Record | Grant, policy: Policy) -> bool:
    """Whether the loss of one more worker would end this task for good (see `Policy.max_losses`).

    A process runs only one such task at a time. Tasks that were lost with one worker come back together, and the one
    that kills its worker must not take the others with it."""
    return 0 < record.losses >= policy.max_losses - 1


def grant(record: Record) -> Grant:
    worker_id, since = record.worker_id or "", ready_at(record.spec, record.place, record.due_at, record.submitted_at)
    return Grant(record.spec, record.lease, record.attempt, record.losses, record.submitted_at, worker_id, since)


def ready_at(spec: Spec, place: Place, due_at: int, submitted_at: int) -> int | None:
    """Since when a task could have run that is claimed from this place. It is not kept when a task came back to the
    front of its lane, nor when the last of the tasks ended on which it depends."""
    return None if place is Place.FRONT or spec.depends_on else max(due_at, submitted_at)


def claimed(records: list[Record], next_due_in: int | None) -> Claimed:
    """The answer to a claim, from the records of the tasks that it has started."""
    return Claimed(
        [grant(record) for record in records if not record.unreadable],
        next_due_in,
        [Unreadable(record.lease, record.unreadable) for record in records if record.unreadable],
    )


def has_assigned(record: Record | None, assignment: Assignment) -> bool:
    """Whether a task is in the inbox of that worker already: the call came again."""
    return record is not None and record.status is Status.ASSIGNED and record.worker_id == assignment.worker_id


def seen_waiting(record: Record) -> Waiting:
    spec = record.spec
    return Waiting(spec.id, spec.kind, spec.queue, spec.band, spec.key)


def shown_at_most(look: Look, loads: dict[str, int]) -> int:
    """How many ready tasks a look shows."""
    free = sum(max(slots - loads[worker], 0) for worker, slots in look.workers.items())
    return min(free + look.beyond, LOOK_MAX) if free else 0


def turn_of(now: int, last: int, cost: int) -> int:
    """The place of a task in a fair lane: its finish in virtual time. `now` is that of the task last taken from the
    lane, `last` that of the last task of the same key that came to it.

    A key whose tasks are not taken any faster than they come is at `now`, and its next task comes after one task of
    each other key. A key with many tasks has them far ahead in virtual time, each `cost` behind the one before."""
    return min(max(now, last) + cost, VIRTUAL_MAX)


def moves_to(record: Record, at: int) -> bool:
    """Whether a task can be moved to that due time, and is not there yet."""
    return record.status in WAITING or (record.status in DELAYED and record.due_at != at)


def due_text(at: int) -> str:
    """What the log says of the time to which a task was moved."""
    return to_datetime(at).isoformat(timespec="milliseconds")


def has_deadline(spec: Spec) -> bool:
    return spec.expires is not None or spec.expires_at is not None


def is_overdue(record: Record, now: int) -> bool:
    """Whether it should have started by now, so that it may not start any more."""
    spec = record.spec
    if spec.expires is None and spec.expires_at is None:
        return False
    deadline = transitions.deadline(record)
    return deadline is not None and deadline <= now


def holds_key(status: Status, unique: str | None) -> bool:
    """Whether a task with `unique` still holds the dedup key that it has taken."""
    return not status.ended and (unique == "unfinished" or status is not Status.RUNNING)


def last(items: list[T], count: int) -> list[T]:
    """The last so many of them."""
    return items[max(len(items) - count, 0) :]


class Wanted:
    """What a claimer may start, while some types are paused."""

    def __init__(self, claim: Claim, paused: Set[str]) -> None:
        self._claim = claim
        self._paused = paused
        self._known = claim.types - paused if paused else claim.types
        self._fresh = self._known
        self.front_queues: Set[str] = frozenset()  # those of which only the front of their lanes is wanted
        if claim.front_only:
            self._fresh = self._known - _named(claim.front_only, "type:")
            self.front_queues = _named(claim.front_only, "queue:")

    def may_start(self, kind: str, front: bool = False) -> bool:
        """Tasks of a kind: those in the front of their lanes, or others."""
        return may_run(kind, self._known if front else self._fresh, self._claim.worker_id, self._claim.labels)

    def reason(self, record: Record) -> ParkReason:
        """Why a task may not start."""
        kind = record.spec.type
        if kind in self._paused:
            return ParkReason.TYPE_PAUSED
        if kind not in self._known:
            return ParkReason.TYPE_UNKNOWN
        is_limited = kind not in self._fresh and record.place is not Place.FRONT
        return ParkReason.LIMITED if is_limited else ParkReason.LABELS_MISSING


def _named(names: Iterable[str], kind: str) -> frozenset[str]:
    return frozenset(name.removeprefix(kind) for name in names if name.startswith(kind))


def detail_of(record: Record, fact: Fact, outcome: Outcome) -> str:
    if isinstance(outcome, Held):
        return outcome.gate if fact is Fact.TASK_HELD else ""
    return record.last_error or "" if fact in (Fact.TASK_RETRYING, Fact.TASK_DIED, Fact.TASK_FAILED) else ""


def fence_of_end(record: Record | None) -> int | None:
    return None if record is None or not record.status.ended else record.fence


def moved_on(record: Record | None, fence: int | None) -> bool:
    """Whether a task was retried since the end with that fence. A task that was removed was not retried."""
    return record is not None and fence is not None and not (record.status.ended and record.fence == fence)


def matches(record: Record, query: Query) -> bool:
    spec = record.spec
    return (
        (query.status is None or record.status is query.status)
        and (query.type is None or spec.type == query.type)
        and (query.queue is None or spec.queue == query.queue)
        and (query.key is None or spec.key == query.key)
        and (not query.tags or query.tags.items() <= spec.tags.items())
    )


def not_a_cursor(cursor: str | None) -> StoreError:
    return StoreError(f"{shown(cursor)} is not a cursor of this list; use the one that came with the page before")


def read_cursor(query: Query, *start: int) -> tuple[int, ...]:
    """Where a page begins: the numbers of its cursor, or `start` when it is the first one."""
    if not query.cursor:
        return start
    parts = query.cursor.split(".")
    if len(parts) != len(start) or not all(len(part) < 19 and part.isascii() and part.isdigit() for part in parts):
        raise not_a_cursor(query.cursor)
    return tuple(map(int, parts))


def bounded_limit(limit: int, most: int) -> int:
    return max(0, min(limit, most))


def number_before(before: int | None) -> int:
    """Below which the numbers of a journal are read: one that every store can compare with."""
    return NUMBER_MAX if before is None else max(0, min(before, NUMBER_MAX))


def is_about_task(task_id: str, kind: str, subject: str) -> bool:
    """Whether a fact is about this task, and not about a queue, type or worker of the same name."""
    return subject == task_id and kind.startswith("task.")


def unsound(record: Record) -> list[str]:
    """What is wrong with a record: fields that contradict its status."""
    if record.unreadable:
        return [record.unreadable]
    status = record.status
    checks = {
        "runs without a lease": status is Status.RUNNING
        and not (record.lease_until and record.nonce and record.worker_id),
        "is assigned to nobody": status is Status.ASSIGNED and not (record.lease_until and record.worker_id),
        "has a lease but does not run": status not in HELD and record.lease_until != 0,
        "waits for a time but has none": status in DELAYED and record.due_at <= 0,
        "is blocked by nothing": status is Status.BLOCKED and not record.waiting,
        "waits for others but is not blocked": status is not Status.BLOCKED and bool(record.waiting),
        "has ended without a time": status in ENDS and record.finished_at is None,
        "has a reason to wait aside, but is in no side lane": record.parked is not None
        and not (status in (Status.READY, Status.PENDING) and record.place is Place.SIDE),
        "has a negative counter": min(record.attempt, record.losses, record.fence) < 0,
    }
    return [problem for problem, wrong in checks.items() if wrong]


def same_definition(old: Schedule, new: Schedule) -> bool:
    """Whether two schedules differ only in the fields that the store itself writes."""
    return redefined(old, new, old.updated_at) == old


def put_refused(old: Schedule | None, create: bool, seen: Schedule | None) -> bool:
    """Whether `put` must leave what is stored as it is."""
    if seen is not None:
        return old is None or not same_definition(old, seen)
    return create and old is not None


def redefined(old: Schedule | None, new: Schedule, now: int) -> Schedule:
    """The new definition of a schedule, with the history of the old one. The nonce of its task is kept, since it is not
    part of the definition; so is the next tick, if cron line and zone are the same."""
    if old is None:
        return replace(new, created_at=now, updated_at=now)
    same_time = (old.cron, old.timezone, old.dst) == (new.cron, new.timezone, new.dst)
    return replace(
        new,
        task=replace(new.task, nonce=old.task.nonce),
        next_at=old.next_at if same_time and old.next_at is not None else new.next_at,
        created_at=old.created_at,
        updated_at=now,
        last_fire_at=old.last_fire_at,
        last_task_id=old.last_task_id,
        last_status=old.last_status,
        stopped=old.stopped,
        paused=old.paused,
    )


def changed(schedule: Schedule, now: int, paused: bool | None, next_at: int | None, stopped: str | None) -> Schedule:
    return replace(
        schedule,
        paused=schedule.paused if paused is None else paused,
        # A resume by hand also enables a schedule that is defined as disabled.
        enabled=schedule.enabled or paused is False,
        next_at=schedule.next_at if next_at is None else next_at,
        stopped=schedule.stopped if stopped is None else stopped,
        updated_at=now,
    )


def fired(step: Advance, ticks: tuple[Spec, ...], policy: Policy) -> Advance:
    """The step when the tasks of its ticks were created. If they share a dedup key, only the first one was."""
    tick = ticks[0 if ticks[0].dedup_key is not None and policy.dedup else -1]
    return replace(step, fired=tick.id, fire_at=tick.scheduled_at)


def held_up(step: Advance, ticks: tuple[Spec, ...], holder: str) -> Advance:
    """The step when no task was created, since another task (`holder`) holds their dedup key."""
    return replace(step, skipped=holder, missed=step.missed + len(ticks) - 1)


def taken(step: Advance, ticks: tuple[Spec, ...], receipts: list[Receipt], policy: Policy) -> Advance:
    """The step, completed by the receipts of the tasks of its ticks."""
    if not ticks:
        return step
    if all(receipt.verdict == "duplicate" for receipt in receipts):
        return held_up(step, ticks, receipts[-1].other)
    return fired(step, ticks, policy)


def advance_facts(step: Advance) -> list[tuple[Fact, str]]:
    facts = [(Fact.SCHEDULE_MISSED, f"{step.missed} ticks")] if step.missed else []
    if step.skipped:
        facts.append((Fact.SCHEDULE_SKIPPED, step.skipped))
    if step.fired is not None:
        facts.append((Fact.SCHEDULE_FIRED, step.fired))
    return facts


def next_fence(last: int, now: int) -> int:
    """The next fence: greater than the last one, and no smaller than the time in microseconds. So no fence is given
    twice by a store that has lost its last writes, after a failover or when it was restored from a copy."""
    return max(last + 1, now * 1000)


SPAN = 2**20  # numbers of facts that each second has; more than a store can log in a second


def first_number(now: int) -> int:
    """The number at which a log begins, or goes on when it may have lost its last facts, so that no number is given
    twice. Numbers stay below 2^53 until the year 2242."""
    return now // 1000 * SPAN


def before_newest(last: int, kept: int) -> int:
    """The number before those of the newest `kept` facts. 0 where it is unknown, since the log has left numbers out."""
    return last - kept if last % SPAN >= kept else 0


def missed(after: int, dropped: int) -> int:
    """How many facts were dropped after the number `after`, up to the number `dropped`. The log may have left out
    numbers before the first number of a second, so only numbers of the last second are counted."""
    return max(dropped - max(after, dropped // SPAN * SPAN), 0)


def pulse(pulse_at: int, held: int, now: int, policy: Policy) -> tuple[int, int, int]:
    """What every claim, heartbeat and renewal does with the pulse, which is the time of the last such call.

    Answers the new pulse, until when no lease counts as expired, and by how much the clock was set back since. If
    nobody has called the store for so long that leases of living workers may have run out, or if the clock was set
    back, no lease counts as expired for the length of one lease from now, so that living workers can renew theirs. A
    pulse that is fresh is left as it is and costs no write. When the clock was set back, the caller moves the ends of
    leases, members and locks by as much, or they would last longer.
    """
    silence, quiet = now - pulse_at, policy.lease_ttl - policy.renew_interval
    if 0 <= silence < min(1000, quiet // 4):
        return pulse_at, held, 0
    return now, now + policy.lease_ttl if silence > quiet or silence < 0 else held, max(-silence, 0)


def first_waits(heads: Iterable[Record]) -> dict[str, int]:
    """By queue, since when the first of these ready tasks waits."""
    found: dict[str, int] = {}
    for record in heads:
        since, queue = max(record.due_at, record.submitted_at), record.spec.queue
        found[queue] = min(found.get(queue, since), since)
    return found


def leads(leader: Leader | None, now: int) -> Leader | None:
    """The stored leader, if its lease has not run out."""
    return leader if leader is not None and leader.until > now else None


def elect(old: Leader | None, node: str, ttl: int, now: int) -> tuple[Leader, bool]:
    """Who leads after `node` has asked for the leadership, and whether a new term began."""
    if old is None or old.until <= now:
        return Leader(node, (old.term if old else 0) + 1, now + ttl, ttl), True
    if old.id == node:
        return replace(old, until=now + ttl, ttl=ttl), False
    # The clock may have been set back: no lease has more time left than its own length.
    return replace(old, until=min(old.until, now + old.ttl)), False


def rival_of(worker: Worker, old: Worker | None, now: int) -> Worker | None:
    """The living member of the worker's name, if it belongs to another node."""
    lives = old is not None and old.lost_at is None and old.expires_at > now
    return old if lives and old is not None and old.node != worker.node else None


def still_gone(gone: tuple[str, ...], nodes: tuple[str, ...], node_of: Callable[[str], str | None]) -> tuple[str, ...]:
    """Those of the workers in `gone` that still belong to the node that was seen dead, or to none."""
    if not nodes:
        return gone
    return tuple(name for name, node in zip(gone, nodes, strict=True) if node_of(name) in (node, None))


def joined(worker: Worker, old: Worker | None, now: int, ttl: int) -> tuple[Worker, bool]:
    """The member after its heartbeat, and whether it has joined with it (for the first time, or after it was lost)."""
    same = old is not None and old.node == worker.node
    started_at, order = (old.started_at, old.order) if same and old is not None else (now, "")
    member = replace(worker, started_at=started_at, beat_at=now, expires_at=now + ttl, lost_at=None, order=order)
    return member, not same or (old is not None and old.lost_at is not None)


def advanced(schedule: Schedule, step: Advance) -> Schedule:
    if step.fired is None:
        return replace(schedule, next_at=step.next_at)
    return replace(schedule, next_at=step.next_at, last_fire_at=step.fire_at, last_task_id=step.fired, last_status="")
