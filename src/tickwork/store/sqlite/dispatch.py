"""Which tasks a claim on a SQLite file gets. Runs on the writer's thread, inside its transaction."""

from __future__ import annotations

from collections.abc import Callable, Set

from tickwork.model import transitions
from tickwork.model.facts import Fact
from tickwork.model.tasks import MAY_EXPIRE, Band, ParkReason, Place, Record, Status
from tickwork.store.contract import Claim, Claimed, Look, Seen
from tickwork.store.hints import OUTBOX
from tickwork.store.rules import (
    PARK_MAX,
    Budget,
    Wanted,
    claimed,
    has_deadline,
    is_overdue,
    is_suspect,
    seen_waiting,
    shown_at_most,
)
from tickwork.store.sqlite.homes import Homes
from tickwork.store.sqlite.schema import IN_DELAYED, KIND
from tickwork.store.sqlite.workers import SUSPECT, keep_pulse

# From one kind of the index to the next: a DISTINCT would walk every parked task of the queue.
_NEXT_KIND = f"SELECT min({KIND}) FROM @tasks WHERE status = 'ready' AND place = 1 AND queue = ?"
PARKED_KINDS = (
    f"WITH RECURSIVE kinds (name) AS ({_NEXT_KIND} UNION ALL SELECT ({_NEXT_KIND} AND {KIND} > kinds.name) FROM kinds "
    "WHERE name IS NOT NULL) SELECT name FROM kinds WHERE name IS NOT NULL"
)

# Likewise from one queue to the next: those with tasks that wait in their lanes, and with parked ones.
_QUEUES = (
    "WITH RECURSIVE queues (name) AS (SELECT '' UNION ALL SELECT "
    "(SELECT min(queue) FROM @tasks WHERE status = 'ready' AND place {place} 1 AND queue > name) "
    "FROM queues WHERE name IS NOT NULL) SELECT name, {band} FROM queues WHERE name > ''"
)
_FIRST_BAND = "(SELECT min(band) FROM @tasks WHERE status = 'ready' AND place <> 1 AND queue = name)"
READY_QUEUES = _QUEUES.format(place="<>", band=_FIRST_BAND)
PARKED_QUEUES = _QUEUES.format(place="=", band=0)  # theirs may be any
MANY_QUEUES = 8  # with more, a claim first finds out which of them have tasks


def _turn(record: Record, rank: int) -> tuple[int, ...]:
    """When it is to start, compared to other ready tasks; `rank` is that of its queue."""
    return record.spec.band, rank, record.place, record.position, record.seq


