"""The memory store: the contract in its plainest form, held to the same tests as every other.

Here is the way of a task, from submit to its end; `homes.py` has the places where it waits,
`operators.py` what others may do with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal

from tickwork.errors import StoreError
from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.outcomes import Outcome
from tickwork.model.policy import Durability
from tickwork.model.tasks import ENDS, Band, Lease, Place, Record, Spec, Status
from tickwork.store.contract import (
    Advance,
    Capabilities,
    Claim,
    Claimed,
    Finding,
    Finished,
    Receipt,
    Reclaimed,
    Verdict,
)
from tickwork.store.flat import Flat
from tickwork.store.hints import WORK
from tickwork.store.memory.members import atomic
from tickwork.store.memory.outbox import Outbox
from tickwork.store.memory.shelves import Lane
from tickwork.store.rules import (
    PARK_MAX,
    Budget,
    advance_facts,
    advanced,
    detail_of,
    grant,
    last_chance,
    runs,
    still_gone,
    taken,
)


class MemoryStore(Outbox, Flat):
    capabilities = Capabilities(shared=False, remote=False, own_clock=False, durabilities=("memory",))

    async def health(self) -> list[Finding]:
        return []

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close: the tasks live as long as the object."""

    def sibling(self) -> MemoryStore:
        return self

    # --- in

    @atomic
    def submit(self, specs: list[Spec], durability: Durability | None = None) -> list[Receipt]:
        if durability not in (None, "memory"):
            raise StoreError(
                f"memory:// keeps nothing beyond its process, so durability={durability!r} cannot be given"
            )
        now = self.now()
        receipts = [self._submit(spec, now) for spec in specs]
        self.hints.notify(WORK)
        return receipts

    def _submit(self, spec: Spec, now: int, lenient: bool = False) -> Receipt:
        old = self._tasks.get(spec.id)
        if old is not None:
            return Receipt(spec.id, "created" if old.spec.nonce == spec.nonce else "exists")
        holder = self._dedup_holder(spec, now)
        if holder is not None:
            return Receipt(spec.id, "duplicate", holder)
        waiting: list[str] = []
        for upstream in dict.fromkeys(spec.depends_on):
            record = self._tasks.get(upstream)
            if record is None and not lenient:
                return Receipt(spec.id, "orphan", upstream)
            if record is not None and not transitions.met(record, spec):
                waiting.append(upstream)
        self._create(spec, now, waiting)
        return Receipt(spec.id, "created")

    def _create(self, spec: Spec, now: int, waiting: list[str]) -> None:
        self._seq += 1
        record = transitions.submit(spec, self._seq, now, waiting)
        self._tasks[spec.id] = self._by_seq[record.seq] = record
        for upstream in waiting:
            if self._tasks[upstream].status in ENDS:  # it ended badly: the outbox tells, as it would have then
                self._to_outbox(self._tasks[upstream])
        if spec.dedup_key is not None:
            self._hold_dedup(spec, now)
        self._settle(record, now, Fact.TASK_SUBMITTED)

    # --- time

    @atomic
    def advance(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...] = ()
    ) -> Advance | None:
        schedule = self._schedules.get(schedule_id)
        if schedule is None or schedule.next_at != seen:
            return None
        now = self.now()
        step = taken(step, ticks, [self._submit(spec, now, lenient=True) for spec in ticks], self.policy)
        self._schedules[schedule_id] = advanced(schedule, step)
        for fact, detail in advance_facts(step):
            self._append(now, fact, schedule_id, detail)
        if ticks:
            self.hints.notify(WORK)
        return step

    @atomic
    def promote(self, limit: int) -> int | None:
        now = self.now()
        if self._promote(now, limit):
            self.hints.notify(WORK)
        return self._next_due_in(now)

    def _promote(self, now: int, limit: int) -> int:
        due = self._delayed.until(now, limit)
        for task_id in due:
            record = self._tasks[task_id]
            self._leave(record)
            self._settle(record, now, transitions.promote(record))
        return len(due)

    def _next_due_in(self, now: int) -> int | None:
        first = self._delayed.first()
        return None if first is None else max(first[0] - now, 0)

    # --- dispatch

    @atomic
    def claim(self, want: Claim) -> Claimed:
        return self._claim(want, self.now())

    def _claim(self, want: Claim, now: int) -> Claimed:
        self._pulse(now)
        last = self._last_claims.setdefault(want.worker_id, {}).get(want.turn)
        if last is not None and last[0] == want.nonce:
            held = (self._tasks.get(task_id) for task_id in last[1])
            grants = [grant(r) for r in held if r is not None and r.nonce == want.nonce and runs(r)]
            return Claimed(grants, self._next_due_in(now))
        self._promote(now, want.limit + PARK_MAX)
        budget = Budget()
        startable = self._startable(want, now, budget)
        taken: list[Record] = []
        while len(taken) < want.limit and (record := next(startable, None)) is not None:
            self._leave(record)
            taken.append(record)
        for record in taken:
            self._settle(record, now, transitions.start(record, want.worker_id, want.nonce, want.lease_ttl, now))
            if last_chance(record, self.policy):
                self._last_chances[want.process] = record.lease
        grants = [grant(record) for record in taken]
        self._last_claims[want.worker_id][want.turn] = (want.nonce, [grant.spec.id for grant in grants])
        return Claimed(grants, 0 if budget.spent else self._next_due_in(now))

    def _startable(self, want: Claim, now: int, budget: Budget) -> Iterator[Record]:
        """Ready tasks in the order in which they are to start. The caller takes each out of its lane."""
        paused = {name for kind, name in self._pauses if kind == "type"}
        types = want.types - paused if paused else want.types
        chance = self._has_last_chance(want.process)
        for band in Band:
            for queue in want.queues:
                lane = self._lanes.get((queue, band))
                if lane is None or ("queue", queue) in self._pauses:
                    continue
                while (record := self._head(lane, types, chance)) is not None:
                    if record.spec.type in types:
                        chance = chance or last_chance(record, self.policy)
                        yield record
                    elif budget.left == 0:
                        budget.spent = True
                        return
                    else:
                        budget.left -= 1
                        self._park(record, now)

    def _head(self, lane: Lane, types: frozenset[str], chance: bool) -> Record | None:
        for record in islice(lane.front.values(), PARK_MAX + 1):
            if not (chance and record.spec.type in types and last_chance(record, self.policy)):
                return record
        if lane.sides and (aside := lane.first_aside(types)) is not None:
            return aside
        return next(iter(lane.main.values())) if lane.main else None

    def _has_last_chance(self, process: str) -> bool:
        lease = self._last_chances.get(process)
        return lease is not None and self._held(lease) is not None

    def _park(self, record: Record, now: int) -> None:
        self._leave(record)
        record.place = Place.SIDE
        self._settle(record, now, Fact.TASK_PARKED, record.spec.type)

    # --- running

    @atomic
    def extend(self, leases: list[Lease], lease_ttl: int) -> list[Literal["held", "cancel", "lost"]]:
        now = self.now()
        self._pulse(now)
        answers: list[Literal["held", "cancel", "lost"]] = []
        for lease in leases:
            record = self._held(lease)
            if record is None:
                answers.append("lost")
                continue
            record.lease_until = now + lease_ttl
            self._leases.put(record.id, record.lease_until)
            answers.append("cancel" if record.cancel else "held")
        return answers

    def _held(self, lease: Lease) -> Record | None:
        record = self._tasks.get(lease.id)
        return record if record is not None and runs(record) and record.lease == lease else None

    @atomic
    def note(self, lease: Lease, progress: float | None, text: str, lines: list[str]) -> bool:
        record = self._held(lease)
        if record is None:
            return False
        transitions.note(record, progress, text, lines, self.policy)
        return True

    # --- out

    @atomic
    def finish(self, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        now = self.now()
        # All are looked up first: the death of one may push an older dead one out, which was ended all the same.
        found = [self._tasks.get(outcome.lease.id) for outcome in outcomes]
        verdicts = [self._finish(record, outcome, now) for record, outcome in zip(found, outcomes, strict=True)]
        return Finished(verdicts, None if then_claim is None else self._claim(then_claim, now))

    def _finish(self, record: Record | None, outcome: Outcome, now: int) -> Verdict:
        if record is None or not outcome.lease.nonce or record.lease != outcome.lease:
            return Verdict("lost")
        if record.status is not Status.RUNNING:
            return Verdict("already", record.status)
        self._leave(record)
        self._settle(
            record,
            now,
            fact := transitions.finish(record, outcome, now, self.policy),
            detail_of(record, fact),
        )
        if not record.status.ended:
            self.hints.notify(WORK)
        return Verdict("done", record.status)

    @atomic
    def reclaim(self, limit: int, gone: tuple[str, ...] = (), why: str = "", nodes: tuple[str, ...] = ()) -> Reclaimed:
        now = self.now()
        self._pulse(now)
        gone = still_gone(gone, nodes, self._node_of)
        orphans = [record for i in self._leases if (record := self._tasks[i]).worker_id in gone] if gone else []
        orphans.sort(key=lambda record: (record.lease_until, record.id))
        lost_workers = self._lose_workers(now, gone if len(orphans) < limit else ())
        taken = [self._expire(record, now, gone, why or "its process is gone") for record in orphans[:limit]]
        if now >= self._hold_until:
            expired = [self._tasks[task_id] for task_id in self._leases.until(now, limit - len(taken))]
            taken += [self._expire(record, now, gone, "its lease ran out") for record in expired]
        if taken:
            self.hints.notify(WORK)
        return Reclaimed(taken, lost_workers)

    def _expire(self, record: Record, now: int, gone: tuple[str, ...], why: str) -> str:
        self._leave(record)
        alive = record.worker_id not in gone and self._alive(record.worker_id, now)
        fact = transitions.expire(record, now, self.policy, why, alive)
        self._settle(record, now, fact, record.last_error or "")
        return record.id
