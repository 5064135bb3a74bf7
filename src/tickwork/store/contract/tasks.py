"""Tasks on their way: submitted, promoted, claimed, run, finished, taken back, and the outbox of their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

from tickwork.model.outcomes import Outcome
from tickwork.model.policy import Durability
from tickwork.model.tasks import Lease, Spec, Status
from tickwork.store.contract.assigning import Aside, Assigned, Assignment, Look
from tickwork.store.hints import Hint

SUBMIT_MAX = 1000  # specs in one call of `submit`
MANY_MAX = 1000  # ids in one call of an operator's method, edges in one call of `resolve`


class Receipt(Struct, frozen=True, gc=False):
    """`created` (also when sent again with the same nonce), `exists` (another task has this id), `duplicate` (`other`
    holds the dedup key) or `orphan` (it depends on `other`, which is not there)."""

    id: str
    verdict: Literal["created", "exists", "duplicate", "orphan"]
    other: str = ""


# The answer to the renewal of a lease: see `Tasks.extend`.
Extended = Literal["held", "cancel", "lost", "unknown"]


class Claim(Struct, frozen=True):
    """A worker asks for at most `limit` tasks of these queues and types, leased for `lease_ttl`.

    A worker may have one claim for each `turn` under way. A claim that is sent again with the last nonce of its turn
    gets the same batch again. `node` names the process that the worker is part of: if that process ends, so does the
    worker. Without `node` the worker is a process of its own.

    `labels` are those of the worker. `inboxes` are the workers whose assigned tasks it takes first: its own id, or the
    ids of remote workers for which it asks. A task from an inbox is leased in the name of the inbox's owner. `assigned`
    are the queues whose tasks come by its inbox: they are not looked at, but if slots stay free while such a queue has
    ready tasks, whoever assigns them is woken (with several partitions: if this claim comes with outcomes).

    `front_only` are types (`type:mail`) and queues (`queue:orders`) of which it wants only those tasks that are in the
    front of their lanes, as those are that were held at a gate and may go on. Others of such a type are set aside as
    limited; other lanes of such a queue are not looked at.
    """

    worker_id: str
    queues: tuple[str, ...]
    types: frozenset[str]
    limit: int
    lease_ttl: int
    nonce: str
    turn: int = 0
    node: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    inboxes: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()
    front_only: frozenset[str] = frozenset()

    @property
    def process(self) -> str:
        return self.node or self.worker_id


class Grant(Struct, frozen=True, gc=False):
    """A task that the claimer may run, until its lease ends."""

    spec: Spec
    lease: Lease
    attempt: int
    losses: int
    submitted_at: int
    worker_id: str = ""  # in whose name it is leased
    ready_at: int | None = None  # since when it could have run; None after a wait whose end is not kept

    @property
    def due_at(self) -> int:
        """The time for which it was submitted; its tick, if a schedule fired it."""
        spec = self.spec
        return spec.scheduled_at or spec.at or self.submitted_at + spec.delay


class Unreadable(Struct, frozen=True, gc=False):
    """A task that was granted although this version cannot read it. The claimer has to abort it."""

    lease: Lease
    why: str


class Claimed(Struct, frozen=True):
    """The answer to a claim. `next_due_in` is the time until another claim may find more: until the next delayed task
    of any queue is due (deadlines do not count); 0 when this claim could not look at all ready tasks; None when nothing
    is delayed, or when another worker was told of that time in the last seconds, and will come for it."""

    grants: list[Grant]
    next_due_in: int | None = None
    unreadable: list[Unreadable] = []


class Verdict(Struct, frozen=True, gc=False):
    """The answer to an outcome: `done`, `already` (this very lease ended the task before), `lost` (refused, since the
    lease is not the current one) or `later` (its partition cannot be reached now: hand the outcome in again)."""

    kind: Literal["done", "already", "lost", "later"]
    status: Status | None = None


class Finished(Struct, frozen=True):
    """The verdicts on the outcomes, in their order. `incomplete`: some of them are `later`."""

    verdicts: list[Verdict]
    claimed: Claimed | None = None
    incomplete: bool = False


class OutboxEntry(Struct, frozen=True):
    """A task that has ended while other tasks wait for it, or that a schedule fired. `fence` identifies this end: a
    task that is retried and ends again has another one. None when the task is gone."""

    id: str
    status: Status
    dependants: tuple[str, ...]
    schedule_id: str | None = None
    fence: int | None = None


class Edge(Struct, frozen=True, gc=False):
    """A task depends on `upstream`, which has ended, with success if `ok`. `fence` is that of this end, or None for any
    end."""

    dependant: str
    upstream: str
    ok: bool
    fence: int | None = None


class Reclaimed(Struct, frozen=True):
    """The ids of the tasks that were taken back, and the workers that are lost as of now."""

    ids: list[str]
    lost_workers: list[str]


class Tasks(Protocol):
    async def submit(
        self, specs: list[Spec], durability: Durability | None = None, waiter: Hint | None = None
    ) -> list[Receipt]:
        """Create tasks in order; each gets its own receipt. A task may depend on an earlier one of the same call.

        `waiter` is for a call with one spec, and is a hint on the id of that task: if the task is created, the hint is
        raised when it ends, as with `Queries.get`, and its `announced` says so.

        `durability` says what a receipt stands for; the default is the store's own. One that the store cannot give is a
        `StoreError`. A dedup key is held for its `dedup_ttl`, counted from the submit; 0 holds it for no time. A cancel
        or a delete of the task frees its key. With `unique` it is held without a TTL: `queued` until the task starts,
        and again while it waits for another attempt; `unfinished` until it ends in whatever way.
        """

    async def promote(self, limit: int) -> int | None:
        """Cancel tasks whose deadline is over (`Spec.deadline`), in the order of their deadlines, unless they have
        started once or were retried by hand. Then move due tasks to the tail of their lanes, in order of their due
        times; ties in both in the order of submits. Each is done to at most `limit` tasks.

        Answers in how many milliseconds the next task is due, or the next deadline is over: 0 when there are more than
        `limit` of either now, None when no task is delayed or has a deadline.
        """

    async def claim(self, claim: Claim) -> Claimed:
        """Do what `promote` does, then grant the first tasks: by band, within a band by the order of the queues in the
        claim, within a queue from the front lane, then the side lanes, then the main lane, then the fair lane.

        A task with `Spec.fair` waits in the fair lane of its queue and band instead of the main lane. Its turn there is
        a virtual time: `max(time of the lane, last turn of its key) + Spec.fair`. The time of the lane is the largest
        turn of a task that was claimed or assigned from it; tasks without a key have the key "". The smallest turn is
        taken first, ties in the order of submits. A lane in which no task waits has forgotten all this. See
        `rules.turn_of`. What is kept of keys whose last turn is not after the time of their lane goes, as far as
        needed with `Operators.prune`. Each partition is fair by itself.

        Before all that it takes what is in its inboxes, by band and then by the time since when the tasks are ready, or
        assigned if they were in a fair lane. A task there whose queue or type is paused goes back to the front lane.

        A task that the claimer cannot start is moved once to the side lane of its kind and stays ready; its record says
        why (`ParkReason`): the type is paused, the claimer has no handler for it, or lacks what the task needs (see
        `Spec.needs`). A task whose deadline is over is never granted. A task in a front lane that would be dead after
        one more lost worker is granted one at a time to a node, whichever of its workers asks; while it runs, the
        others are skipped.
        """

    async def assign(
        self, assignments: Sequence[Assignment], hold: int, aside: Sequence[Aside] = (), look: Look | None = None
    ) -> Assigned:
        """Move ready tasks to the inboxes of workers, each for `hold` milliseconds; then others to their side lanes,
        unless they are in one; then look. At most `MANY_MAX` of both together.

        A task that is not ready is not assigned, unless this worker has it already. Nobody checks that there is such a
        worker: a task that is not claimed within the hold is taken back by `reclaim`.
        """

    async def unassign(self, workers: Sequence[str], limit: int) -> list[str]:
        """Take at most `limit` assigned tasks out of the inboxes of these workers, back to the front lanes. Answers
        their ids; a caller that gets `limit` calls again."""

    async def extend(self, leases: list[Lease], lease_ttl: int) -> list[Extended]:
        """Renew leases. `cancel`: renewed, but somebody asks the handler to stop. `lost`: it has another holder now.
        `unknown`: its partition cannot be reached now, so it was not renewed."""

    async def note(self, lease: Lease, progress: float | None, text: str, lines: list[str]) -> bool:
        """Write progress and log lines; False when the lease is lost. Progress belongs to one run: it is kept when the
        task ends, but not for its next run. The log lines of all runs are kept together, beside the record: the last
        `Policy.log_lines_max` of them."""

    async def finish(self, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        """End runs, each checked against its own lease, and claim the next batch in the same step.

        A run after which the task goes on is kept in its history: one that failed, that was snoozed, or whose worker
        was lost (see `reclaim`; also if the task has ended with it), and the last one before a retry by hand, unless
        that is kept already. The last `Policy.attempts_max` are kept.

        All tasks are looked up before the first is ended, and they end in the order given. When there are too many dead
        letters, the one that ended first is dropped.
        """

    async def reclaim(
        self, limit: int, gone: tuple[str, ...] = (), why: str = "", nodes: tuple[str, ...] = ()
    ) -> Reclaimed:
        """Take back tasks whose lease has run out, and all tasks of the workers in `gone`, which the caller knows to be
        dead. The oldest lease goes first, ties by id; `lost_workers` is sorted.

        A caller that gets `limit` ids back calls again. Only a call that gets fewer counts the workers in `gone` as
        lost and deposes a leader among them; if the caller dies before, somebody else finds the rest. `nodes` has one
        entry for each worker in `gone`: the node that was seen dead. A worker that belongs to another node by now is
        left alone.

        Assigned tasks whose hold has run out, and those in the inboxes of the workers in `gone`, are ready again, in
        the front lane; they come after the running ones in the answer, and count towards `limit` too.

        A task whose worker is still a member lost only its lease, and this counts as no loss. Leases that ran out are
        left alone for the length of one lease after the store could not be reached (see `rules.pulse`).
        """

    async def resolve(self, edges: Sequence[Edge]) -> list[bool | None]:
        """Tell tasks that those on which they depend have ended: at most `MANY_MAX` edges, one after the other, with an
        answer for each. False when the task does not wait for it (any more), or when `upstream` has been retried since
        the end with that fence.

        A store that keeps tasks in several places answers None where one of these could not be reached: whether the
        task was told is unknown then, and it has to be told again.
        """

    async def outbox(self, limit: int) -> list[OutboxEntry]:
        """Ended tasks whose dependants or schedule have not been told yet, oldest first. Together they name at most
        `MANY_MAX` dependants; a caller that gets so many calls again once it has told these."""

    async def clear_outbox(self, told: list[OutboxEntry]) -> None:
        """Remove entries whose dependants and schedules have all been told. An entry for which a task still waits
        stays, and so does one of a later end."""


class BlockingTasks(Tasks, Protocol):
    """The `tasks` of a store that threads without an event loop can reach (`Capabilities.blocking_submits`)."""

    def submit_blocking(
        self, spec: Spec, durability: Durability | None = None, seconds: float | None = None
    ) -> Receipt | None:
        """Create one task, as `submit` does, in the thread that calls, and in no more than about so many seconds.

        None: it cannot be done this way now, or nobody knows whether it was done. Whoever gets that calls `submit` with
        the same spec, so a store may leave to it whatever is not simple: options, refusals, errors, outages. May be
        called in many threads at once. An exception that is raised in the thread, such as KeyboardInterrupt, does no
        harm to later calls.
        """


STANDING_TURN = 2  # the turn of a worker's standing claim


class StandingTasks(Tasks, Protocol):
    """The `tasks` of a store in which a claim can stand (`Capabilities.standing_claims`): it waits in the store until
    there is work, so that a task starts without the worker being woken first to ask for it."""

    async def stand(self, claim: Claim, seconds: float) -> Claimed | None:
        """Do what `claim` does as soon as there may be work for this claim, after `seconds`, or when it is recalled.

        None: refused, since the worker is no member (any more), another process is member in its name, or a later claim
        of its turn was answered before; the wake-up goes to another worker. `StoreUnavailable`: the answer is lost, or
        no claim can stand now. Whoever gets that makes the same claim by `claim`, for no task more (`limit=0`), before
        the next one of this turn: it answers what this one may have been granted.
        """

    async def recall(self, claim: Claim) -> None:
        """Have a standing claim answered now, with what it has been granted so far."""
