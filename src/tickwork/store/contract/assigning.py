"""What whoever assigns tasks to workers asks a store, and what it is answered: see `Tasks.assign`."""

from __future__ import annotations

from msgspec import Struct

from tickwork.model.tasks import ParkReason

LOOK_MAX = 1000  # ready tasks that one look answers


class Assignment(Struct, frozen=True, gc=False):
    """A ready task is to go to the inbox of a worker."""

    id: str
    worker_id: str


class Aside(Struct, frozen=True, gc=False):
    """A ready task is to be moved to its side lane, since no worker may run it now."""

    id: str
    reason: ParkReason


class Look(Struct, frozen=True):
    """A question about ready tasks of some queues: the first of them, in the order in which a claim would take them. Of
    the tasks in side lanes only those of `lanes`, which are named `<queue>/<kind>` (see `Spec.kind`). `workers` are
    those whose load is asked for, each with the number of its slots. No more tasks are shown than these have free
    slots, and `beyond` so many; at most `LOOK_MAX`, and none if there is no free slot."""

    queues: tuple[str, ...]
    workers: dict[str, int]
    lanes: frozenset[str] = frozenset()
    beyond: int = 0
    shared: bool = False  # others pull from these queues: wake-ups are left to them


class Waiting(Struct, frozen=True, gc=False):
    """A ready task, as whoever assigns it sees it."""

    id: str
    kind: str
    queue: str
    band: int
    key: str | None = None

    @property
    def type(self) -> str:
        return self.kind.partition(" ")[0]

    @property
    def needs(self) -> str:
        return self.kind.partition(" ")[2]


class Seen(Struct, frozen=True):
    """The answer to a look. `aside` are the side lanes of these queues that have tasks, `paused` the types that are
    paused. `loads` says of each worker how many tasks it runs and has in its inbox."""

    waiting: list[Waiting]
    aside: frozenset[str]
    paused: frozenset[str]
    loads: dict[str, int]


class Assigned(Struct, frozen=True):
    """Whether each task was assigned, in the order given; and the answer to the look."""

    done: list[bool]
    seen: Seen | None = None
