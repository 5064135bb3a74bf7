"""The records, and the transition table that every store must follow.

Reading order for a newcomer: this file, `transitions.py`, `store/base.py`, `store/memory.py`, `worker.py`, `duties.py`.

Inside Tickwork every `*_at` is an int of milliseconds since the epoch by the store's clock; aware datetimes exist only
at the edge (`TaskInfo`). A `Spec` is what was asked and is written once; a `Record` is a spec and its progress. Records
that exist in great numbers hold no cycles and are kept out of the garbage collector's rounds (`gc=False`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct, field

from tickwork.backoff import Backoff
from tickwork.errors import ConfigError
from tickwork.texts import shown

T = TypeVar("T")

# What must have happened to a task before its submit is acknowledged: see `docs/durability.md`.
Durability = Literal["memory", "disk", "replicated"]
DURABILITIES: tuple[Durability, ...] = ("memory", "disk", "replicated")

# What a handler does when its node has not reached the store for a whole lease: see `docs/delivery.md`.
WhenCutOff = Literal["stop", "run_on"]
WHEN_CUT_OFF: tuple[WhenCutOff, ...] = ("stop", "run_on")


class Status(StrEnum):
    """Where a task is in its life. Each status has exactly one home in the store."""

    PENDING = "pending"  # waits for a time
    BLOCKED = "blocked"  # waits for other tasks
    READY = "ready"  # may be taken
    ASSIGNED = "assigned"  # given to one worker's inbox
    RUNNING = "running"
    RETRYING = "retrying"  # waits for its backoff
    SUCCESS = "success"
    FAILED = "failed"  # retries spent, dead letters off
    DEAD = "dead"  # retries spent, in the dead-letter queue
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in ENDS

    @classmethod
    def parse(cls, text: str) -> Status:
        """A status by name; `completed` is accepted for `success`."""
        try:
            return cls.SUCCESS if text == "completed" else cls(text)
        except ValueError:
            raise ConfigError(f"unknown status {shown(text)}; known are {', '.join(cls)}") from None


ENDS = frozenset({Status.SUCCESS, Status.FAILED, Status.DEAD, Status.CANCELLED})
DELAYED = frozenset({Status.PENDING, Status.RETRYING})


class Priority(IntEnum):
    """Any integer from 1 to 10 will do; these are the usual three, one a band."""

    LOW = 1
    NORMAL = 5
    HIGH = 10


class Band(IntEnum):
    """The three strict bands, in the order in which they are taken."""

    HIGH = 0
    NORMAL = 1
    LOW = 2


def band_of(priority: int) -> Band:
    if priority >= Priority.HIGH:
        return Band.HIGH
    return Band.NORMAL if priority >= Priority.NORMAL else Band.LOW


class Place(IntEnum):
    """Where in its band a ready task waits; lower is taken first."""

    FRONT = 0  # came back without blame: reclaimed, released, retried by hand
    SIDE = 1  # was passed over: no claimer may start its type now
    MAIN = 2


class Op(StrEnum):
    """What can happen to a task."""

    SUBMIT = "submit"
    RESOLVE = "resolve"  # a task it depends on has ended
    PROMOTE = "promote"  # its time has come
    RUN_NOW = "run_now"
    CLAIM = "claim"
    SUCCEED = "succeed"
    FAIL = "fail"  # with a retry to come
    ABORT = "abort"  # no (more) retries
    SNOOZE = "snooze"
    RELEASE = "release"  # given back unfinished at shutdown
    STOP = "stop"  # the handler ended because it was cancelled
    EXPIRE = "expire"  # the lease ran out, or its worker is known to be gone
    CANCEL = "cancel"
    FORCE_CANCEL = "force_cancel"
    RETRY = "retry"
    DELETE = "delete"
    PRUNE = "prune"  # retention is over


class Rule(NamedTuple):
    """From this status, this operation leads to one of these (None: the task is not there)."""

    source: Status | None
    op: Op
    targets: tuple[Status | None, ...]


def _rules() -> tuple[Rule, ...]:
    s, o = Status, Op
    waiting = (s.BLOCKED, s.PENDING, s.RETRYING, s.READY)
    ends = (s.SUCCESS, s.FAILED, s.DEAD, s.CANCELLED)
    # A task that was cancelled by force while it ran becomes `cancelled` by every exit but success.
    return (
        Rule(None, o.SUBMIT, (s.BLOCKED, s.PENDING, s.READY)),
        Rule(s.BLOCKED, o.RESOLVE, (s.BLOCKED, s.PENDING, s.READY, s.CANCELLED)),
        *(Rule(source, o.PROMOTE, (s.READY,)) for source in (s.PENDING, s.RETRYING)),
        *(Rule(source, o.RUN_NOW, (s.READY,)) for source in (s.PENDING, s.RETRYING)),
        Rule(s.READY, o.CLAIM, (s.RUNNING,)),
        Rule(s.RUNNING, o.SUCCEED, (s.SUCCESS,)),
        Rule(s.RUNNING, o.FAIL, (s.RETRYING, s.CANCELLED)),
        Rule(s.RUNNING, o.ABORT, (s.DEAD, s.FAILED, s.CANCELLED)),
        Rule(s.RUNNING, o.SNOOZE, (s.PENDING, s.CANCELLED)),
        Rule(s.RUNNING, o.RELEASE, (s.READY, s.CANCELLED)),
        Rule(s.RUNNING, o.STOP, (s.CANCELLED,)),
        Rule(s.RUNNING, o.EXPIRE, (s.READY, s.DEAD, s.FAILED, s.CANCELLED)),
        Rule(s.RUNNING, o.FORCE_CANCEL, (s.RUNNING,)),
        *(Rule(source, op, (s.CANCELLED,)) for source in waiting for op in (o.CANCEL, o.FORCE_CANCEL)),
        *(Rule(source, o.RETRY, (s.READY, s.BLOCKED, s.PENDING)) for source in ends),
        *(Rule(source, op, (None,)) for source in ends for op in (o.DELETE, o.PRUNE)),
    )


TABLE = _rules()
"""The whole life of a task. Contract tests and `docs/statuses.md` are made from it."""


class Spec(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What was asked: written once at submit, never changed."""

    id: str
    type: str
    nonce: str  # tells a submit sent twice from another one with the same id
    queue: str = "default"
    priority: int = Priority.NORMAL
    payload: bytes = b"null"
    serializer: str = "json"
    at: int | None = None  # absolute due time; else `delay` counts from the submit
    delay: int = 0  # milliseconds
    max_retry: int | None = None  # None, as for the next two: what the handler says where it runs
    timeout: float | None = None  # seconds, 0 = none
    retry: Backoff | None = None
    dedup_key: str | None = None
    dedup_ttl: int = 0  # milliseconds
    key: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    executor: str | None = None
    target: str | None = None
    depends_on: tuple[str, ...] = ()
    run_after: Literal["success", "end"] = "success"  # `end`: a failed dependency does not cancel it
    schedule_id: str | None = None
    scheduled_at: int | None = None  # the tick of its schedule

    @property
    def band(self) -> Band:
        return band_of(self.priority)


