"""Which tasks a claim of the memory store gets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.tasks import Band, Lease, Place, Record
from tickwork.store.contract import Claim, Claimed
from tickwork.store.memory.core import Core
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.lanes import Lane
from tickwork.store.memory.members import Members
from tickwork.store.rules import PARK_MAX, Budget, grant, last_chance, runs


class Dispatch:
    def __init__(self, core: Core, homes: Homes, members: Members) -> None:
        self._core = core
        self._homes = homes
        self._members = members

    def promote(self, now: int, limit: int) -> int:
        due = self._homes.delayed.until(now, limit)
        for task_id in due:
            record = self._homes.tasks[task_id]
            self._homes.leave(record)
            self._homes.enter(record, now, transitions.promote(record))
        return len(due)

    def next_due_in(self, now: int) -> int | None:
        first = self._homes.delayed.first()
        return None if first is None else max(first[0] - now, 0)

    def claim(self, want: Claim, now: int) -> Claimed:
        self._core.pulse(now)
        last = self._members.last_claims.setdefault(want.worker_id, {}).get(want.turn)
        if last is not None and last[0] == want.nonce:
            held = (self._homes.tasks.get(task_id) for task_id in last[1])
            grants = [grant(r) for r in held if r is not None and r.nonce == want.nonce and runs(r)]
            return Claimed(grants, self.next_due_in(now))
        self.promote(now, want.limit + PARK_MAX)
        budget = Budget()
        startable = self._startable(want, now, budget)
        taken: list[Record] = []
        while len(taken) < want.limit and (record := next(startable, None)) is not None:
            self._homes.leave(record)
            taken.append(record)
        for record in taken:
            self._homes.enter(record, now, transitions.start(record, want.worker_id, want.nonce, want.lease_ttl, now))
            if last_chance(record, self._core.policy):
                self._members.last_chances[want.process] = record.lease
        grants = [grant(record) for record in taken]
        self._members.last_claims[want.worker_id][want.turn] = (want.nonce, [grant.spec.id for grant in grants])
        return Claimed(grants, 0 if budget.spent else self.next_due_in(now))

    def _startable(self, want: Claim, now: int, budget: Budget) -> Iterator[Record]:
        """Ready tasks in the order in which they are to start. The caller takes each out of its lane."""
        paused = {name for kind, name in self._homes.pauses if kind == "type"}
        types = want.types - paused if paused else want.types
        chance = self._has_last_chance(want.process)
        for band in Band:
            for queue in want.queues:
                lane = self._homes.lanes.get((queue, band))
                if lane is None or ("queue", queue) in self._homes.pauses:
                    continue
                while (record := self._head(lane, types, chance)) is not None:
                    if record.spec.type in types:
                        chance = chance or last_chance(record, self._core.policy)
                        yield record
                    elif budget.left == 0:
                        budget.spent = True
                        return
                    else:
                        budget.left -= 1
                        self._park(record, now)

    def _head(self, lane: Lane, types: frozenset[str], chance: bool) -> Record | None:
        for record in islice(lane.front.values(), PARK_MAX + 1):
            if not (chance and record.spec.type in types and last_chance(record, self._core.policy)):
                return record
        if lane.sides and (aside := lane.first_aside(types)) is not None:
            return aside
        return next(iter(lane.main.values())) if lane.main else None

    def _has_last_chance(self, process: str) -> bool:
        lease = self._members.last_chances.get(process)
        return lease is not None and self.held(lease) is not None

    def _park(self, record: Record, now: int) -> None:
        self._homes.leave(record)
        record.place = Place.SIDE
        self._homes.enter(record, now, Fact.TASK_PARKED, record.spec.type)

    def held(self, lease: Lease) -> Record | None:
        record = self._homes.tasks.get(lease.id)
        return record if record is not None and runs(record) and record.lease == lease else None
