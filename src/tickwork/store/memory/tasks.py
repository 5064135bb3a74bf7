"""The way of a task through the memory store, from its submit to its end.

`homes.py` has the places where tasks wait, `dispatch.py` decides which of them a claim gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tickwork.errors import StoreError
from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.outcomes import Outcome
from tickwork.model.policy import Durability
from tickwork.model.tasks import ENDS, Lease, Place, Record, Spec, Status
from tickwork.store.contract import (
    MANY_MAX,
    Aside,
    Assigned,
    Assignment,
    Claim,
    Claimed,
    Edge,
    Extended,
    Finished,
    Look,
    OutboxEntry,
    Receipt,
    Reclaimed,
    Verdict,
)
from tickwork.store.hints import WORK, Hint
from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.memory.dispatch import Dispatch
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.members import Members
from tickwork.store.rules import announce, detail_of, fence_of_end, has_assigned, moved_on, still_gone


class Tasks(Part):
    def __init__(self, core: Core, homes: Homes, members: Members) -> None:
        super().__init__(core)
        self._homes = homes
        self._members = members
        self._dispatch = Dispatch(core, homes, members)

    # --- in

    @atomic
    def submit(
        self, specs: list[Spec], durability: Durability | None = None, waiter: Hint | None = None
    ) -> list[Receipt]:
        if durability not in (None, "memory"):
            raise StoreError(
                f"memory:// keeps nothing beyond its process, so durability={durability!r} cannot be given"
            )
        now = self._core.now()
        receipts = [self.submit_one(spec, now) for spec in specs]
        self._core.hints.notify(WORK)
        if waiter is not None:
            announce(waiter, receipts)
        return receipts

    def submit_one(self, spec: Spec, now: int, lenient: bool = False) -> Receipt:
        old = self._homes.tasks.get(spec.id)
        if old is not None:
            return Receipt(spec.id, "created" if old.spec.nonce == spec.nonce else "exists")
        holder = self._homes.dedup_holder(spec, now)
        if holder is not None:
            return Receipt(spec.id, "duplicate", holder)
        waiting: list[str] = []
        for upstream in dict.fromkeys(spec.depends_on):
            record = self._homes.tasks.get(upstream)
            if record is None and not lenient:
                return Receipt(spec.id, "orphan", upstream)
            if record is not None and not transitions.met(record, spec):
                waiting.append(upstream)
        self._create(spec, now, waiting)
        return Receipt(spec.id, "created")

    def _create(self, spec: Spec, now: int, waiting: list[str]) -> None:
        self._homes.seq += 1
        record = transitions.submit(spec, self._homes.seq, now, waiting)
        self._homes.add(record)
        for upstream in waiting:
            if self._homes.tasks[upstream].status in ENDS:  # it ended badly: the outbox tells, as it would have then
                self._homes.to_outbox(self._homes.tasks[upstream])
        if spec.dedup_key is not None:
            self._homes.hold_dedup(spec, now)
        self._homes.enter(record, now, Fact.TASK_SUBMITTED)

    # --- time

    @atomic
    def promote(self, limit: int) -> int | None:
        now = self._core.now()
        if self._dispatch.promote(now, limit):
            self._core.hints.notify(WORK)
        waits = (self._dispatch.next_due_in(now), self._dispatch.next_deadline_in(now))
        return min((wait for wait in waits if wait is not None), default=None)

    # --- dispatch

    @atomic
    def claim(self, claim: Claim) -> Claimed:
        return self._dispatch.claim(claim, self._core.now())

    @atomic
    def assign(
        self, assignments: Sequence[Assignment], hold: int, aside: Sequence[Aside] = (), look: Look | None = None
    ) -> Assigned:
        now = self._core.now()
        done = [self._assign(each, hold, now) for each in assignments]
        for one in aside:
            record = self._homes.tasks.get(one.id)
            if record is not None and record.status is Status.READY and record.place is not Place.SIDE:
                self._dispatch.park(record, one.reason, now)
        if any(done):
            self._core.hints.notify(WORK)
        return Assigned(done, None if look is None else self._dispatch.look(look))

    def _assign(self, assignment: Assignment, hold: int, now: int) -> bool:
        record = self._homes.tasks.get(assignment.id)
        if record is None or record.status is not Status.READY:
            return has_assigned(record, assignment)
        self._homes.take(record)
        self._homes.enter(record, now, transitions.assign(record, assignment.worker_id, hold, now))
        return True

    @atomic
    def unassign(self, workers: Sequence[str], limit: int) -> list[str]:
        inboxes = (self._homes.inboxes.get(worker, {}) for worker in dict.fromkeys(workers))
        return self._unassign([record for inbox in inboxes for record in inbox.values()], limit)

    def _unassign(self, records: list[Record], limit: int) -> list[str]:
        taken = sorted(records, key=lambda record: (record.lease_until, record.id))[:limit]
        for record in taken:
            self._dispatch.unassign(record, self._core.now())
        if taken:
            self._core.hints.notify(WORK)
        return [record.id for record in taken]

    # --- running

    @atomic
    def extend(self, leases: list[Lease], lease_ttl: int) -> list[Extended]:
        now = self._core.now()
        self._core.pulse(now)
        answers: list[Extended] = []
        for lease in leases:
            record = self._dispatch.held(lease)
            if record is None:
                answers.append("lost")
                continue
            record.lease_until = now + lease_ttl
            self._homes.leases.put(record.id, record.lease_until)
            answers.append("cancel" if record.cancel else "held")
        return answers

    @atomic
    def note(self, lease: Lease, progress: float | None, text: str, lines: list[str]) -> bool:
        record = self._dispatch.held(lease)
        if record is None:
            return False
        transitions.note(record, progress, text)
        self._homes.keep_lines(record, lines)
        return True

    # --- out

    @atomic
    def finish(self, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        now = self._core.now()
        # All are looked up first: the death of one may push an older dead one out, which was ended all the same.
        found = [self._homes.tasks.get(outcome.lease.id) for outcome in outcomes]
        verdicts = [self._finish(record, outcome, now) for record, outcome in zip(found, outcomes, strict=True)]
        return Finished(verdicts, None if then_claim is None else self._dispatch.claim(then_claim, now))

    def _finish(self, record: Record | None, outcome: Outcome, now: int) -> Verdict:
        if record is None or not outcome.lease.nonce or record.lease != outcome.lease:
            return Verdict("lost")
        if record.status is not Status.RUNNING:
            return Verdict("already", record.status)
        self._homes.leave(record)
        self._homes.keep_run(record, transitions.run_before(record, outcome, now))
        self._homes.enter(
            record,
            now,
            fact := transitions.finish(record, outcome, now, self._core.policy),
            detail_of(record, fact, outcome),
        )
        if not record.status.ended:
            self._core.hints.notify(WORK)
        return Verdict("done", record.status)

    @atomic
    def reclaim(self, limit: int, gone: tuple[str, ...] = (), why: str = "", nodes: tuple[str, ...] = ()) -> Reclaimed:
        now = self._core.now()
        self._core.pulse(now)
        gone = still_gone(gone, nodes, self._members.node_of)
        running = (self._homes.tasks[task_id] for task_id in self._homes.leases)
        orphans = [record for record in running if record.worker_id in gone] if gone else []

        orphans.sort(key=lambda record: (record.lease_until, record.id))
        lost_workers = self._members.lose(now, gone if len(orphans) < limit else ())
        taken = [self._expire(record, now, gone, why or "its process is gone") for record in orphans[:limit]]
        if now >= self._core.hold_until:
            expired = [self._homes.tasks[task_id] for task_id in self._homes.leases.take_until(now, limit - len(taken))]
            taken += [self._expire(record, now, gone, "its lease ran out") for record in expired]
        held = [self._homes.tasks[task_id] for task_id in self._homes.holds]
        untaken = [record for record in held if record.lease_until <= now or record.worker_id in gone]
        taken += self._unassign(untaken, limit - len(taken))
        if taken:
            self._core.hints.notify(WORK)
        return Reclaimed(taken, lost_workers)

    def _expire(self, record: Record, now: int, gone: tuple[str, ...], why: str) -> str:
        self._homes.leave(record)
        alive = record.worker_id not in gone and self._members.is_alive(record.worker_id, now)
        fact = transitions.expire(record, now, self._core.policy, why, alive)
        self._homes.keep_run(record, transitions.run_lost(record, now))
        self._homes.enter(record, now, fact, record.last_error or "")
        return record.id

    # --- dependants and the outbox

    @atomic
    def resolve(self, edges: Sequence[Edge]) -> list[bool | None]:
        now = self._core.now()
        return [self._resolve(edge, now) for edge in edges]

    def _resolve(self, edge: Edge, now: int) -> bool:
        record, upstream = self._homes.tasks.get(edge.dependant), edge.upstream
        if moved_on(self._homes.tasks.get(upstream), edge.fence):
            return False
        if record is None or record.status is not Status.BLOCKED or upstream not in record.waiting:
            return False
        self._homes.leave(record)
        self._homes.enter(record, now, transitions.resolve(record, upstream, edge.ok, now), upstream)
        self._core.hints.notify(WORK)
        return True

    @atomic
    def outbox(self, limit: int) -> list[OutboxEntry]:
        homes, left = self._homes, MANY_MAX
        found: list[OutboxEntry] = []
        for task_id, (status, schedule_id) in islice(homes.outbox.items(), limit):
            if left == 0:
                break
            dependants = homes.waiting_for(task_id)[:left]
            left -= len(dependants)
            fence = fence_of_end(homes.tasks.get(task_id))
            found.append(OutboxEntry(task_id, status, dependants, schedule_id, fence))
        return found

    @atomic
    def clear_outbox(self, told: list[OutboxEntry]) -> None:
        for entry in told:
            if not self._homes.waiting_for(entry.id) and not moved_on(self._homes.tasks.get(entry.id), entry.fence):
                self._homes.outbox.pop(entry.id, None)