class Lease(Struct, frozen=True, gc=False):
    """Proof of holding a task: every write by a worker presents it. `fence` only grows, `nonce` names the claim."""

    id: str
    fence: int
    nonce: str


# What stands in the place of a task that was written by a newer version, or damaged.
CANNOT_READ = "this version cannot read it"
UNKNOWN = "?"  # a type or a queue of which not even the name is left


class Record(Struct, kw_only=True, gc=False):
    """A spec and its progress. `status` is the one truth about where it is; the store's indexes follow it."""

    spec: Spec
    seq: int  # submit order
    status: Status = Status.READY
    submitted_at: int = 0
    due_at: int = 0
    place: Place = Place.MAIN
    position: int = 0  # order inside its lane, or among all that ended
    attempt: int = 0  # runs that may fail
    losses: int = 0  # workers that vanished under it
    fence: int = 0
    nonce: str = ""
    worker_id: str | None = None
    lease_until: int = 0
    started_at: int | None = None
    finished_at: int | None = None
    cancel: bool = False  # asked to stop while it runs
    last_error: str | None = None
    code: int = 0
    message: str = ""
    result: bytes | None = None
    execution_time: float | None = None  # seconds, by the worker's own monotonic clock
    progress: float | None = None
    progress_note: str = ""
    log: list[str] = field(default_factory=list)  # its last lines
    waiting: list[str] = field(default_factory=list)  # dependencies that have not ended
    unreadable: str = ""  # never stored: why this version cannot read it; only what is known of it is here then

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def lease(self) -> Lease:
        return Lease(self.spec.id, self.fence, self.nonce)

    @property
    def retry_count(self) -> int:
        """Failed attempts that were, or will be, followed by another one."""
        before_run = self.status in DELAYED or self.status in (Status.READY, Status.BLOCKED)
        return self.attempt if before_run else max(self.attempt - 1, 0)