class Dispatch:
    def __init__(self, homes: Homes) -> None:
        self.tx = homes.tx
        self._homes = homes
        self._rows = homes.rows

    def claim(self, claim: Claim, now: int) -> Claimed:
        self.tx.claims = True
        keep_pulse(self.tx, now)
        known: list[tuple[str, int, str, str | None]] = self.tx.all(
            "SELECT worker_id, turn, nonce, last_chance FROM @claims WHERE worker_id IN (?, ?)",
            (claim.worker_id, claim.process),
        )
        if any(each[:3] == (claim.worker_id, claim.turn, claim.nonce) for each in known):
            holders = (claim.worker_id, *claim.inboxes)
            held = self._rows.where(
                f"status = 'running' AND worker_id IN ({', '.join('?' * len(holders))}) AND nonce = ?",
                (*holders, claim.nonce),
            )
            ranks = {queue: rank for rank, queue in enumerate(dict.fromkeys(claim.queues))}
            held.sort(key=lambda record: _turn(record, ranks.get(record.spec.queue, 0)))
            return claimed(held, self.next_due_in(now))
        self.promote(now, claim.limit + PARK_MAX)
        budget = Budget()
        busy = any(each[:2] == (claim.process, SUSPECT) and self._is_held(each[3]) for each in known)
        records = self._from_inboxes(claim, busy, now) if claim.inboxes and claim.limit > 0 else []
        owners = [record.worker_id or "" for record in records]
        fair: list[tuple[Record, int]] = []
        if len(records) < claim.limit:
            busy = busy or any(is_suspect(record, self.tx.policy) for record in records)
            started = self._startable(claim, claim.limit - len(records), now, budget, busy)
            fair = [(record, record.position) for record in started if record.place is Place.FAIR]
            records += started
            if len(records) < claim.limit and self._has_ready(claim.assigned):
                self.tx.notify(OUTBOX)  # heard by the leader alone, and with it `ASSIGN`
        owners += [claim.worker_id] * (len(records) - len(owners))
        for record, owner in zip(records, owners, strict=True):
            fact = transitions.start(record, owner, claim.nonce, claim.lease_ttl, now)
            self._homes.enter(record, now, fact, save=False)
            if is_suspect(record, self.tx.policy):
                self._note_claim(claim.process, SUSPECT, "", f"{record.id} {record.fence}")
        self._rows.save_started(records)
        if fair:
            self._homes.fairness.serve(fair)
        self._homes.forget_deadlines([r.seq for r in records if r.unreadable or has_deadline(r.spec)])
        self._note_claim(claim.worker_id, claim.turn, claim.nonce, None)
        return claimed(records, 0 if budget.spent else self.next_due_in(now))

    def _note_claim(self, *claim: str | int | None) -> None:
        self.tx.run("INSERT OR REPLACE INTO @claims VALUES (?, ?, ?, ?)", claim)

    def _from_inboxes(self, claim: Claim, busy: bool, now: int) -> list[Record]:
        """Assigned tasks in the order in which they are to start. What is paused goes back."""
        pauses = set(self.tx.all("SELECT kind, name FROM @pauses"))
        found: list[Record] = []
        for owner in dict.fromkeys(claim.inboxes):
            inbox = self._rows.where("status = 'assigned' AND worker_id = ? ORDER BY band, position", (owner,))
            for record in inbox:
                if len(found) == claim.limit:
                    return found
                suspect = is_suspect(record, self.tx.policy)
                if is_overdue(record, now):
                    self._homes.enter(record, now, transitions.lapse(record, now))
                elif ("queue", record.spec.queue) in pauses or ("type", record.spec.type) in pauses:
                    self.unassign(record, now)
                elif not (busy and suspect):
                    busy = busy or suspect
                    found.append(record)
        return found

    def unassign(self, record: Record, now: int) -> None:
        self._homes.enter(record, now, transitions.unassign(record))

    def _has_ready(self, queues: tuple[str, ...]) -> bool:
        ready = "SELECT 1 FROM @tasks WHERE status = 'ready' AND place <> 1 AND queue = ? LIMIT 1"
        return any(self.tx.one(ready, (queue,)) is not None for queue in queues)

    def _startable(self, claim: Claim, wanted: int, now: int, budget: Budget, busy: bool) -> list[Record]:
        """Ready tasks in the order in which they are to start; what may not start is parked. `busy`: the claimer's
        process runs a suspect already (see `rules.is_suspect`)."""
        limit = wanted
        pauses = self.tx.all("SELECT kind, name FROM @pauses")
        paused_types = {name for kind, name in pauses if kind == "type"}
        wants = Wanted(claim, paused_types)
        paused = {name for kind, name in pauses if kind == "queue"}
        queues = [queue for queue in dict.fromkeys(claim.queues) if queue not in paused]
        while True:
            found: list[Record] = []
            strange: list[Record] = []
            taken, passed = busy, 0
            for record in self._heads(queues, lambda _, kind: wants.may_start(kind), limit, wants.front_queues):
                if len(found) == wanted or len(strange) > budget.left:
                    break
                if is_overdue(record, now) or not wants.may_start(record.spec.kind, record.place is Place.FRONT):
                    strange.append(record)
                elif taken and record.place is Place.FRONT and is_suspect(record, self.tx.policy):
                    passed += 1
                else:
                    taken = taken or is_suspect(record, self.tx.policy)
                    found.append(record)
            for record in strange[: budget.left]:
                self._set_aside(record, wants, now)
            budget.spent = len(strange) > budget.left
            budget.left -= len(strange)
            if passed and len(found) < wanted and limit == wanted:
                limit += PARK_MAX  # those that were skipped took the places of others
            elif not strange or budget.spent:
                return found

    def _set_aside(self, record: Record, wanted: Wanted, now: int) -> None:
        if is_overdue(record, now):
            self._homes.enter(record, now, transitions.lapse(record, now))
            return
        self.park(record, wanted.reason(record), now)

    def park(self, record: Record, why: ParkReason, now: int) -> None:
        record.place, record.parked = Place.SIDE, why
        self._homes.enter(record, now, Fact.TASK_PARKED, record.spec.type)

    def _is_held(self, lease: str | None) -> bool:
        task_id, _, fence = (lease or "").partition(" ")
        record = self._rows.get(task_id)
        return record is not None and record.status is Status.RUNNING and str(record.fence) == fence

    def _heads(
        self, queues: list[str], may_start: Callable[[str, str], bool], limit: int, front_only: Set[str] = frozenset()
    ) -> list[Record]:
        """The first ready tasks of these queues, in order, as far as one look at each of them can tell."""
        found: list[tuple[tuple[int, ...], Record]] = []
        horizon: tuple[int, ...] = (len(Band),)
        for band, rank, queue in self._in_turn(queues):
            if len(found) >= limit and sorted(turn for turn, _ in found)[limit - 1] < (band, rank):
                horizon = min(horizon, (band, rank))  # this queue and those behind it come later
                break
            only = " AND place = 0" if queue in front_only else ""
            heads = self._rows.where(
                f"status = 'ready' AND place <> 1{only} AND queue = ? ORDER BY band, place, position, seq LIMIT ?",
                (queue, limit),
            )
            if len(heads) == limit:  # behind its last one others may come before those of the next queues
                horizon = min(horizon, _turn(heads[-1], rank))
            aside = [] if queue in front_only else self._parked(queue, may_start, limit)
            found += [(_turn(record, rank), record) for record in heads + aside]
        found.sort(key=lambda candidate: candidate[0])
        return [record for turn, record in found if turn <= horizon]

    def _in_turn(self, queues: list[str]) -> list[tuple[int, int, str]]:
        """The queues in the order in which their first tasks may start: band and rank are no later than theirs."""
        if len(queues) <= MANY_QUEUES:
            return [(0, rank, queue) for rank, queue in enumerate(queues)]
        bands: dict[str, int] = dict(self.tx.all(READY_QUEUES))
        bands |= dict(self.tx.all(PARKED_QUEUES))
        return sorted((bands[queue], rank, queue) for rank, queue in enumerate(queues) if queue in bands)

    def _parked(self, queue: str, may_start: Callable[[str, str], bool], limit: int) -> list[Record]:
        found: list[Record] = []
        for (kind,) in self.tx.all(PARKED_KINDS, (queue, queue)):
            if may_start(queue, kind):
                found += self._rows.where(
                    f"status = 'ready' AND place = 1 AND queue = ? AND {KIND} = ? ORDER BY band, position LIMIT ?",
                    (queue, kind, limit),
                )
        return found

    def look(self, look: Look) -> Seen:
        pauses = self.tx.all("SELECT kind, name FROM @pauses")
        queues = [queue for queue in dict.fromkeys(look.queues) if ("queue", queue) not in pauses]
        lanes = {f"{queue}/{kind}" for queue in queues for (kind,) in self.tx.all(PARKED_KINDS, (queue, queue))}
        held = "SELECT count(*) FROM @tasks WHERE status = ? AND worker_id = ?"
        loads = {
            worker: sum(self.tx.one(held, (status, worker))[0] for status in ("running", "assigned"))
            for worker in look.workers
        }
        limit = shown_at_most(look, loads)
        waiting: list[Record] = []
        if limit > 0:
            waiting = self._heads(queues, lambda queue, kind: f"{queue}/{kind}" in look.lanes, limit)[:limit]
        paused = frozenset(name for kind, name in pauses if kind == "type")
        return Seen([seen_waiting(record) for record in waiting], frozenset(lanes), paused, loads)

    def promote(self, now: int, limit: int) -> int:
        self._lapse(now, limit)
        due = self._rows.where(f"{IN_DELAYED} AND due_at <= ? ORDER BY due_at, seq LIMIT ?", (now, limit))
        for record in due:  # the turn of the next one depends on the rows of those before, if their lane is fair
            self._homes.enter(record, now, transitions.promote(record), save=record.spec.fair > 0)
        self._rows.save([record for record in due if not record.spec.fair])
        return len(due)

    def _lapse(self, now: int, limit: int) -> None:
        """Rows of tasks that may not expire any more, or cannot be read, only go."""
        overdue = self.tx.all("SELECT seq FROM @deadlines WHERE at <= ? ORDER BY at, seq LIMIT ?", (now, limit))
        for (seq,) in overdue:
            for record in self._rows.where("seq = ?", (seq,)):
                if record.status in MAY_EXPIRE and is_overdue(record, now):
                    self._homes.enter(record, now, transitions.lapse(record, now))
        if overdue:
            self._homes.forget_deadlines([seq for (seq,) in overdue])

    def next_deadline_in(self, now: int) -> int | None:
        row = self.tx.one("SELECT at FROM @deadlines ORDER BY at LIMIT 1")
        return None if row is None else max(row[0] - now, 0)

    def next_due_in(self, now: int) -> int | None:
        # A time that is no number comes behind all numbers in SQLite.
        row = self.tx.one(f"SELECT due_at FROM @tasks WHERE {IN_DELAYED} AND due_at < {2**62} ORDER BY due_at LIMIT 1")
        return None if row is None else max(row[0] - now, 0)
