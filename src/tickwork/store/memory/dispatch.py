"""Which tasks a claim of the memory store gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.tasks import Band, Lease, ParkReason, Place, Record, Status
from tickwork.store.contract import Claim, Claimed, Look, Seen, Waiting
from tickwork.store.hints import ASSIGN
from tickwork.store.memory.core import Core
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.lanes import Lane
from tickwork.store.memory.members import Members
from tickwork.store.rules import (
    PARK_MAX,
    Budget,
    Wanted,
    grant,
    is_overdue,
    is_suspect,
    runs,
    seen_waiting,
    shown_at_most,
)

BANDS = tuple(Band)


class Dispatch:
    def __init__(self, core: Core, homes: Homes, members: Members) -> None:
        self._core = core
        self._homes = homes
        self._members = members

    def promote(self, now: int, limit: int) -> int:
        for task_id in self._homes.deadlines.take_until(now, limit):
            self._lapse(self._homes.tasks[task_id], now)
        due = self._homes.delayed.take_until(now, limit)
        for task_id in due:
            record = self._homes.tasks[task_id]
            self._homes.leave(record)
            self._homes.enter(record, now, transitions.promote(record))
        return len(due)

    def next_due_in(self, now: int) -> int | None:
        first = self._homes.delayed.first()
        return None if first is None else max(first[0] - now, 0)

    def next_deadline_in(self, now: int) -> int | None:
        first = self._homes.deadlines.first()
        return None if first is None else max(first[0] - now, 0)

    def claim(self, claim: Claim, now: int) -> Claimed:
        self._core.pulse(now)
        last = self._members.last_claims.setdefault(claim.worker_id, {}).get(claim.turn)
        if last is not None and last[0] == claim.nonce:
            held = (self._homes.tasks.get(task_id) for task_id in last[1])
            grants = [grant(r) for r in held if r is not None and r.nonce == claim.nonce and runs(r)]
            return Claimed(grants, self.next_due_in(now))
        self.promote(now, claim.limit + PARK_MAX)
        if not self._homes.counts[Status.READY] and not self._homes.holds:  # as with most outcomes that come alone
            self._members.last_claims[claim.worker_id][claim.turn] = (claim.nonce, [])
            return Claimed([], self.next_due_in(now))
        budget = Budget()
        startable = self._startable(claim, now, budget)
        taken: list[tuple[Record, str]] = []
        while len(taken) < claim.limit and (found := next(startable, None)) is not None:
            self._homes.take(found[0])
            taken.append(found)
        for record, owner in taken:
            self._homes.enter(record, now, transitions.start(record, owner, claim.nonce, claim.lease_ttl, now))
            if is_suspect(record, self._core.policy):
                self._members.suspects[claim.process] = record.lease
        grants = [grant(record) for record, _ in taken]
        self._members.last_claims[claim.worker_id][claim.turn] = (claim.nonce, [grant.spec.id for grant in grants])
        if len(grants) < claim.limit and self._has_ready(claim.assigned):
            self._core.hints.notify(ASSIGN)
        return Claimed(grants, 0 if budget.spent else self.next_due_in(now))

    def _inbox_of(self, owner: str, now: int) -> Iterator[Record]:
        """Assigned tasks in the order in which they are to start. What is paused goes back."""
        inbox = self._homes.inboxes.get(owner, {})
        for record in sorted(inbox.values(), key=lambda record: (record.spec.band, record.position)):
            if is_overdue(record, now):
                self._lapse(record, now)
            elif self._is_paused(record):
                self.unassign(record, now)
            else:
                yield record

    def _is_paused(self, record: Record) -> bool:
        pauses = self._homes.pauses
        return ("queue", record.spec.queue) in pauses or ("type", record.spec.type) in pauses

    def _has_ready(self, queues: tuple[str, ...]) -> bool:
        return any(self._homes.lanes.get((queue, band)) for queue in queues for band in BANDS)

    def unassign(self, record: Record, now: int) -> None:
        self._homes.leave(record)
        self._homes.enter(record, now, transitions.unassign(record))

    def _startable(self, claim: Claim, now: int, budget: Budget) -> Iterator[tuple[Record, str]]:
        """Tasks in the order in which they are to start, each with the worker that is to hold it. The caller takes each
        out of its home."""
        paused = {name for kind, name in self._homes.pauses if kind == "type"}
        wanted = Wanted(claim, paused)
        has_suspect = self._runs_suspect(claim.process)
        for owner in claim.inboxes:
            for assigned in self._inbox_of(owner, now):
                if not (has_suspect and is_suspect(assigned, self._core.policy)):
                    has_suspect = has_suspect or is_suspect(assigned, self._core.policy)
                    yield assigned, owner
        for band in BANDS:
            for queue in claim.queues:
                lane = self._homes.lanes.get((queue, band))
                if lane is None or ("queue", queue) in self._homes.pauses:
                    continue
                front_only = queue in wanted.front_queues
                while (record := self._head(lane, wanted, has_suspect, front_only)) is not None:
                    overdue = is_overdue(record, now)
                    if not overdue and wanted.may_start(record.spec.kind, record.place is Place.FRONT):
                        has_suspect = has_suspect or is_suspect(record, self._core.policy)
                        yield record, claim.worker_id
                    elif budget.left == 0:
                        budget.spent = True
                        return
                    else:
                        budget.left -= 1
                        if overdue:
                            self._lapse(record, now)
                        else:
                            self.park(record, wanted.reason(record), now)

    def _head(self, lane: Lane, wanted: Wanted, has_suspect: bool, front_only: bool) -> Record | None:
        for record in islice(lane.front.values(), PARK_MAX + 1):
            if not (has_suspect and is_suspect(record, self._core.policy) and wanted.may_start(record.spec.kind, True)):
                return record
        if front_only:
            return None
        if lane.sides and (aside := lane.first_aside(wanted.may_start)) is not None:
            return aside
        if lane.main:
            return next(iter(lane.main.values()))
        return None if lane.fair is None else lane.fair.first()

    def look(self, look: Look) -> Seen:
        homes, waiting, aside = self._homes, list[Waiting](), set[str]()
        running = Counter(homes.tasks[task_id].worker_id for task_id in homes.leases)
        loads = {worker: running[worker] + len(homes.inboxes.get(worker, ())) for worker in look.workers}
        limit = shown_at_most(look, loads)
        for band in BANDS:
            for queue in dict.fromkeys(look.queues):
                lane = homes.lanes.get((queue, band))
                if lane is not None and ("queue", queue) not in homes.pauses:
                    aside.update(f"{queue}/{kind}" for kind in lane.sides)
                    more = limit - len(waiting)
                    waiting += [seen_waiting(record) for record in islice(self._in_lane(lane, queue, look.lanes), more)]
        paused = frozenset(name for kind, name in homes.pauses if kind == "type")
        return Seen(waiting, frozenset(aside), paused, loads)

    def _in_lane(self, lane: Lane, queue: str, lanes: frozenset[str]) -> Iterator[Record]:
        yield from lane.front.values()
        sides = (side for kind, side in lane.sides.items() if f"{queue}/{kind}" in lanes)
        aside = [record for side in sides for record in side.values()]
        yield from sorted(aside, key=lambda record: record.position)
        yield from lane.in_turn()

    def _runs_suspect(self, process: str) -> bool:
        lease = self._members.suspects.get(process)
        return lease is not None and self.held(lease) is not None

    def _lapse(self, record: Record, now: int) -> None:
        self._homes.leave(record)
        self._homes.enter(record, now, transitions.lapse(record, now))

    def park(self, record: Record, why: ParkReason, now: int) -> None:
        self._homes.leave(record)
        record.place, record.parked = Place.SIDE, why
        self._homes.enter(record, now, Fact.TASK_PARKED, record.spec.type)

    def held(self, lease: Lease) -> Record | None:
        record = self._homes.tasks.get(lease.id)
        return record if record is not None and runs(record) and record.lease == lease else None