class Succeeded(Struct, frozen=True, gc=False, tag=True):
    """The handler returned; `result` is its encoded value."""

    lease: Lease
    result: bytes | None = None
    code: int = 0
    message: str = ""
    duration: float = 0.0


class Failed(Struct, frozen=True, gc=False, tag=True):
    """The attempt failed and another follows in `retry_in` milliseconds."""

    lease: Lease
    error: str
    retry_in: int
    duration: float = 0.0


class Aborted(Struct, frozen=True, gc=False, tag=True):
    """The attempt failed for good: retries are spent, or it makes no sense to try again."""

    lease: Lease
    error: str
    duration: float = 0.0


class Snoozed(Struct, frozen=True, gc=False, tag=True):
    """The handler wants to run later; the attempt is given back. `at` is absolute, else `delay` ms from now."""

    lease: Lease
    at: int | None = None
    delay: int = 0


class Released(Struct, frozen=True, gc=False, tag=True):
    """Given back unfinished, without blame: it starts next, wherever there is a free slot."""

    lease: Lease


class Stopped(Struct, frozen=True, gc=False, tag=True):
    """The handler ended because the task was cancelled."""

    lease: Lease
    duration: float = 0.0


Outcome = Succeeded | Failed | Aborted | Snoozed | Released | Stopped


class Policy(Struct, frozen=True, kw_only=True):
    """What the transitions of one node go by."""

    dlq: bool = True
    dlq_max: int = 10_000
    max_losses: int = 3
    dedup: bool = True
    lease_ttl: int = 30_000
    renew_interval: int = 10_000
    retention: int = 604_800_000
    retention_max: int = 1_000_000
    events: bool = True
    events_max: int = 100_000
    log_lines_max: int = 200


class Overlap(StrEnum):
    """When a tick comes and the last run has not ended."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"


class Misfire(StrEnum):
    """When ticks were missed because no node was up."""

    LATEST = "latest"  # one run for all that were missed
    SKIP = "skip"
    ALL = "all"  # each of them, up to a cap


class Schedule(Struct, frozen=True, kw_only=True):
    """A recurring definition. Its runs are tasks named `<schedule>@<fire ms>`: a tick exists once, whoever fires it."""

    id: str
    name: str = ""
    cron: str | None = None  # none: triggered by hand only
    timezone: str = "UTC"
    dst: str = "once"
    task: Spec
    enabled: bool = True
    overlap: Overlap = Overlap.SKIP
    misfire: Misfire = Misfire.LATEST
    misfire_grace: int = 3_600_000
    misfire_cap: int = 100
    on_exhausted: Literal["stop", "continue"] = "continue"
    next_at: int | None = None
    created_at: int = 0
    updated_at: int = 0
    last_fire_at: int | None = None
    last_task_id: str | None = None
    last_status: str = ""
    stopped: str = ""  # why it stopped by itself
    paused: bool = False  # by hand; `enabled` is what its definition says

    @property
    def active(self) -> bool:
        return self.enabled and not self.paused and not self.stopped

    @property
    def unreadable(self) -> bool:
        """It stands for one that this version cannot read; `stopped` says why."""
        return self.task.type == UNKNOWN


class Worker(Struct, frozen=True, kw_only=True):
    """A member: one pool of slots in one process."""

    id: str
    node: str = ""
    host: str = ""
    pid: int = 0
    pid_started: str = ""
    address: str = ""
    queues: tuple[str, ...] = ("default",)
    task_types: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    weight: int = 1
    capacity: int = 10
    running: int = 0
    leaked: int = 0
    started_at: int = 0
    beat_at: int = 0
    expires_at: int = 0
    lost_at: int | None = None

    @property
    def status(self) -> str:
        """`idle` or `busy` (both are online), or `offline`."""
        if self.lost_at is not None:
            return "offline"
        return "busy" if self.running >= self.capacity else "idle"


class Leader(Struct, frozen=True):
    """Who leads, in which term, until when by the store's clock, and for how long at a time."""

    id: str
    term: int
    until: int
    ttl: int


