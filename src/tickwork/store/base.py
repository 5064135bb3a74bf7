"""The Store contract. The docstrings here are the specification; `memory/` is its plainest form.

Every method is one atomic step, bounded by a limit and safe to send twice. Guards refuse by return value. The only
exceptions are `StoreUnavailable` (try again) and `StoreError` (do not). The store's clock decides; no caller's time is
ever compared. When it is set back, leases of tasks, members and locks keep the time that they had left. Durations are
integer milliseconds here. A store may be called from several event loops.

Data that this version cannot read (written by a newer one, or damaged) harms only itself, and no method raises because
of it. A claim that would have granted such a task hands it out as `Unreadable`, or puts it into the dead letters itself
if not even a lease can be given. Every list has what is left of it, with the reason in `last_error`. A schedule that
cannot be read is listed as stopped and does not fire; facts are listed as `log.unreadable`.
"""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

from tickwork.errors import StoreError
from tickwork.model.facts import Event
from tickwork.model.members import Leader, Worker
from tickwork.model.outcomes import Outcome
from tickwork.model.policy import Durability
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Lease, Record, Spec, Status
from tickwork.store.contact import Contact
from tickwork.store.hints import Hint

SUBMIT_MAX = 1000
PAGE_MAX = 1000


class NotPermitted(StoreError):
    """The user of this store lacks the right to do it."""


class Receipt(Struct, frozen=True, gc=False):
    """`created` (also when sent again with the same nonce), `exists` (the id is another's), `duplicate` (`other` holds
    the dedup key) or `orphan` (it depends on `other`, which is not there)."""

    id: str
    verdict: Literal["created", "exists", "duplicate", "orphan"]
    other: str = ""


class Claim(Struct, frozen=True):
    """A wish for work: at most `limit` tasks of these queues and types, leased for `lease_ttl`. A worker may have one
    claim a turn under way; the last nonce of a turn sent again gets the same batch. `node` names the process that the
    worker is part of and would go down with; without it the worker is a process of its own."""

    worker_id: str
    queues: tuple[str, ...]
    types: frozenset[str]
    limit: int
    lease_ttl: int
    nonce: str
    turn: int = 0
    node: str = ""

    @property
    def process(self) -> str:
        return self.node or self.worker_id


class Grant(Struct, frozen=True, gc=False):
    """A task that is now the claimer's to run."""

    spec: Spec
    lease: Lease
    attempt: int
    losses: int
    submitted_at: int

    @property
    def due_at(self) -> int:
        """The time for which it was submitted, its tick if a schedule has fired it."""
        spec = self.spec
        return spec.scheduled_at or spec.at or self.submitted_at + spec.delay


class Unreadable(Struct, frozen=True, gc=False):
    """A task that is now the claimer's, who cannot run it, as this version cannot read it: it is to be aborted."""

    lease: Lease
    why: str


class Claimed(Struct, frozen=True):
    """`next_due_in` is the time until another claim may find more: until the next delayed task of any queue is due, 0
    when this one could not look at all that is ready, None when there is nothing to wait for."""

    grants: list[Grant]
    next_due_in: int | None = None
    unreadable: list[Unreadable] = []


class Verdict(Struct, frozen=True, gc=False):
    """What became of an outcome: `done`, `already` (this very lease ended it before) or `lost` (refused)."""

    kind: Literal["done", "already", "lost"]
    status: Status | None = None


class Finished(Struct, frozen=True):
    verdicts: list[Verdict]
    claimed: Claimed | None = None


class OutboxEntry(Struct, frozen=True):
    """A task that has ended and that others wait for, or that a schedule fired. `fence` tells this end
    from the next one, if the task is retried before all were told; None when the task is gone."""

    id: str
    status: Status
    dependants: tuple[str, ...]
    schedule_id: str | None = None
    fence: int | None = None


class Reclaimed(Struct, frozen=True):
    ids: list[str]
    lost_workers: list[str]


class Heard(Struct, frozen=True):
    """What a beat is answered: who leads, and the living member that has this name already, if that is of another node;
    then the beat has changed nothing."""

    leader: Leader | None
    rival: Worker | None = None


class Advance(Struct, frozen=True):
    """A step of a schedule: its next tick, and what became of those before it."""

    next_at: int | None
    fired: str | None = None  # the task of the last tick that was run
    fire_at: int | None = None
    skipped: str = ""  # the task that had not ended yet
    missed: int = 0


class Query(Struct, frozen=True):
    """Which tasks to list."""

    status: Status | None = None
    type: str | None = None
    queue: str | None = None
    tags: dict[str, str] | None = None
    limit: int = 50
    cursor: str | None = None


class Pause(Struct, frozen=True):
    kind: Literal["queue", "type"]
    name: str
    at: int
    note: str = ""


class Stats(Struct, frozen=True):
    """Counts by status, ready tasks by (queue, band), and what was dropped from a full dead-letter queue."""

    statuses: dict[Status, int]
    ready: dict[tuple[str, int], int]
    parked: dict[tuple[str, str], int]  # (queue, type) passed over, waiting for a worker that may start it
    workers: int
    dropped: int


