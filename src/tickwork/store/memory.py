"""The memory store: the contract in its plainest form, held to the same tests as every other.

Each status has one home: `_delayed` (pending, retrying), `_blocked`, `_lanes` (ready), `_leases` (running) and `_ends`.
A transition takes the record out of its home, changes it and puts it where its new status lives.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from heapq import merge
from itertools import dropwhile, islice
from operator import attrgetter
from typing import Literal

from msgspec.structs import replace

from tickwork import transitions
from tickwork.clock import Clock
from tickwork.errors import StoreError
from tickwork.events import Fact
from tickwork.model import DELAYED, ENDS, Band, Durability, Lease, Outcome, Place, Policy, Record, Spec, Status
from tickwork.store.base import (
    PAGE_MAX,
    Claim,
    Claimed,
    Finished,
    Pause,
    Query,
    Receipt,
    Reclaimed,
    Settled,
    Stats,
    Verdict,
)
from tickwork.store.hints import CONTROL, OUTBOX, WORK
from tickwork.store.memory_locks import Locks
from tickwork.store.memory_members import Members, atomic
from tickwork.store.rules import (
    LOST_WORKER_KEPT,
    PARK_MAX,
    Budget,
    detail_of,
    grant,
    last_chance,
    matches,
    met,
    read_cursor,
    runs,
    unsound,
    warn_dropped,
)
from tickwork.store.shelves import Lane, TimeIndex


class MemoryStore(Members, Locks):
    def __init__(self, policy: Policy | None = None, clock: Clock | None = None) -> None:
        super().__init__(policy, clock)
        self._seq = 0
        self._position = 0
        self._dropped = 0
        self._tasks: dict[str, Record] = {}
        self._by_seq: dict[int, Record] = {}
        self._delayed = TimeIndex()
        self._blocked: dict[str, Record] = {}
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._leases = TimeIndex()
        self._ends: dict[Status, OrderedDict[int, Record]] = {status: OrderedDict() for status in ENDS}  # by position
        self._dedup: dict[str, str] = {}
        self._dedup_ends = TimeIndex()
        self._dependants: dict[str, list[str]] = {}
        self._outbox: dict[str, tuple[Status, str | None]] = {}
        self._pauses: dict[tuple[str, str], Pause] = {}

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close: the tasks live as long as the object."""

    def sibling(self) -> MemoryStore:
        return self

    # --- homes

    def _enter(self, record: Record) -> None:
        status = record.status
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
        else:
            self._take_position(record)
            self._ends[status][record.position] = record

    def _take_position(self, record: Record) -> None:
        self._position += 1
        record.position = self._position

    def _leave(self, record: Record) -> None:
        status = record.status
        if status is Status.READY:
            self._lanes[record.spec.queue, record.spec.band].remove(record)
        elif status is Status.RUNNING:
            self._leases.remove(record.id)
        elif status in DELAYED:
            self._delayed.remove(record.id)
        elif status is Status.BLOCKED:
            del self._blocked[record.id]
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
        known = set(self._dependants.get(upstream, ()))
        return tuple(sorted(i for i in known if i in self._blocked and upstream in self._blocked[i].waiting))

    def _bound_dead(self, now: int) -> None:
        dead = self._ends[Status.DEAD]
        while len(dead) > self.policy.dlq_max:
            oldest = next(iter(dead.values()))
            self._dropped += 1
            self._append_task(now, Fact.TASK_DROPPED, oldest, "the dead-letter queue is full")
            warn_dropped(oldest)
            self._forget(oldest)

    def _forget(self, record: Record) -> None:
        self._leave(record)
        del self._tasks[record.id], self._by_seq[record.seq]

    def _free_dedup(self, record: Record) -> None:
        key = record.spec.dedup_key
        if key is not None and self._dedup.get(key) == record.id:
            del self._dedup[key]
            self._dedup_ends.remove(key)

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

    def _submit(self, spec: Spec, now: int) -> Receipt:
        old = self._tasks.get(spec.id)
        if old is not None:
            return Receipt(spec.id, "created" if old.spec.nonce == spec.nonce else "exists")
        holder = self._dedup_holder(spec, now)
        if holder is not None:
            return Receipt(spec.id, "duplicate", holder)
        waiting: list[str] = []
        for upstream in dict.fromkeys(spec.depends_on):
            record = self._tasks.get(upstream)
            if record is None:
                return Receipt(spec.id, "orphan", upstream)
            if not met(record, spec):
                waiting.append(upstream)
        self._create(spec, now, waiting)
        return Receipt(spec.id, "created")

    def _dedup_holder(self, spec: Spec, now: int) -> str | None:
        if spec.dedup_key is None or not self.policy.dedup:
            return None
        return self._dedup.get(spec.dedup_key) if self._dedup_ends.at(spec.dedup_key) > now else None

    def _create(self, spec: Spec, now: int, waiting: list[str]) -> None:
        self._seq += 1
        record = transitions.submit(spec, self._seq, now, waiting)
        self._tasks[spec.id] = self._by_seq[record.seq] = record
        for upstream in waiting:
            self._dependants.setdefault(upstream, []).append(spec.id)
            if self._tasks[upstream].status in ENDS:  # it ended badly: the outbox tells, as it would have then
                self._to_outbox(self._tasks[upstream])
        if spec.dedup_key is not None and self.policy.dedup:
            self._dedup[spec.dedup_key] = spec.id
            self._dedup_ends.put(spec.dedup_key, now + spec.dedup_ttl)
        self._settle(record, now, Fact.TASK_SUBMITTED)

    @atomic
    def resolve(self, task_id: str, upstream: str, ok: bool) -> bool:
        record = self._tasks.get(task_id)
        if record is None or record.status is not Status.BLOCKED or upstream not in record.waiting:
            return False
        now = self.now()
        self._leave(record)
        self._settle(record, now, transitions.resolve(record, upstream, ok, now), upstream)
        self.hints.notify(WORK)
        return True

    # --- time

    @atomic
    def promote(self, limit: int) -> Claimed:
        now = self.now()
        if self._promote(now, limit):
            self.hints.notify(WORK)
        return Claimed([], self._next_due_in(now))

    def _promote(self, now: int, limit: int) -> int:
        due = self._delayed.until(now, limit)
        for task_id in due:
            record = self._tasks[task_id]
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
        last = self._last_claims.get(want.worker_id)
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
                self._last_chances[want.worker_id] = record.id
        grants = [grant(record) for record in taken]
        self._last_claims[want.worker_id] = (want.nonce, [grant.spec.id for grant in grants])
        return Claimed(grants, 0 if budget.spent else self._next_due_in(now))

    def _startable(self, want: Claim, now: int, budget: Budget) -> Iterator[Record]:
        """Ready tasks in the order in which they are to start. The caller takes each out of its lane."""
        paused = {name for kind, name in self._pauses if kind == "type"}
        types = want.types - paused if paused else want.types
        chance = self._has_last_chance(want.worker_id)
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

    def _has_last_chance(self, worker_id: str) -> bool:
        record = self._tasks.get(self._last_chances.get(worker_id, ""))
        return record is not None and runs(record) and record.worker_id == worker_id

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
    def reclaim(self, limit: int, gone: tuple[str, ...] = (), why: str = "") -> Reclaimed:
        now = self.now()
        self._pulse(now)
        lost_workers = self._lose_workers(now, gone)
        orphans = [record for i in self._leases if (record := self._tasks[i]).worker_id in gone] if gone else []
        orphans.sort(key=lambda record: (record.lease_until, record.id))
        taken = [self._expire(record, now, why or "its process is gone") for record in orphans[:limit]]
        if now >= self._hold_until:
            expired = [self._tasks[task_id] for task_id in self._leases.until(now, limit - len(taken))]
            taken += [self._expire(record, now, "its lease ran out") for record in expired]
        if taken:
            self.hints.notify(WORK)
        return Reclaimed(taken, lost_workers)

    def _expire(self, record: Record, now: int, why: str) -> str:
        self._leave(record)
        fact = transitions.expire(record, now, self.policy, why)
        self._settle(record, now, fact, record.last_error or "")
        return record.id

    # --- outbox

    @atomic
    def settled(self, limit: int) -> list[Settled]:
        return [
            Settled(task_id, status, self._waiting_for(task_id), schedule_id)
            for task_id, (status, schedule_id) in islice(self._outbox.items(), limit)
        ]

    @atomic
    def unsettle(self, ids: list[str]) -> None:
        for task_id in ids:
            if not self._waiting_for(task_id):
                self._outbox.pop(task_id, None)
                self._dependants.pop(task_id, None)

    # --- operators

    @atomic
    def cancel(self, task_id: str, force: bool, reason: str = "") -> Status | None:
        record = self._tasks.get(task_id)
        if record is None:
            return None
        found, now = record.status, self.now()
        if found is Status.RUNNING and force:
            self._append_task(now, transitions.ask_cancel(record, reason), record, reason)
            self.hints.notify(CONTROL)
        elif found is not Status.RUNNING and not found.ended:
            self._leave(record)
            self._settle(record, now, transitions.cancel(record, now, reason), reason)
        return found

    @atomic
    def run_now(self, task_id: str) -> Status | None:
        record = self._tasks.get(task_id)
        if record is None:
            return None
        found = record.status
        if found in DELAYED:
            self._leave(record)
            self._settle(record, self.now(), transitions.run_now(record))
            self.hints.notify(WORK)
        return found

    @atomic
    def retry(self, task_id: str, only: Status | None = None) -> Status | None:
        record = self._tasks.get(task_id)
        if record is None:
            return None
        found = record.status
        if found.ended and only in (None, found):
            self._leave(record)
            self._outbox.pop(task_id, None)
            self._settle(record, self.now(), transitions.retry(record))
            self.hints.notify(WORK)
        return found

    @atomic
    def delete(self, task_id: str, only: Status | None = None) -> Status | None:
        record = self._tasks.get(task_id)
        if record is None:
            return None
        if record.status.ended and only in (None, record.status):
            self._append_task(self.now(), Fact.TASK_DELETED, record)
            self._free_dedup(record)
            self._forget(record)
        return record.status

    @atomic
    def prune(self, limit: int) -> int:
        now = self.now()
        for key in self._dedup_ends.until(now, limit):
            del self._dedup[key]
        self._prune_locks(now, limit)
        pruned = self._prune_ends(now - self.policy.retention, limit)
        forgotten = [
            w.id for w in self._workers.values() if w.lost_at is not None and w.lost_at <= now - LOST_WORKER_KEPT
        ]
        for worker_id in forgotten:
            del self._workers[worker_id]
            self._last_claims.pop(worker_id, None)
            self._last_chances.pop(worker_id, None)
        return pruned

    def _prune_ends(self, until: int, limit: int) -> int:
        excess = sum(map(len, self._ends.values())) - self.policy.retention_max
        by_end = merge(*(shelf.values() for shelf in self._ends.values()), key=attrgetter("position"))
        told = (record for record in by_end if record.id not in self._outbox)
        pruned: list[Record] = []
        for record in islice(told, limit):
            if (record.finished_at or 0) > until and len(pruned) >= excess:
                break
            pruned.append(record)
        for record in pruned:
            self._forget(record)
        return len(pruned)

    @atomic
    def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        now = self.now()
        self._pauses[kind, name] = Pause(kind, name, now, note)
        self._append(now, Fact.QUEUE_PAUSED if kind == "queue" else Fact.TYPE_PAUSED, name, note)

    @atomic
    def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        if self._pauses.pop((kind, name), None) is None:
            return False
        self._append(self.now(), Fact.QUEUE_RESUMED if kind == "queue" else Fact.TYPE_RESUMED, name)
        self.hints.notify(WORK)
        return True

    @atomic
    def paused(self) -> list[Pause]:
        return sorted(self._pauses.values(), key=lambda pause: (pause.kind, pause.name))

    @atomic
    def get(self, task_id: str) -> Record | None:
        record = self._tasks.get(task_id)
        return None if record is None else replace(record)

    @atomic
    def page(self, query: Query) -> tuple[list[Record], str | None]:
        if query.status in ENDS:
            return self._page_of_ends(query, self._ends[query.status])
        start = min(*read_cursor(query, self._seq + 1), self._seq + 1)
        stop = max(start - 1 - PAGE_MAX, 0)
        found: list[Record] = []
        for seq in range(start - 1, stop, -1):
            record = self._by_seq.get(seq)
            if record is not None and matches(record, query):
                found.append(replace(record))
                if len(found) == query.limit:
                    return found, str(seq) if seq > 1 else None
        return found, str(stop + 1) if stop > 0 else None

    @staticmethod
    def _page_of_ends(query: Query, shelf: OrderedDict[int, Record]) -> tuple[list[Record], str | None]:
        (before,) = read_cursor(query, 2**62)
        older = dropwhile(lambda position: position >= before, reversed(shelf))
        found: list[Record] = []
        for looked, position in enumerate(older):
            if looked == PAGE_MAX or len(found) == query.limit:
                return found, str(position + 1)
            if matches(shelf[position], query):
                found.append(replace(shelf[position]))
        return found, None

    @atomic
    def stats(self) -> Stats:
        statuses = dict.fromkeys(Status, 0)
        for record in self._tasks.values():
            statuses[record.status] += 1
        parked: dict[tuple[str, str], int] = {}
        for (queue, _), lane in self._lanes.items():
            for kind, side in lane.sides.items():
                parked[queue, kind] = parked.get((queue, kind), 0) + len(side)
        return Stats(
            statuses=statuses,
            ready={key: len(lane) for key, lane in self._lanes.items() if len(lane)},
            parked=parked,
            workers=sum(1 for worker in self._workers.values() if worker.lost_at is None),
            dropped=self._dropped,
        )

    @atomic
    def audit(self) -> list[str]:
        homes: dict[str, list[str]] = {}
        for name, task_id in self._all_homes():
            homes.setdefault(task_id, []).append(name)
        problems = [f"task {i} is in {h} but has no record" for i, h in homes.items() if i not in self._tasks]
        for record in self._tasks.values():
            found, right = homes.get(record.id, []), _home_name(record)
            if found != [right]:
                problems.append(f"task {record.id} is {record.status}, so belongs in {right}, not {found}")
            problems.extend(f"task {record.id}: {problem}" for problem in unsound(record))
            for upstream in record.waiting:
                other = self._tasks.get(upstream)
                if (other is None or other.status in ENDS) and upstream not in self._outbox:
                    problems.append(f"task {record.id} waits for {upstream}, which will never tell")
        return problems

    async def mend(self) -> list[str]:
        """Nothing outside of this object can harm it, so there is nothing to mend."""
        return await self.audit()

    def _all_homes(self) -> Iterator[tuple[str, str]]:
        yield from (("delayed", task_id) for task_id in self._delayed)
        yield from (("blocked", task_id) for task_id in self._blocked)
        yield from (("leases", task_id) for task_id in self._leases)
        for key, lane in self._lanes.items():
            yield from ((f"lane {key}", record.id) for record in lane)
        for status, shelf in self._ends.items():
            yield from ((f"ends {status}", record.id) for record in shelf.values())


def _home_name(record: Record) -> str:
    status = record.status
    if status is Status.READY:
        return f"lane {(record.spec.queue, record.spec.band)}"
    if status in DELAYED:
        return "delayed"
    if status in ENDS:
        return f"ends {status}"
    return {Status.BLOCKED: "blocked", Status.RUNNING: "leases"}[status]
