"""The way of a task through a SQLite file, from its submit to its end.

`homes.py` has the places where tasks wait, `dispatch.py` decides which of them a claim gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from tickwork.errors import StoreError
from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.outcomes import Outcome, Succeeded
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
from tickwork.store.rules import announce, detail_of, fence_of_end, has_assigned, has_deadline, moved_on, still_gone
from tickwork.store.sqlite.core import Core, Part, writes, writes_small
from tickwork.store.sqlite.dispatch import Dispatch
from tickwork.store.sqlite.histories import Histories
from tickwork.store.sqlite.homes import Homes
from tickwork.store.sqlite.workers import keep_pulse, lose_workers, node_of

SMALL_PAYLOAD = 16_000  # bytes; a larger one takes longer to write than to hand over to the writer's thread


class Tasks(Part):
    def __init__(self, core: Core, homes: Homes) -> None:
        super().__init__(core)
        self._homes = homes
        self._rows = homes.rows
        self._dispatch = Dispatch(homes)
        self._histories = Histories(core.writer)

    # --- in

    async def submit(
        self, specs: list[Spec], durability: Durability | None = None, waiter: Hint | None = None
    ) -> list[Receipt]:
        if durability == "replicated":
            raise StoreError("a SQLite file has no replicas; durability can be memory or disk")
        small = len(specs) == 1 and len(specs[0].payload) <= SMALL_PAYLOAD
        receipts = await (self._submit_small(specs) if small else self._submit_all(specs))
        if waiter is not None:
            announce(waiter, receipts)
        if durability == "disk" and self._core.durability != "disk":
            await asyncio.to_thread(self._core.files.sync_log)
        return receipts

    def submit_blocking(
        self, spec: Spec, durability: Durability | None = None, seconds: float | None = None
    ) -> Receipt | None:
        if durability == "replicated":
            return None
        write, work = self._core.write, partial(self._create_all, [spec])
        done = write.call_blocking(work) if seconds is None else write.call_soon(work)
        if done is None:
            return None
        if durability == "disk" and self._core.durability != "disk":
            self._core.files.sync_log()
        ((receipt,),) = done
        return receipt

    def _create_all(self, specs: list[Spec]) -> list[Receipt]:
        now = self.now()
        receipts = [self._submit(spec, now) for spec in specs]
        self.tx.notify(WORK)
        return receipts

    _submit_all = writes(_create_all)
    _submit_small = writes_small(_create_all)

    def submit_ticks(self, ticks: tuple[Spec, ...], now: int) -> list[Receipt]:
        if ticks:
            self.tx.notify(WORK)
        return [self._submit(spec, now, lenient=True) for spec in ticks]

    def _submit(self, spec: Spec, now: int, lenient: bool = False) -> Receipt:
        if spec.dedup_key is None and not spec.depends_on and not spec.fair:
            return self._create(spec, now, [], [])
        if (known := self._known(spec)) is not None:
            return known
        holder = self._homes.dedup_holder(spec, now)
        if holder is not None:
            return Receipt(spec.id, "duplicate", holder)
        waiting: list[str] = []
        ended: list[Record] = []
        for upstream in dict.fromkeys(spec.depends_on):
            record = self._rows.get(upstream)
            if record is None and not lenient:
                return Receipt(spec.id, "orphan", upstream)
            if record is not None and not transitions.met(record, spec):
                waiting.append(upstream)
                if record.status in ENDS:  # it ended badly: the outbox tells, as it would have then
                    ended.append(record)
        return self._create(spec, now, waiting, ended)

    def _known(self, spec: Spec) -> Receipt | None:
        old = self.tx.one("SELECT nonce0 FROM @tasks WHERE id = ?", (spec.id,))
        return None if old is None else Receipt(spec.id, "created" if old[0] == spec.nonce else "exists")

    def _create(self, spec: Spec, now: int, waiting: list[str], ended: list[Record]) -> Receipt:
        self.tx.state.seq += 1
        record = transitions.submit(spec, self.tx.state.seq, now, waiting)
        self._homes.place(record)
        if not self._rows.insert(record):
            known = self._known(spec)
            assert known is not None
            return known
        if waiting:
            self.tx.add_waits(spec.id, waiting)
            for upstream_record in ended:
                self._homes.to_outbox(upstream_record)
        if spec.dedup_key is not None:
            self._homes.hold_dedup(spec, now)
        if has_deadline(spec):
            self._homes.add_deadline(record)
        self.tx.tell_task(now, Fact.TASK_SUBMITTED, record)
        return Receipt(spec.id, "created")

    # --- time

    @writes
    def promote(self, limit: int) -> int | None:
        now = self.now()
        if self._dispatch.promote(now, limit):
            self.tx.notify(WORK)
        waits = (self._dispatch.next_due_in(now), self._dispatch.next_deadline_in(now))
        return min((wait for wait in waits if wait is not None), default=None)

    # --- dispatch

    @writes
    def claim(self, claim: Claim) -> Claimed:
        return self._dispatch.claim(claim, self.now())

    @writes
    def assign(
        self, assignments: Sequence[Assignment], hold: int, aside: Sequence[Aside] = (), look: Look | None = None
    ) -> Assigned:
        now = self.now()
        records = self._rows.by_ids([*(each.id for each in assignments), *(each.id for each in aside)])
        done = [self._assign(records.get(each.id), each, hold, now) for each in assignments]
        for one in aside:
            record = records.get(one.id)
            if record is not None and record.status is Status.READY and record.place is not Place.SIDE:
                self._dispatch.park(record, one.reason, now)
        if any(done):
            self.tx.notify(WORK)
        return Assigned(done, None if look is None else self._dispatch.look(look))

    def _assign(self, record: Record | None, assignment: Assignment, hold: int, now: int) -> bool:
        if record is None or record.status is not Status.READY:
            return has_assigned(record, assignment)
        turn = record.position
        self._homes.enter(record, now, transitions.assign(record, assignment.worker_id, hold, now))
        if record.place is Place.FAIR:
            self._homes.fairness.serve([(record, turn)])
        return True

    @writes
    def unassign(self, workers: Sequence[str], limit: int) -> list[str]:
        return self._unassign(f"worker_id IN ({', '.join('?' * len(workers))})", workers, limit)

    def _unassign(self, condition: str, params: Sequence[object], limit: int) -> list[str]:
        held = f"status = 'assigned' AND ({condition}) ORDER BY lease_until, id LIMIT ?"
        taken = self._rows.where(held, (*params, limit))
        for record in taken:
            self._dispatch.unassign(record, self.now())
        if taken:
            self.tx.notify(WORK)
        return [record.id for record in taken]

    # --- running

    def _held(self, leases: list[Lease]) -> list[Record | None]:
        found = self._rows.by_ids([lease.id for lease in leases])
        held: list[Record | None] = []
        for lease in leases:
            record = found.get(lease.id)
            fits = record is not None and record.status is Status.RUNNING and record.lease == lease
            held.append(record if fits else None)
        return held

    @writes
    def extend(self, leases: list[Lease], lease_ttl: int) -> list[Extended]:
        now = self.now()
        keep_pulse(self.tx, now)
        held = self._held(leases)
        for record in held:
            if record is not None:
                record.lease_until = now + lease_ttl
        self._rows.save_extended([record for record in held if record is not None])
        return ["lost" if record is None else "cancel" if record.cancel else "held" for record in held]

    @writes
    def note(self, lease: Lease, progress: float | None, text: str, lines: list[str]) -> bool:
        (record,) = self._held([lease])
        if record is None:
            return False
        if progress is not None:
            transitions.note(record, progress, text)
            self._rows.save((record,))
        self._histories.keep_lines(record, lines)
        return True

    # --- out

    @writes
    def finish(self, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        now = self.now()
        found = self._rows.by_ids([outcome.lease.id for outcome in outcomes]) if outcomes else {}
        verdicts: list[Verdict] = []
        succeeded: list[Record] = []
        for outcome in outcomes:
            record = found.get(outcome.lease.id)
            if record is None or not outcome.lease.nonce or record.lease != outcome.lease:
                verdicts.append(Verdict("lost"))
                continue
            if record.status is not Status.RUNNING:
                verdicts.append(Verdict("already", record.status))
                continue
            if type(outcome) is not Succeeded:
                self._histories.keep_run(record, transitions.run_before(record, outcome, now))
            fact = transitions.finish(record, outcome, now, self.tx.policy)
            if fact is Fact.TASK_SUCCEEDED:
                succeeded.append(record)
            self._homes.enter(record, now, fact, detail_of(record, fact, outcome), save=fact is not Fact.TASK_SUCCEEDED)
            if record.status not in ENDS:
                self.tx.notify(WORK)
            verdicts.append(Verdict("done", record.status))
        self._rows.save_succeeded(succeeded)
        return Finished(verdicts, None if then_claim is None else self._dispatch.claim(then_claim, now))

    @writes
    def reclaim(self, limit: int, gone: tuple[str, ...] = (), why: str = "", nodes: tuple[str, ...] = ()) -> Reclaimed:
        now = self.now()
        keep_pulse(self.tx, now)
        gone = still_gone(gone, nodes, lambda name: node_of(self.tx, name))
        orphans = self._rows.where(
            f"status = 'running' AND worker_id IN ({', '.join('?' * len(gone))}) ORDER BY lease_until, id LIMIT ?",
            (*gone, limit),
        )
        lost_workers = lose_workers(self.tx, now, gone if len(orphans) < limit else ())
        taken = [self._expire(record, now, gone, why or "its process is gone") for record in orphans]
        if now >= self.tx.state.hold_until:
            left = limit - len(taken)
            expired = self._rows.where(
                "status = 'running' AND lease_until <= ? ORDER BY lease_until, id LIMIT ?", (now, left)
            )
            taken += [self._expire(record, now, gone, "its lease ran out") for record in expired]
        overdue_or_gone = f"lease_until <= ? OR worker_id IN ({', '.join('?' * len(gone))})"
        taken += self._unassign(overdue_or_gone, (now, *gone), limit - len(taken))
        if taken:
            self.tx.notify(WORK)
        return Reclaimed(taken, lost_workers)

    def _expire(self, record: Record, now: int, gone: tuple[str, ...], why: str) -> str:
        member = self.tx.one(
            "SELECT 1 FROM @workers WHERE id = ? AND lost_at IS NULL AND expires_at > ?", (record.worker_id, now)
        )
        alive = record.worker_id not in gone and member is not None
        fact = transitions.expire(record, now, self.tx.policy, why, alive)
        self._histories.keep_run(record, transitions.run_lost(record, now))
        self._homes.enter(record, now, fact, record.last_error or "")
        return record.id

    # --- dependants and the outbox

    @writes
    def resolve(self, edges: Sequence[Edge]) -> list[bool | None]:
        now = self.now()
        return [self._resolve(edge, now) for edge in edges]

    def _resolve(self, edge: Edge, now: int) -> bool:
        record, upstream = self._rows.get(edge.dependant), edge.upstream
        if edge.fence is not None and moved_on(self._rows.get(upstream), edge.fence):
            return False
        # Whatever became of it, it does not wait: else the outbox would tell it for ever.
        self.tx.run("DELETE FROM @waits WHERE dependant = ? AND upstream = ?", (edge.dependant, upstream))
        if record is None or record.status is not Status.BLOCKED or upstream not in record.waiting:
            return False
        self._homes.enter(record, now, transitions.resolve(record, upstream, edge.ok, now), upstream)
        self.tx.notify(WORK)
        return True

    @writes
    def outbox(self, limit: int) -> list[OutboxEntry]:
        found: list[OutboxEntry] = []
        left = MANY_MAX
        for task_id, status, schedule_id in self.tx.all(
            "SELECT id, status, schedule_id FROM @outbox ORDER BY n LIMIT ?", (limit,)
        ):
            if left == 0:
                break
            waiting = self.tx.all(
                "SELECT dependant FROM @waits WHERE upstream = ? ORDER BY dependant LIMIT ?", (task_id, left)
            )
            left -= len(waiting)
            dependants, fence = tuple(row[0] for row in waiting), fence_of_end(self._rows.get(task_id))
            found.append(OutboxEntry(task_id, Status(status), dependants, schedule_id, fence))
        return found

    @writes
    def clear_outbox(self, told: list[OutboxEntry]) -> None:
        self.tx.many(
            "DELETE FROM @outbox WHERE id = ? AND NOT EXISTS (SELECT 1 FROM @waits WHERE upstream = @outbox.id)",
            [(entry.id,) for entry in told if not moved_on(self._rows.get(entry.id), entry.fence)],
        )
