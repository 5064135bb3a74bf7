"""The homes of the memory store: where a task of each status is, and what its end brings with it.

Each status has one home: `_delayed` (pending, retrying), `_blocked`, `_lanes` (ready), `_leases` (running) and `_ends`.
A transition takes the record out of its home, changes it and puts it where its new status lives.
"""

from __future__ import annotations

from collections import OrderedDict

from tickwork.clock import Clock
from tickwork.model.facts import Fact
from tickwork.model.policy import Policy
from tickwork.model.tasks import DELAYED, ENDS, Record, Spec, Status
from tickwork.store.contract import Pause
from tickwork.store.hints import OUTBOX
from tickwork.store.memory.locks import Locks
from tickwork.store.memory.members import Members
from tickwork.store.memory.shelves import Lane, TimeIndex
from tickwork.store.rules import Overflow


class Homes(Members, Locks):
    def __init__(self, policy: Policy | None = None, clock: Clock | None = None) -> None:
        super().__init__(policy, clock)
        self._seq = 0
        self._position = 0
        self._dropped = 0
        self._overflow = Overflow()
        self._tasks: dict[str, Record] = {}
        self._by_seq: dict[int, Record] = {}
        self._delayed = TimeIndex()
        self._blocked: dict[str, Record] = {}
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._leases = TimeIndex()
        self._ends: dict[Status, OrderedDict[int, Record]] = {status: OrderedDict() for status in ENDS}  # by position
        self._dedup: dict[str, str] = {}
        self._dedup_ends = TimeIndex()
        self._counts = dict.fromkeys(Status, 0)
        self._dependants: dict[str, set[str]] = {}  # those that wait for a task
        self._outbox: dict[str, tuple[Status, str | None]] = {}
        self._pauses: dict[tuple[str, str], Pause] = {}

    def _set_back(self, by: int) -> None:
        super()._set_back(by)
        for record in [self._tasks[task_id] for task_id in self._leases]:
            record.lease_until -= by
            self._leases.put(record.id, record.lease_until)

    def _enter(self, record: Record) -> None:
        status = record.status
        self._counts[status] += 1
        if status is Status.READY:
            self._take_position(record)
            key = (record.spec.queue, record.spec.band)
            lane = self._lanes.get(key)
            if lane is None:
                lane = self._lanes[key] = Lane()
            lane.shelf(record)[record.id] = record
        elif status is Status.RUNNING:
            self._leases.put(record.id, record.lease_until)
        elif status in DELAYED:
            self._delayed.put(record.id, record.due_at, record.seq)
        elif status is Status.BLOCKED:
            self._blocked[record.id] = record
            for upstream in record.waiting:
                self._dependants.setdefault(upstream, set()).add(record.id)
        else:
            self._take_position(record)
            self._ends[status][record.position] = record

    def _take_position(self, record: Record) -> None:
        self._position += 1
        record.position = self._position

    def _leave(self, record: Record) -> None:
        status = record.status
        self._counts[status] -= 1
        if status is Status.READY:
            self._lanes[record.spec.queue, record.spec.band].remove(record)
        elif status is Status.RUNNING:
            self._leases.remove(record.id)
        elif status in DELAYED:
            self._delayed.remove(record.id)
        elif status is Status.BLOCKED:
            del self._blocked[record.id]
            for upstream in record.waiting:
                self._dependants[upstream].discard(record.id)
                if not self._dependants[upstream]:
                    del self._dependants[upstream]
        else:
            del self._ends[status][record.position]

    def _settle(self, record: Record, now: int, fact: Fact, detail: str = "") -> None:
        """A changed record goes home; what an end brings with it happens here."""
        self._enter(record)
        self._append_task(now, fact, record, detail)
        if record.status not in ENDS:
            return
        if record.spec.schedule_id is not None or self._waiting_for(record.id):
            self._to_outbox(record)
        if record.status is Status.CANCELLED:
            self._free_dedup(record)
        self.hints.notify_ended((record.id,))
        if record.status is Status.DEAD:
            self._bound_dead(now)

    def _to_outbox(self, record: Record) -> None:
        self._outbox[record.id] = (record.status, record.spec.schedule_id)
        self.hints.notify(OUTBOX)

    def _waiting_for(self, upstream: str) -> tuple[str, ...]:
        return tuple(sorted(self._dependants.get(upstream, ())))

    def _bound_dead(self, now: int) -> None:
        dead = self._ends[Status.DEAD]
        while len(dead) > self.policy.dlq_max:
            oldest = next(iter(dead.values()))
            self._dropped += 1
            self._append_task(now, Fact.TASK_DROPPED, oldest, "the dead-letter queue is full")
            self._overflow.add(self.contact.log, oldest.id, oldest.spec.type)
            self._forget(oldest)

    def _forget(self, record: Record) -> None:
        self._leave(record)
        del self._tasks[record.id], self._by_seq[record.seq]

    def _dedup_holder(self, spec: Spec, now: int) -> str | None:
        if spec.dedup_key is None or not self.policy.dedup:
            return None
        return self._dedup.get(spec.dedup_key) if self._dedup_ends.at(spec.dedup_key) > now else None

    def _hold_dedup(self, spec: Spec, now: int) -> None:
        if spec.dedup_key is not None and self.policy.dedup:
            self._dedup[spec.dedup_key] = spec.id
            self._dedup_ends.put(spec.dedup_key, now + spec.dedup_ttl)

    def _free_dedup(self, record: Record) -> None:
        key = record.spec.dedup_key
        if key is not None and self._dedup.get(key) == record.id:
            del self._dedup[key]
            self._dedup_ends.remove(key)
