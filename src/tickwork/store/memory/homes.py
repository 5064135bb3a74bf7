"""The homes of the memory store: where a task of each status is, and what its end brings with it.

Each status has one home: `delayed` (pending, retrying), `blocked`, `lanes` (ready), `inboxes` (assigned), `leases`
(running) and `ends`.
A transition takes the record out of its home (`leave`), changes it, and puts it into that of its new status (`enter`).
"""

from __future__ import annotations

from collections import OrderedDict

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.tasks import DELAYED, ENDS, MAY_EXPIRE, Attempt, Place, Record, Spec, Status
from tickwork.store.contract import Pause
from tickwork.store.hints import OUTBOX
from tickwork.store.memory.core import Core
from tickwork.store.memory.lanes import Lane, TimeIndex
from tickwork.store.memory.lists import Lists
from tickwork.store.memory.log import FactLog
from tickwork.store.rules import Overflow, holds_key, last


class Homes:
    def __init__(self, core: Core, log: FactLog) -> None:
        self._core = core
        self._log = log
        core.on_set_back.append(self._set_back)
        self.seq = 0
        self._position = 0
        self.dropped = 0
        self._overflow = Overflow()
        self.tasks: dict[str, Record] = {}
        self.by_seq: dict[int, Record] = {}
        self.delayed = TimeIndex()
        self.blocked: dict[str, Record] = {}
        self.lanes: dict[tuple[str, int], Lane] = {}
        self.inboxes: dict[str, dict[str, Record]] = {}  # by worker
        self.holds = TimeIndex()  # ends of assignments
        self.leases = TimeIndex()
        self.ends: dict[Status, OrderedDict[int, Record]] = {status: OrderedDict() for status in ENDS}  # by position
        self.deadlines = TimeIndex()  # of those that have never started
        self.kept = TimeIndex()  # ends of the retention of tasks that have their own
        self.attempts: dict[str, list[Attempt]] = {}
        self.lines: dict[str, list[str]] = {}
        self.lists = Lists()
        self.dedup: dict[str, str] = {}  # those without an end in `dedup_ends` are held as the task's `unique` says
        self.dedup_ends = TimeIndex()
        self.counts = dict.fromkeys(Status, 0)
        self.dependants: dict[str, set[str]] = {}  # those that wait for a task
        self.outbox: dict[str, tuple[Status, str | None]] = {}
        self.pauses: dict[tuple[str, str], Pause] = {}

    def _set_back(self, by: int) -> None:
        for index in (self.leases, self.holds):
            for record in [self.tasks[task_id] for task_id in index]:
                record.lease_until -= by
                index.put(record.id, record.lease_until)

    def _insert(self, record: Record) -> None:
        status = record.status
        self.counts[status] += 1
        if status is Status.READY:
            self._take_position(record)  # a fair lane gives it another one
            key = (record.spec.queue, record.spec.band)
            lane = self.lanes.get(key)
            if lane is None:
                lane = self.lanes[key] = Lane()
            lane.add(record)
        elif status is Status.RUNNING:
            self.leases.put(record.id, record.lease_until)
        elif status is Status.ASSIGNED:
            self.inboxes.setdefault(record.worker_id or "", {})[record.id] = record
            self.holds.put(record.id, record.lease_until)
            if record.place is Place.FAIR:  # virtual time is no order among tasks of several lanes
                self._take_position(record)
        elif status in DELAYED:
            self.delayed.put(record.id, record.due_at, record.seq)
        elif status is Status.BLOCKED:
            self.blocked[record.id] = record
            for upstream in record.waiting:
                self.dependants.setdefault(upstream, set()).add(record.id)
        else:
            self._take_position(record)
            self.ends[status][record.position] = record
            if record.spec.retention is not None:
                self.kept.put(record.id, (record.finished_at or 0) + record.spec.retention, record.position)
        if status in MAY_EXPIRE and (deadline := transitions.deadline(record)) is not None:
            self.deadlines.put(record.id, deadline, record.seq)

    def _take_position(self, record: Record) -> None:
        self._position += 1
        record.position = self._position

    def leave(self, record: Record) -> None:
        status = record.status
        self.counts[status] -= 1
        self.deadlines.remove(record.id)
        if status is Status.READY:
            self.lanes[record.spec.queue, record.spec.band].remove(record)
        elif status is Status.RUNNING:
            self.leases.remove(record.id)
        elif status is Status.ASSIGNED:
            self.holds.remove(record.id)
            inbox = self.inboxes[record.worker_id or ""]
            del inbox[record.id]
            if not inbox:
                del self.inboxes[record.worker_id or ""]
        elif status in DELAYED:
            self.delayed.remove(record.id)
        elif status is Status.BLOCKED:
            del self.blocked[record.id]
            for upstream in record.waiting:
                self.dependants[upstream].discard(record.id)
                if not self.dependants[upstream]:
                    del self.dependants[upstream]
        else:
            del self.ends[status][record.position]
            self.kept.remove(record.id)

    def take(self, record: Record) -> None:
        """It leaves its home in order to run, or to be assigned."""
        if record.place is Place.FAIR and record.status is Status.READY:
            lane = self.lanes[record.spec.queue, record.spec.band]
            if lane.fair is not None:
                lane.fair.serve(record)
        self.leave(record)

    def enter(self, record: Record, now: int, fact: Fact, detail: str = "") -> None:
        """Put a changed record into the home of its status. What an end of a task brings with it happens here."""
        self._insert(record)
        self._log.add_task(now, fact, record, detail)
        if record.status not in ENDS:
            return
        if record.spec.schedule_id is not None or record.id in self.dependants:
            self.to_outbox(record)
        if record.status is Status.CANCELLED or record.spec.unique is not None:
            self.free_dedup(record)
        self._core.hints.notify_ended((record.id,))
        if record.status is Status.DEAD:
            self._bound_dead(now)

    def to_outbox(self, record: Record) -> None:
        self.outbox[record.id] = (record.status, record.spec.schedule_id)
        self._core.hints.notify(OUTBOX)

    def waiting_for(self, upstream: str) -> tuple[str, ...]:
        return tuple(sorted(self.dependants.get(upstream, ())))

    def _bound_dead(self, now: int) -> None:
        dead = self.ends[Status.DEAD]
        while len(dead) > self._core.policy.dlq_max:
            oldest = next(iter(dead.values()))
            self.dropped += 1
            self._log.add_task(now, Fact.TASK_DROPPED, oldest, "the dead-letter queue is full")
            self._overflow.add(self._core.contact.log, oldest.id, oldest.spec.type)
            self.forget(oldest)

    def forget(self, record: Record) -> None:
        self.leave(record)
        del self.tasks[record.id], self.by_seq[record.seq]
        self.attempts.pop(record.id, None)
        self.lines.pop(record.id, None)
        self.lists.remove(record)

    def add(self, record: Record) -> None:
        """A new task, which has no home yet."""
        self.tasks[record.id] = self.by_seq[record.seq] = record
        self.lists.add(record)

    def keep_run(self, record: Record, run: Attempt | None) -> None:
        if run is not None:
            self.attempts[record.id] = last([*self.attempts.get(record.id, ()), run], self._core.policy.attempts_max)

    def last_kept(self, record: Record) -> Attempt | None:
        kept = self.attempts.get(record.id)
        return kept[-1] if kept else None

    def keep_lines(self, record: Record, lines: list[str]) -> None:
        if lines:
            self.lines[record.id] = last([*self.lines.get(record.id, ()), *lines], self._core.policy.log_lines_max)

    def dedup_holder(self, spec: Spec, now: int) -> str | None:
        holder = None if spec.dedup_key is None else self.dedup.get(spec.dedup_key)
        if spec.dedup_key is None or holder is None or not self._core.policy.dedup:
            return None
        if spec.dedup_key in self.dedup_ends:
            return holder if self.dedup_ends.at(spec.dedup_key) > now else None
        record = self.tasks[holder]
        return holder if holds_key(record.status, record.spec.unique) else None

    def hold_dedup(self, spec: Spec, now: int) -> None:
        if spec.dedup_key is None or not self._core.policy.dedup:
            return
        self.dedup[spec.dedup_key] = spec.id
        if spec.unique is None:
            self.dedup_ends.put(spec.dedup_key, now + spec.dedup_ttl)
        else:
            self.dedup_ends.remove(spec.dedup_key)

    def free_dedup(self, record: Record) -> None:
        key = record.spec.dedup_key
        if key is not None and self.dedup.get(key) == record.id:
            del self.dedup[key]
            self.dedup_ends.remove(key)
