"""A task: what was asked, and how far it is.

Reading order for a newcomer: this file, `table.py`, `transitions.py`, then `store/contract/` and `store/memory/`.

Inside Tickwork every `*_at` is an int of milliseconds since the epoch by the store's clock; aware datetimes exist only
at the edge (`info.py`). A `Spec` is what was asked and is written once; a `Record` is a spec and its progress. Records
that exist in great numbers hold no cycles and are kept out of the garbage collector's rounds (`gc=False`).
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any, Literal

from msgspec import Struct, field

from tickwork.backoff import Backoff
from tickwork.errors import ConfigError
from tickwork.texts import shown


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
WAITING = frozenset({Status.READY, Status.ASSIGNED})  # for a worker
HELD = frozenset({Status.RUNNING, Status.ASSIGNED})  # by one worker, for a time
MOVABLE = DELAYED | WAITING  # to another time
UNSTARTED = MOVABLE | {Status.BLOCKED}  # they wait for whatever
MAY_EXPIRE = WAITING | {Status.BLOCKED, Status.PENDING}  # if it has never started


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
    FAIR = 3  # of a fair queue: by virtual time, behind those that came to the queue while it was not fair


class ParkReason(StrEnum):
    """Why a ready task was passed over, and waits in a side lane until that is over; or why one that was about to run
    was held, and waits for its time."""

    TYPE_UNKNOWN = "type_unknown"  # the claimer has no handler for its type
    TYPE_PAUSED = "type_paused"
    LIMITED = "limited"  # as many run, or have begun, as a limit allows
    BREAKER_OPEN = "breaker_open"
    SWITCHED_OFF = "switched_off"
    LABELS_MISSING = "labels_missing"  # the claimer lacks labels that it requires, or is not the worker that it names


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
    unique: Literal["queued", "unfinished"] | None = None  # holds its dedup key as long as that, and not for a TTL
    key: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    executor: str | None = None
    target: str | None = None  # the one worker that may run it; with `executor`, what that executor is to call
    requires: dict[str, str] = field(default_factory=dict)  # labels that a worker must have
    depends_on: tuple[str, ...] = ()
    run_after: Literal["success", "end"] = "success"  # `end`: a failed dependency does not cancel it
    schedule_id: str | None = None
    scheduled_at: int | None = None  # the tick of its schedule
    expires: int | None = None  # milliseconds after its due time by which it must have started
    expires_at: int | None = None  # the same as an absolute time
    retention: int | None = None  # milliseconds for which it is kept after its end; None: as the policy says
    workflow: str | None = None  # the task whose plan it is part of
    fair: int = 0  # of a fair queue: how far it moves its key on in virtual time, the less the larger the key's share

    @property
    def band(self) -> Band:
        return band_of(self.priority)

    @property
    def needs(self) -> str:
        """What a worker needs to run it, besides a handler of its type: `gpu=a100,zone=eu,@worker-1`."""
        if not self.requires and self.target is None:
            return ""
        needs = [f"{label}={value}" for label, value in sorted(self.requires.items())]
        if self.target is not None and self.executor in (None, "local", "remote"):
            needs.append(f"@{self.target}")
        return ",".join(needs)

    @property
    def kind(self) -> str:
        """Its type, and what else a worker needs to run it: tasks of one kind may be run by the same workers."""
        needs = self.needs
        return f"{self.type} {needs}" if needs else self.type

    def deadline(self, due_at: int) -> int | None:
        """When a task that is due at that time, and has never started, ends without a run."""
        return self.expires_at if self.expires is None else due_at + self.expires


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
    parked: ParkReason | None = None  # set while it waits in a side lane, or is held
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
        before_run = self.status in DELAYED or self.status in (Status.READY, Status.ASSIGNED, Status.BLOCKED)
        return self.attempt if before_run else max(self.attempt - 1, 0)


class Attempt(Struct, frozen=True, gc=False):
    """A run that is over, while its task went on. The last run of a task is in its record."""

    number: int
    started_at: int
    finished_at: int
    worker_id: str
    end: str  # `failed`, `snoozed`, `lost`, or the status that a retry by hand found
    duration: float | None = None  # seconds, by the worker's own monotonic clock
    error: str | None = None


class History(Struct, frozen=True):
    """What is kept beside the record of a task: its earlier runs and its last log lines, oldest first."""

    attempts: list[Attempt] = []
    lines: list[str] = []