class TaskResult(Struct, frozen=True):
    """How a task ended. `code` is 0 for success, 1 for failed, 2 for cancelled; `data` is what the handler returned.

    A handler may return one itself, to say a code and a message of its own: that is a success all the same.
    """

    FAILED: ClassVar[int] = 1
    CANCELLED: ClassVar[int] = 2

    code: int = 0
    message: str = ""
    data: Any = None


class TaskInfo(Struct, frozen=True, kw_only=True):
    """A task as users see it."""

    id: str
    type: str
    queue: str
    priority: int
    payload: Any
    status: Status
    attempt: int
    retry_count: int
    max_retry: int | None
    losses: int
    worker_id: str | None
    schedule_id: str | None
    submitted_at: datetime
    scheduled_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    last_error: str | None
    execution_time: float | None
    result: TaskResult | None
    tags: dict[str, str]
    context: dict[str, Any]
    progress: float | None = None
    progress_note: str = ""
    log: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    waiting_for: tuple[str, ...] = ()
    key: str | None = None
    cancelling: bool = False
    timeout: float | None = None  # seconds; None, as for the next: what the handler says where it runs
    retry: Backoff | None = None
    dedup_key: str | None = None
    dedup_ttl: float | None = None  # seconds
    serializer: str = "json"
    executor: str = "local"


class QueueStats(Struct, frozen=True, kw_only=True):
    delayed_count: int = 0
    high_count: int = 0
    normal_count: int = 0
    low_count: int = 0
    running_count: int = 0
    worker_count: int = 0
    dlq_count: int = 0


class SchedulerStatus(Struct, frozen=True, kw_only=True):
    scheduler_id: str
    namespace: str
    store: str
    running: bool
    is_leader: bool
    leader_id: str | None
    worker_count: int
    tasks: dict[str, int]
    queues: QueueStats
    dropped_dead_letters: int = 0


class Page(Struct, Generic[T], frozen=True):
    """A bounded piece of a list; `cursor` asks for the next one and is None at the end."""

    items: list[T]
    cursor: str | None = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Task(Struct, frozen=True, kw_only=True):
    """A submission as a record, for `Scheduler.submit_task`."""

    id: str | None = None
    type: str
    payload: Any = None
    queue: str | None = None
    priority: int | None = None
    schedule_at: datetime | None = None
    delay: float | None = None
    cron: str | None = None
    timezone: str | None = None
    max_retry: int | None = None
    timeout: float | None = None
    retry: Backoff | None = None
    dedup_key: str | None = None
    dedup_ttl: float | None = None
    key: str | None = None
    tags: dict[str, str] | None = None
    context: dict[str, Any] | None = None
    serializer: str | None = None
    executor: str | None = None
    target: str | None = None
    depends_on: tuple[str, ...] = ()
    durability: Durability | None = None
    if_exists: Literal["raise", "return"] | None = None


def to_millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


# A day within the calendar's ends, so that such a time can still be shown in any zone.
_FIRST, _LAST = to_millis(datetime(1, 1, 2, tzinfo=UTC)), to_millis(datetime(9999, 12, 30, tzinfo=UTC))


def to_datetime(at: int) -> datetime:
    """Times before and after the calendar become the first and the last that can be shown."""
    return datetime.fromtimestamp(min(max(at, _FIRST), _LAST) / 1000, UTC)
