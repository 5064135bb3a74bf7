"""Which tasks a claim of the memory store gets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.tasks import Band, Lease, ParkReason, Place, Record, Status
from tickwork.store.contract import Claim, Claimed
from tickwork.store.memory.core import Core
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.lanes import Lane
from tickwork.store.memory.members import Members
from tickwork.store.rules import PARK_MAX, Budget, grant, is_overdue, is_suspect, park_reason, runs

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
        if not self._homes.counts[Status.READY]:  # as with most outcomes that come alone
            self._members.last_claims[claim.worker_id][claim.turn] = (claim.nonce, [])
            return Claimed([], self.next_due_in(now))
        budget = Budget()
        startable = self._startable(claim, now, budget)
        taken: list[Record] = []
        while len(taken) < claim.limit and (record := next(startable, None)) is not None:
            self._homes.leave(record)
            taken.append(record)
        for record in taken:
            self._homes.enter(
                record, now, transitions.start(record, claim.worker_id, claim.nonce, claim.lease_ttl, now)
            )
            if is_suspect(record, self._core.policy):
                self._members.suspects[claim.process] = record.lease
        grants = [grant(record) for record in taken]
        self._members.last_claims[claim.worker_id][claim.turn] = (claim.nonce, [grant.spec.id for grant in grants])
        return Claimed(grants, 0 if budget.spent else self.next_due_in(now))

    def _startable(self, claim: Claim, now: int, budget: Budget) -> Iterator[Record]:
        """Ready tasks in the order in which they are to start. The caller takes each out of its lane."""
        paused = {name for kind, name in self._homes.pauses if kind == "type"}
        types = claim.types - paused if paused else claim.types
        has_suspect = self._runs_suspect(claim.process)
        for band in BANDS:
            for queue in claim.queues:
                lane = self._homes.lanes.get((queue, band))
                if lane is None or ("queue", queue) in self._homes.pauses:
                    continue
                while (record := self._head(lane, types, has_suspect)) is not None:
                    overdue = is_overdue(record, now)
                    if record.spec.type in types and not overdue:
                        has_suspect = has_suspect or is_suspect(record, self._core.policy)
                        yield record
                    elif budget.left == 0:
                        budget.spent = True
                        return
                    else:
                        budget.left -= 1
                        if overdue:
                            self._lapse(record, now)
                        else:
                            self._park(record, park_reason(record.spec.type, paused), now)

    def _head(self, lane: Lane, types: frozenset[str], has_suspect: bool) -> Record | None:
        for record in islice(lane.front.values(), PARK_MAX + 1):
            if not (has_suspect and record.spec.type in types and is_suspect(record, self._core.policy)):
                return record
        if lane.sides and (aside := lane.first_aside(types)) is not None:
            return aside
        return next(iter(lane.main.values())) if lane.main else None

    def _runs_suspect(self, process: str) -> bool:
        lease = self._members.suspects.get(process)
        return lease is not None and self.held(lease) is not None

    def _lapse(self, record: Record, now: int) -> None:
        self._homes.leave(record)
        self._homes.enter(record, now, transitions.lapse(record, now))

    def _park(self, record: Record, why: ParkReason, now: int) -> None:
        self._homes.leave(record)
        record.place, record.parked = Place.SIDE, why
        self._homes.enter(record, now, Fact.TASK_PARKED, record.spec.type)

    def held(self, lease: Lease) -> Record | None:
        record = self._homes.tasks.get(lease.id)
        return record if record is not None and runs(record) and record.lease == lease else None
