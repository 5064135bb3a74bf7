"""Who takes part: the workers that have registered, and the leader."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

Order = str  # what a worker is asked to do; "" is nothing. One that it does not know is of a later version
DRAIN = "drain"  # take no more tasks


class WorkerStatus(StrEnum):
    """What a worker is doing. `ONLINE` is for questions: all workers but those that are offline."""

    ONLINE = "online"
    IDLE = "idle"  # it has free slots
    BUSY = "busy"  # all of its slots are taken
    DRAINING = "draining"  # it was asked to take no more tasks
    OFFLINE = "offline"  # it has given no sign of life for too long


class Worker(Struct, frozen=True, kw_only=True):
    """A member as stores keep it: one pool of slots in one process. Users are shown a `WorkerInfo`."""

    id: str
    node: str = ""
    host: str = ""
    pid: int = 0
    pid_started: str = ""
    address: str = ""  # of a worker with a node it is only shown
    version: str = ""  # of the Tickwork that it runs; "" where that is not known
    queues: tuple[str, ...] = ("default",)
    task_types: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    weight: int = 1
    capacity: int = 10
    running: int = 0
    leaked: int = 0
    declares: tuple[str, ...] | None = None  # schedules that its program has in code; None: it does not say
    started_at: int = 0
    beat_at: int = 0
    expires_at: int = 0
    lost_at: int | None = None
    order: Order = ""  # kept by the store beside what the worker says of itself
    follows: str = ""  # the order that the worker follows now

    @property
    def status(self) -> WorkerStatus:
        if self.lost_at is not None:
            return WorkerStatus.OFFLINE
        if self.order == DRAIN:
            return WorkerStatus.DRAINING
        return WorkerStatus.BUSY if self.running >= self.capacity else WorkerStatus.IDLE


class Leader(Struct, frozen=True):
    """Who leads, in which term, until when by the store's clock, and for how long at a time."""

    id: str
    term: int
    until: int
    ttl: int
