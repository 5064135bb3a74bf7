"""The transitions of a task over SQLite rows. Each method runs on the writer's thread, inside its transaction."""

from __future__ import annotations

from typing import Literal

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.outcomes import Outcome
from tickwork.model.tasks import ENDS, Band, Lease, Place, Record, Spec, Status
from tickwork.store.contract import Claim, Claimed, Finished, Receipt, Reclaimed, Verdict
from tickwork.store.hints import WORK
from tickwork.store.rules import PARK_MAX, Budget, claimed, detail_of, last_chance, still_gone
from tickwork.store.sqlite.members import CHANCE, keep_pulse, lose_workers, node_of
from tickwork.store.sqlite.outbox import Outbox
from tickwork.store.sqlite.schema import IN_DELAYED

# From one type of the index to the next: a DISTINCT would walk every parked task of the queue.
_NEXT_KIND = "SELECT min(type) FROM @tasks WHERE status = 'ready' AND place = 1 AND queue = ?"
PARKED_KINDS = (
    f"WITH RECURSIVE kinds (type) AS ({_NEXT_KIND} UNION ALL SELECT ({_NEXT_KIND} AND type > kinds.type) FROM kinds "
    "WHERE type IS NOT NULL) SELECT type FROM kinds WHERE type IS NOT NULL"
)


def _turn(record: Record, rank: int) -> tuple[int, ...]:
    """When it is to start, compared to other ready tasks; `rank` is that of its queue."""
    return record.spec.band, rank, record.place, record.position


