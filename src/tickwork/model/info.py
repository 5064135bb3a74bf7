"""What users hand in and are shown: aware datetimes, decoded payloads and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Generic, Literal, TypeVar

from msgspec import UNSET, Struct

from tickwork.backoff import Backoff
from tickwork.errors import TickworkError
from tickwork.model.facts import Fact
from tickwork.model.members import WorkerStatus
from tickwork.model.policy import Durability
from tickwork.model.tasks import Status
from tickwork.payload.codec import Serializer

T = TypeVar("T")


class TaskResult(Struct, frozen=True):
    """How a task ended. `code` is 0 for success, 1 for failed, 2 for cancelled; `data` is what the handler returned.

    A handler may return one itself, to say a code and a message of its own: that is a success all the same.
    """

    FAILED: ClassVar[int] = 1
    CANCELLED: ClassVar[int] = 2

    code: int = 0
    message: str = ""
    data: Any = None


class Steered(Struct, frozen=True):
    """What became of one task that was to be cancelled, retried, run now or deleted together with others. `status` is
    the one that was found, None if there was no such task. `error` is what a call for this task alone would have
    raised; None if it was done. `brought_back`: ids of the tasks that came back with a retried one."""

    id: str
    status: Status | None = None
    error: TickworkError | None = None
    brought_back: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        return self.error is None


class AttemptInfo(Struct, frozen=True, kw_only=True):
    """A run of a task before its last one. `end` is `failed`, `snoozed` or `lost`, or the status in which a retry by
    hand found the task."""

    number: int
    started_at: datetime
    finished_at: datetime
    worker_id: str
    end: str
    duration: float | None = None  # seconds, by the worker's own clock
    error: str | None = None


class TaskInfo(Struct, frozen=True, kw_only=True):
    """A task as users see it. The payload is None if there is none, and if it is null: only the handler can tell these
    apart, whose parameters are at their defaults without a payload."""

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
    unique: Literal["queued", "unfinished"] | None = None
    expires_at: datetime | None = None
    retention: float | None = None  # seconds; None: as the scheduler is set
    attempts: tuple[AttemptInfo, ...] = ()  # only of a task that was asked for alone, as is `log`
    serializer: str = "json"
    executor: str = "local"
    target: str | None = None
    requires: dict[str, str] = {}
    held_by: Literal["limit", "breaker", "switch"] | None = None  # while it waits for that, and not for its time


class TaskUpdate(Struct, frozen=True, kw_only=True):
    """How a task is at a moment, for those who follow it. `lines` are those of its log that came since the update
    before; `missed` says that more came than are kept of a task."""

    id: str
    at: datetime
    status: Status
    attempt: int
    progress: float | None = None
    progress_note: str = ""
    lines: tuple[str, ...] = ()
    missed: bool = False


class Reason(StrEnum):
    """Why a task is not running."""

    NOT_DUE = "not_due"  # its time has not come
    RETRY_NOT_DUE = "retry_not_due"  # it waits for its next attempt
    BLOCKED = "blocked"  # it waits for other tasks
    QUEUE_PAUSED = "queue_paused"
    TYPE_PAUSED = "type_paused"
    SWITCHED_OFF = "switched_off"  # somebody has switched off its type, its key or a tag of it
    LIMIT_FULL = "limit_full"  # as many run at a time as a limit allows
    RATE_SPENT = "rate_spent"  # as many have begun as a limit allows
    BREAKER_OPEN = "breaker_open"  # after failures, or by hand
    NO_WORKER = "no_worker"  # no worker is up
    QUEUE_UNSERVED = "queue_unserved"  # no worker that is up serves its queue
    TYPE_UNKNOWN = "type_unknown"  # no worker that is up on its queue knows its type
    LABELS_MISSING = "labels_missing"  # no worker that knows its type has the labels that it requires, or is its target
    ASSIGNED = "assigned"  # the leader has given it to a worker, which has not taken it yet
    WORKERS_BUSY = "workers_busy"  # all workers that may run it have no free slot
    WORKERS_DRAINING = "workers_draining"  # all workers that may run it take no more tasks
    IN_LINE = "in_line"  # others are before it
    NEXT = "next"  # it will be taken next
    RUNNING = "running"
    STOPPING = "stopping"  # it runs, and was asked to stop
    WORKER_LOST = "worker_lost"  # its worker is lost; it is taken back when its lease has ended
    ENDED = "ended"


class Explanation(Struct, frozen=True):
    """Why a task is not running. `text` is a sentence for people; programs look at `reason`.

    `until` is when that will be over, where it is known: when a rate allows the next run, of whichever task; when the
    lease of a running one ends, unless it is renewed. `ahead` counts the ready tasks of its queue that are taken before
    it, up to 1,000; None where that does not matter. `blockers` names what is in its way: tasks, a paused queue or
    type, workers, or a limit, breaker or switch by its name there (`type:mail`).
    """

    reason: Reason
    text: str
    until: datetime | None = None
    ahead: int | None = None
    blockers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


class WorkerInfo(Struct, frozen=True, kw_only=True):
    """A worker as users see it: one pool of slots in one process.

    It is `offline` from `lost_at` on, when it has given no sign of life until `expires_at`. `running` counts the tasks
    that are leased to it now; `leaked` counts handlers that could not be stopped. `order` is what it was asked to do,
    such as `capacity=20 drain`, and `follows` what of it it does already. `cpu` (1.0 is one core), `memory` (resident
    bytes) and `loop_lag` (seconds) are those of its process at its last heartbeat, 0 where they are not known.
    """

    id: str
    status: WorkerStatus
    node: str
    host: str
    pid: int
    address: str
    version: str = ""
    queues: tuple[str, ...]
    task_types: tuple[str, ...]
    labels: dict[str, str]
    weight: int
    capacity: int
    running: int
    leaked: int
    cpu: float = 0.0
    memory: int = 0
    loop_lag: float = 0.0
    started_at: datetime
    beat_at: datetime
    expires_at: datetime
    lost_at: datetime | None = None
    order: str = ""
    follows: str = ""


class RemoteWorker(Struct, frozen=True, kw_only=True):
    """A worker outside of this process, for `Scheduler.register_worker`."""

    id: str
    address: str = ""
    queues: tuple[str, ...] = ("default",)
    task_types: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    weight: int = 1
    capacity: int = 10


class Event(Struct, frozen=True, kw_only=True):
    """One fact of the log. `id` is the task's, or that of the worker, leader, schedule, queue or type it is about.

    `kind` is a `Fact`; of a fact that this version does not know it is the text that a newer one has written.
    """

    seq: int
    at: datetime
    kind: Fact | str
    id: str
    type: str = ""
    queue: str = ""
    worker_id: str = ""
    attempt: int = 0
    duration: float = 0.0  # seconds
    detail: str = ""


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
    """A submission as a record, for `submit_task` and `submit_tasks`: the same options as those of `submit`."""

    id: str | None = None
    type: str
    payload: Any = UNSET  # none, which is not the same as None
    queue: str | None = None
    priority: int | None = None
    schedule_at: datetime | None = None
    delay: float | timedelta | None = None
    cron: str | None = None
    timezone: str | None = None
    max_retry: int | None = None
    timeout: float | timedelta | None = None
    retry: Backoff | None = None
    dedup_key: str | None = None
    dedup_ttl: float | timedelta | None = None
    unique: Literal["queued", "unfinished"] | None = None
    expires: float | timedelta | datetime | None = None
    retention: float | timedelta | None = None
    key: str | None = None
    tags: Mapping[str, str] | None = None
    context: Mapping[str, Any] | None = None
    serializer: str | Serializer | None = None
    executor: str | None = None
    target: str | None = None
    requires: Mapping[str, str] | None = None
    depends_on: Sequence[Any] | None = None
    durability: Durability | None = None
    if_exists: Literal["raise", "return"] | None = None
