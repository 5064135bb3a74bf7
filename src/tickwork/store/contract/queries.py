"""Questions that change nothing."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

from tickwork.model.tasks import History, Record, Status
from tickwork.store.hints import Hint

PAGE_MAX = 1000  # entries that one call of `page` looks at
AHEAD_MAX = 1000  # tasks that `situation` counts before one


class Query(Struct, frozen=True):
    """Which tasks to list."""

    status: Status | None = None
    type: str | None = None
    queue: str | None = None
    key: str | None = None
    tags: dict[str, str] | None = None
    limit: int = 50
    cursor: str | None = None


class Pause(Struct, frozen=True):
    """A paused queue or type."""

    kind: Literal["queue", "type"]
    name: str
    at: int
    note: str = ""


class Stats(Struct, frozen=True):
    """Counts of tasks and workers. `ready` is by queue and band; `parked` by queue and type: those are ready too, in
    the side lane of their type, until a worker asks that can start them. `dropped` dead letters did not fit into their
    queue."""

    statuses: dict[Status, int]
    ready: dict[tuple[str, int], int]
    parked: dict[tuple[str, str], int]
    workers: int
    dropped: int


class Situation(Struct, frozen=True):
    """What keeps a task from running, at one moment.

    `ahead` counts the ready tasks of its queue that are taken before it, no further than `AHEAD_MAX`; those in side
    lanes count only if it is in the same one itself. `pauses` are those of its queue and its type. `running` has the
    number of tasks that each worker has a lease of. In a store with several partitions, tasks before it are those of
    its own partition.
    """

    record: Record
    ahead: int = 0
    pauses: list[Pause] = []
    running: dict[str, int] = {}


class Finding(Struct, frozen=True):
    """One line of `tickwork doctor`."""

    level: Literal["ok", "warning", "problem"]
    text: str
    advice: str = ""


class Queries(Protocol):
    async def time(self) -> int:
        """The store's clock, read now: no call that was answered before has written a later time. Where several
        servers keep the tasks, it is the latest of their clocks."""

    async def get(self, task_id: str, waiter: Hint | None = None) -> Record | None:
        """The record of a task. With `waiter`, that hint is raised when the task ends. A store may deliver the final
        record together with the wake-up, so that the next `get` with this waiter needs no round trip; and of a task
        that runs, it may leave out the end of the lease then."""

    async def page(self, query: Query) -> tuple[list[Record], str | None]:
        """Records, and a cursor when more remain. One call looks at no more than `PAGE_MAX` entries, so a page may be
        short or even empty.

        Ended tasks come in the order in which they ended, the newest first; delayed ones by due time, the first one due
        first, ties in the order of submits. Others, and all together, come in the order of submits, the newest first,
        where `capabilities.submit_order` says so, or while the lists are indexed (see `Operators.index`); else in the
        store's own order. While the lists are indexed, a list by type, queue or key without a status looks at no task
        of another type, queue or key; one with a status looks at those, or at the tasks of that status, whichever are
        fewer, and comes in the order of one or the other.
        """

    async def history(self, task_id: str) -> History:
        """The runs before the last one, and the last log lines; both empty for a task that is not there."""

    async def situation(self, task_id: str) -> Situation | None:
        """What keeps a task from running. None when there is no such task."""

    async def dependants(self, task_id: str, limit: int) -> list[str]:
        """The tasks that wait for this one now, sorted."""

    async def paused(self) -> list[Pause]: ...

    async def stats(self) -> Stats: ...

    async def waiting_since(self) -> dict[str, int]:
        """By queue that has ready tasks, the time since which the first of them waits: the earliest time at which one
        of those at the heads of its lanes was due (or submitted, if that was later). The head of a fair lane is its
        first `rules.FAIR_HEADS` tasks, since its keys take turns."""

    async def fullness(self) -> float:
        """How much of the room that it may use is taken, from 0 to 1; 0 where it knows of no bound."""

    async def audit(self) -> list[str]:
        """Everything that is not as it must be: each task is in exactly one place, each lease has its task, and so on.
        It may need more rights on a server than other calls; without them it raises `NotPermitted`."""

    async def health(self) -> list[Finding]:
        """What is right and wrong with the server or file itself, for `tickwork doctor`."""