class Tasks(Outbox):
    # --- in

    def submit(self, specs: list[Spec]) -> list[Receipt]:
        now = self.now()
        receipts = [self._submit(spec, now) for spec in specs]
        self.tx.notify(WORK)
        return receipts

    def submit_ticks(self, ticks: tuple[Spec, ...], now: int) -> list[Receipt]:
        if ticks:
            self.tx.notify(WORK)
        return [self._submit(spec, now, lenient=True) for spec in ticks]

    def _submit(self, spec: Spec, now: int, lenient: bool = False) -> Receipt:
        if spec.dedup_key is None and not spec.depends_on:
            return self._create(spec, now, [], [])
        if (known := self._known(spec)) is not None:
            return known
        holder = self._dedup_holder(spec, now)
        if holder is not None:
            return Receipt(spec.id, "duplicate", holder)
        waiting: list[str] = []
        ended: list[Record] = []
        for upstream in dict.fromkeys(spec.depends_on):
            record = self.rows.get(upstream)
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
        self._place(record)
        if not self.rows.insert(record):
            known = self._known(spec)
            assert known is not None
            return known
        if waiting:
            self.tx.add_waits(spec.id, waiting)
            for upstream_record in ended:
                self._to_outbox(upstream_record)
        if spec.dedup_key is not None:
            self._hold_dedup(spec, now)
        self.tx.tell_task(now, Fact.TASK_SUBMITTED, record)
        return Receipt(spec.id, "created")

    # --- time

    def promote(self, limit: int) -> int | None:
        now = self.now()
        if self._promote(now, limit):
            self.tx.notify(WORK)
        return self._next_due_in(now)

    def _promote(self, now: int, limit: int) -> int:
        due = self.rows.where(f"{IN_DELAYED} AND due_at <= ? ORDER BY due_at, seq LIMIT ?", (now, limit))
        for record in due:
            self._settle(record, now, transitions.promote(record), save=False)
        self.rows.save(due)
        return len(due)

    def _next_due_in(self, now: int) -> int | None:
        # A time that is no number comes behind all numbers in SQLite.
        row = self.tx.one(f"SELECT due_at FROM @tasks WHERE {IN_DELAYED} AND due_at < {2**62} ORDER BY due_at LIMIT 1")
        return None if row is None else max(row[0] - now, 0)

    # --- dispatch

    def claim(self, want: Claim) -> Claimed:
        now = self.now()
        self.tx.claims = True
        keep_pulse(self.tx, now)
        known: list[tuple[int, str, str | None]] = self.tx.all(
            "SELECT turn, nonce, last_chance FROM @claims WHERE worker_id IN (?, ?)", (want.worker_id, want.process)
        )
        if any((turn, nonce) == (want.turn, want.nonce) for turn, nonce, _ in known):
            held = self.rows.where("status = 'running' AND worker_id = ? AND nonce = ?", (want.worker_id, want.nonce))
            ranks = {queue: rank for rank, queue in enumerate(dict.fromkeys(want.queues))}
            held.sort(key=lambda record: _turn(record, ranks.get(record.spec.queue, 0)))
            return claimed(held, self._next_due_in(now))
        self._promote(now, want.limit + PARK_MAX)
        budget = Budget()
        busy = any(turn == CHANCE and self._is_held(lease) for turn, _, lease in known)
        records = self._startable(want, now, budget, busy) if want.limit > 0 else []
        for record in records:
            fact = transitions.start(record, want.worker_id, want.nonce, want.lease_ttl, now)
            self._settle(record, now, fact, save=False)
            if last_chance(record, self.tx.policy):
                self._note_claim(want.process, CHANCE, "", f"{record.id} {record.fence}")
        self.rows.save_started(records)
        self._note_claim(want.worker_id, want.turn, want.nonce, None)
        return claimed(records, 0 if budget.spent else self._next_due_in(now))

    def _note_claim(self, *claim: str | int | None) -> None:
        self.tx.run("INSERT OR REPLACE INTO @claims VALUES (?, ?, ?, ?)", claim)

    def _startable(self, want: Claim, now: int, budget: Budget, busy: bool) -> list[Record]:
        """Ready tasks in the order in which they are to start; what may not start is moved aside. `busy`: of those on
        their last chance the claimer's process has one already."""
        limit = want.limit
        pauses = self.tx.all("SELECT kind, name FROM @pauses")
        types = want.types - {name for kind, name in pauses if kind == "type"}
        paused = {name for kind, name in pauses if kind == "queue"}
        queues = [queue for queue in dict.fromkeys(want.queues) if queue not in paused]
        while True:
            found: list[Record] = []
            strange: list[Record] = []
            taken, passed = busy, 0
            for record in self._heads(queues, types, limit):
                if len(found) == want.limit or len(strange) > budget.left:
                    break
                if record.spec.type not in types:
                    strange.append(record)
                elif taken and record.place is Place.FRONT and last_chance(record, self.tx.policy):
                    passed += 1
                else:
                    taken = taken or last_chance(record, self.tx.policy)
                    found.append(record)
            for record in strange[: budget.left]:
                record.place = Place.SIDE
                self._settle(record, now, Fact.TASK_PARKED, record.spec.type)
            budget.spent = len(strange) > budget.left
            budget.left -= len(strange)
            if passed and len(found) < want.limit and limit == want.limit:
                limit += PARK_MAX  # those that were passed over took the places of others
            elif not strange or budget.spent:
                return found

    def _is_held(self, lease: str | None) -> bool:
        task_id, _, fence = (lease or "").partition(" ")
        record = self.rows.get(task_id)
        return record is not None and record.status is Status.RUNNING and str(record.fence) == fence

    def _heads(self, queues: list[str], types: frozenset[str], limit: int) -> list[Record]:
        """The first ready tasks of these queues, in order, as far as one look at each of them can tell."""
        found: list[tuple[tuple[int, ...], Record]] = []
        horizon: tuple[int, ...] = (len(Band),)
        for rank, queue in enumerate(queues):
            heads = self.rows.where(
                "status = 'ready' AND place <> 1 AND queue = ? ORDER BY band, place, position LIMIT ?", (queue, limit)
            )
            if len(heads) == limit:  # behind its last one others may come before those of the next queues
                horizon = min(horizon, _turn(heads[-1], rank))
            found += [(_turn(record, rank), record) for record in heads + self._aside(queue, types, limit)]
        found.sort(key=lambda candidate: candidate[0])
        return [record for turn, record in found if turn <= horizon]

    def _aside(self, queue: str, types: frozenset[str], limit: int) -> list[Record]:
        found: list[Record] = []
        for (kind,) in self.tx.all(PARKED_KINDS, (queue, queue)):
            if kind in types:
                found += self.rows.where(
                    "status = 'ready' AND place = 1 AND queue = ? AND type = ? ORDER BY band, position LIMIT ?",
                    (queue, kind, limit),
                )
        return found

    # --- running

    def _held(self, leases: list[Lease]) -> list[Record | None]:
        found = self.rows.by_ids([lease.id for lease in leases])
        held: list[Record | None] = []
        for lease in leases:
            record = found.get(lease.id)
            fits = record is not None and record.status is Status.RUNNING and record.lease == lease
            held.append(record if fits else None)
        return held

    def extend(self, leases: list[Lease], lease_ttl: int) -> list[Literal["held", "cancel", "lost"]]:
        now = self.now()
        keep_pulse(self.tx, now)
        held = self._held(leases)
        for record in held:
            if record is not None:
                record.lease_until = now + lease_ttl
        self.rows.save_extended([record for record in held if record is not None])
        return ["lost" if record is None else "cancel" if record.cancel else "held" for record in held]

    def note(self, lease: Lease, progress: float | None, text: str, lines: list[str]) -> bool:
        (record,) = self._held([lease])
        if record is None:
            return False
        transitions.note(record, progress, text, lines, self.tx.policy)
        self.rows.save((record,))
        return True

    # --- out

    def finish(self, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        now = self.now()
        found = self.rows.by_ids([outcome.lease.id for outcome in outcomes]) if outcomes else {}
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
            fact = transitions.finish(record, outcome, now, self.tx.policy)
            if fact is Fact.TASK_SUCCEEDED:
                succeeded.append(record)
            self._settle(record, now, fact, detail_of(record, fact), save=fact is not Fact.TASK_SUCCEEDED)
            if record.status not in ENDS:
                self.tx.notify(WORK)
            verdicts.append(Verdict("done", record.status))
        self.rows.save_succeeded(succeeded)
        return Finished(verdicts, None if then_claim is None else self.claim(then_claim))

    def reclaim(self, limit: int, gone: tuple[str, ...] = (), why: str = "", nodes: tuple[str, ...] = ()) -> Reclaimed:
        now = self.now()
        keep_pulse(self.tx, now)
        gone = still_gone(gone, nodes, lambda name: node_of(self.tx, name))
        orphans = self.rows.where(
            f"status = 'running' AND worker_id IN ({', '.join('?' * len(gone))}) ORDER BY lease_until, id LIMIT ?",
            (*gone, limit),
        )
        lost_workers = lose_workers(self.tx, now, gone if len(orphans) < limit else ())
        taken = [self._expire(record, now, gone, why or "its process is gone") for record in orphans]
        if now >= self.tx.state.hold_until:
            left = limit - len(taken)
            expired = self.rows.where(
                "status = 'running' AND lease_until <= ? ORDER BY lease_until, id LIMIT ?", (now, left)
            )
            taken += [self._expire(record, now, gone, "its lease ran out") for record in expired]
        if taken:
            self.tx.notify(WORK)
        return Reclaimed(taken, lost_workers)

    def _expire(self, record: Record, now: int, gone: tuple[str, ...], why: str) -> str:
        member = self.tx.one(
            "SELECT 1 FROM @workers WHERE id = ? AND lost_at IS NULL AND expires_at > ?", (record.worker_id, now)
        )
        alive = record.worker_id not in gone and member is not None
        fact = transitions.expire(record, now, self.tx.policy, why, alive)
        self._settle(record, now, fact, record.last_error or "")
        return record.id
