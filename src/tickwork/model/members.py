"""Who takes part: the workers that have registered, and the leader."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Literal

from msgspec import Struct, field

from tickwork.ids import is_name

# What a worker is asked to do: words with a space between, one of each kind at most, such as `capacity=20 drain`; "" is
# nothing. A word that a worker does not know is of a later version, and changes nothing.
Order = str
OrderKind = Literal["drain", "capacity", "queues"]
DRAIN: OrderKind = "drain"  # take no more tasks
CAPACITY: OrderKind = "capacity"  # run so many tasks at a time
QUEUES: OrderKind = "queues"  # take tasks from these queues, with commas between


def ordered(order: Order, kind: OrderKind, value: str | None) -> Order:
    """An order after a word of a kind was put in the place of the one before; with None it is taken out. Those of other
    kinds stay as they are."""
    words = [word for word in order.split() if word.partition("=")[0] != kind]
    if value is not None:
        words.append(f"{kind}={value}" if value else kind)
    return " ".join(sorted(words))


class Orders(Struct, frozen=True):
    """An order as a worker reads it; None is what it was started with."""

    drain: bool = False
    capacity: int | None = None
    queues: tuple[str, ...] | None = None

    @classmethod
    def of(cls, order: Order) -> Orders:
        """Words that are not known here are left out."""
        words = dict(word.partition("=")[::2] for word in order.split())
        capacity, queues = words.get(CAPACITY, ""), tuple(words.get(QUEUES, "").split(","))
        return cls(
            words.get(DRAIN) == "",
            int(capacity) if re.fullmatch("[1-9][0-9]{0,5}", capacity) else None,
            queues if all(map(is_name, queues)) else None,
        )

    @property
    def text(self) -> Order:
        order = ordered("", DRAIN, "" if self.drain else None)
        order = ordered(order, CAPACITY, None if self.capacity is None else str(self.capacity))
        return ordered(order, QUEUES, None if self.queues is None else ",".join(self.queues))


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
    cpu: float = 0.0  # share of one core that its process took of late
    memory: int = 0  # resident bytes of its process; 0 where that is not known
    loop_lag: float = 0.0  # seconds that its event loop was late, at worst, of late
    assigned: tuple[str, ...] = ()  # those of its queues whose tasks it waits to be given
    declares: tuple[str, ...] | None = None  # schedules that its program has in code; None: it does not say
    started_at: int = 0
    beat_at: int = 0
    expires_at: int = 0
    lost_at: int | None = None
    order: Order = ""  # kept by the store beside what the worker says of itself
    follows: Order = ""  # what of it the worker follows now

    @property
    def status(self) -> WorkerStatus:
        if self.lost_at is not None:
            return WorkerStatus.OFFLINE
        if DRAIN in self.order.split():
            return WorkerStatus.DRAINING
        return WorkerStatus.BUSY if self.running >= self.capacity else WorkerStatus.IDLE


class Leader(Struct, frozen=True):
    """Who leads, in which term, until when by the store's clock, and for how long at a time."""

    id: str
    term: int
    until: int
    ttl: int