class Store(Protocol):
    """See the module's text. Methods are grouped as in the design: in, time, dispatch, running, out, outbox,
    operators, schedules, members, locks, log."""

    overlaps: bool
    """Whether it works on a call while the caller goes on: then a worker has two under way."""

    url: str

    contact: Contact
    """Told of outages by whoever meets one, and used by the store for what it has to report itself."""

    # --- life of the store object
    async def open(self) -> None:
        """Open files or connections; safe to call twice. Raises `StoreError` with a clear text when it cannot."""

    async def close(self) -> None: ...

    def sibling(self) -> Store:
        """A store for use from another thread; may be the same object."""

    def now(self) -> int:
        """The store's clock, for showing times; never for a decision that a transition should make."""

    def hint(self, topic: str) -> Hint:
        """Ask to be woken on a topic (one of `hints`, or a task id). Use as a context manager."""

    # --- in
    async def submit(self, specs: list[Spec], durability: Durability | None = None) -> list[Receipt]:
        """Create tasks in order; each gets its own receipt. A later one may depend on an earlier one. `durability` is
        what a receipt stands for, the store's own by default; one that it cannot give is a `StoreError`. A dedup key is
        held for its `dedup_ttl` from the submit on: 0 holds it for no time. A cancel or delete of its task frees it."""

    async def resolve(self, task_id: str, upstream: str, ok: bool, fence: int | None = None) -> bool:
        """`upstream` has ended. False when the task did not wait for it (any more), or when `upstream` has moved on
        since the end of that fence."""

    # --- time
    async def promote(self, limit: int) -> int | None:
        """Move what is due to the tail of its lane, in order of due time. Answers in how many milliseconds the next
        task is due: 0 when more is due than the limit, None when nothing is delayed."""

    # --- dispatch
    async def claim(self, want: Claim) -> Claimed:
        """Promote what is due, then take the first tasks of the strict bands; inside a band the queues in the order
        given, inside a queue front, side and main lane. A task whose type the claimer may not start (unknown to it,
        or paused) moves once to the side lane of its type and stays ready. Of tasks in a front lane that one more lost
        worker would set aside, a node gets one at a time, whichever of its workers asks: others are passed over while
        the last one that it took runs."""

    # --- running
    async def extend(self, leases: list[Lease], lease_ttl: int) -> list[Literal["held", "cancel", "lost"]]:
        """Renew. `cancel`: held, but asked to stop. `lost`: not the holder's any more."""

    async def note(self, lease: Lease, progress: float | None, text: str, lines: list[str]) -> bool:
        """Write progress and log lines; False when the lease is lost. Progress is that of one run: it is kept at an end
        of the task, but not for the next run."""

    # --- out
    async def finish(self, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        """End runs, each checked against its own lease, and take the next batch in the same step. All are looked up
        before the first is ended, and they end in the order given. Of too many dead letters the one that ended first is
        dropped."""

    async def reclaim(
        self, limit: int, gone: tuple[str, ...] = (), why: str = "", nodes: tuple[str, ...] = ()
    ) -> Reclaimed:
        """Take back tasks whose lease ran out, and all of the workers in `gone`, which the caller knows to be dead. Who
        gets back as many as its limit calls again: only then are the workers in `gone` counted as lost, and a leader
        among them deposed, so that nobody forgets the rest if the caller dies. `nodes`, one for each of them, are those
        that were seen dead: a worker that is of another node by now is left alone.
        A task whose worker is a member all the same was let go of, and counts no loss.
        Expired leases are left alone for one lease after the store was out of touch (see `rules.pulse`). The oldest
        lease goes first, ties by id; `lost_workers` is sorted."""

    # --- outbox
    async def outbox(self, limit: int) -> list[OutboxEntry]:
        """Ended tasks whose dependants or schedule have not been told of the end yet, oldest first."""

    async def clear_outbox(self, told: list[OutboxEntry]) -> None:
        """Strike out ends of which all were told. An entry for which somebody still waits stays, and so does one of a
        later end."""

    async def dependants(self, task_id: str, limit: int) -> list[str]:
        """The tasks that wait for this one now, sorted."""

    # --- operators
    async def cancel(self, task_id: str, force: bool, reason: str = "") -> Status | None:
        """The status found: a waiting task is cancelled, a running one flagged when `force`, else left. None: no such
        task."""

    async def run_now(self, task_id: str) -> Status | None:
        """Make a delayed task ready; answers the status found."""

    async def retry(self, task_id: str, only: Status | None = None) -> Status | None:
        """From any end (or `only` this one) back to ready, counters reset; answers the status found.
        A task that depends on others is blocked again until those that have not ended have; one that depends on a task
        that ended badly, or that is gone before it ever ran, is left as it is. A dependant that never ran keeps its
        time. The dedup key of what goes back is held again for its whole `dedup_ttl`, as from a submit; if another task
        holds it, that one keeps it, and this one goes on without."""

    async def delete(self, task_id: str, only: Status | None = None) -> Status | None:
        """Remove an ended task (`only` if this is its status); answers the status found."""

    async def prune(self, limit: int) -> int:
        """Remove ended tasks past their retention or their number, expired dedup keys, old locks, the log's excess.
        Tasks go in the order in which they ended, whatever their status, up to the first that ended after the retention
        limit, or further while there are too many. Those whose end is yet to be told (`outbox`) are passed over."""

    async def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None: ...

    async def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        """False when it was not paused."""

    async def paused(self) -> list[Pause]: ...

    async def get(self, task_id: str, waiter: Hint | None = None) -> Record | None:
        """`waiter` is raised when the task ends; who looks with it is told, and may be told all there is to know."""

    async def page(self, query: Query) -> tuple[list[Record], str | None]:
        """Records, and a cursor when more remain. Looks at no more than `PAGE_MAX` entries a call, so a page may be
        short or even empty. An end is listed by the order in which they ended, the newest first; a delayed status by
        time, the first one due first, ties in the order of submits; the others, and all together, in the store's own
        order, which is the newest first where it keeps the order of submits."""

    async def stats(self) -> Stats: ...

    async def audit(self) -> list[str]:
        """Everything that is not as it must be: each task in exactly one home, each lease with its task, ... It may
        need more rights on a server than work does; without them it raises `NotPermitted`."""

    async def mend(self) -> list[str]:
        """Put right what an audit finds, where it can be; answers what it found."""

    # --- schedules
    async def put_schedule(self, schedule: Schedule, if_changed: bool = False, create: bool = False) -> Schedule | None:
        """Create or replace; created_at, a pause and what happened so far are kept. `if_changed`: a definition equal to
        the stored one changes nothing, so that a restart does not move `next_at`. `create`: None when there is one."""

    async def drop_schedule(self, schedule_id: str) -> bool: ...

    async def get_schedule(self, schedule_id: str) -> Schedule | None: ...

    async def schedules(self) -> list[Schedule]: ...

    async def due_schedules(self, limit: int) -> tuple[list[Schedule], int | None]:
        """Enabled ones whose time has come, and how long until the next one is due."""

    async def advance(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...] = ()
    ) -> Advance | None:
        """Compare-and-set of `next_at`: None when it is not `seen` any more, and nothing is changed. Notes a fire, a
        skip, missed ticks. The tasks of `ticks` are created in the same step, so that none is created twice, whatever
        becomes of it: `fired` in the answer is one of them, or `skipped` names the task that holds their dedup key.
        A dependency that is not there has ended."""

    async def set_schedule(
        self,
        schedule_id: str,
        *,
        paused: bool | None = None,
        next_at: int | None = None,
        stopped: str | None = None,
    ) -> bool:
        """Pause, resume or stop; a resume gives the next tick. False when there is no such schedule."""

    async def report_run(
        self, schedule_id: str, task_id: str, status: Status, fence: int | None = None
    ) -> Schedule | None:
        """The outcome of a schedule's run, for show; answers the schedule. None, and nothing is changed, when there is
        no such schedule, or when the task has moved on since the end of that fence."""

    # --- members
    async def beat(self, worker: Worker, ttl: int | None = None) -> Heard:
        """Join or stay, for a lease or `ttl`. Refused while a member of that name lives that is of another node; one
        that lives is not lost, and its lease is not over."""

    async def leave(self, worker_id: str, node: str = "") -> None:
        """No member any more; with `node` only if it is that node's."""

    async def workers(self) -> list[Worker]: ...

    async def campaign(self, node: str, ttl: int) -> Leader:
        """Take or renew leadership if it is free or one's own; answers who leads. A new holder gets a new term."""

    async def leader(self) -> Leader | None:
        """Who leads now; only looks."""

    async def resign(self, node: str, term: int) -> bool:
        """Make room at once; True also when sent again, while nobody else has taken over. Told once."""

    # --- locks
    async def lock(self, name: str, owner: str, ttl: int) -> int | None:
        """Take a lock that is free or has run out, or renew one's own. Answers its fence: greater for every new holding
        of that name, also after an unlock, and the same while it is renewed. It is no smaller than the time in
        microseconds, so that it grows even over a failover that has forgotten the last ones. None: another has it."""

    async def extend_lock(self, name: str, owner: str, ttl: int) -> bool:
        """Renew what is one's own and has not run out."""

    async def unlock(self, name: str, owner: str) -> bool:
        """Free what is one's own; False when it was not, or has run out. True also when sent again within a minute,
        while nobody has taken it since."""

    async def locked(self, name: str) -> tuple[str, int] | None:
        """Owner and end; None when it is free or has run out."""

    # --- log
    async def events(self, after: int, limit: int, task_id: str | None = None) -> tuple[list[Event], int]:
        """Facts after that number, in order, and how many after it the log has dropped; at least so many, if the log
        has left numbers out since. Facts are numbered one by one, but a log that may have forgotten its last ones
        leaves out numbers up to the time, so that it gives none twice: a store on a server or a file that it has not
        worked with before. Each second since the epoch has 2^20 numbers."""

    async def last_event(self) -> int:
        """The number of the newest fact, or of the last one that was left out behind it; 0 for none."""
