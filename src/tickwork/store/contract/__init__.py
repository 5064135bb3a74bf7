"""The contract of a store. The docstrings in this folder are the specification; `memory/` is its plainest form.

A store has ten parts, each a small protocol in a module of its own. Every method is one atomic step, bounded by a
limit, and safe to send twice (`Control.append` says what that means there). A guard that refuses says so in the answer;
the only exceptions are `StoreUnavailable` (try again) and `StoreError` (do not). The store's clock decides; a caller's
time is never compared with anything. When that clock is set back, leases of tasks, members and locks keep the time that
they had left. Durations are integer milliseconds here. A store may be called from several event loops.

Data that this version cannot read (written by a newer one, or damaged) does no harm to other data, and no method raises
because of it. A claim that would have granted such a task hands it out as `Unreadable`, or puts it into the dead
letters if not even a lease can be given. Every list shows what can be read of it, with the reason in `last_error`. A
schedule that cannot be read is listed as stopped and does not fire; such facts are listed as `log.unreadable`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.facts import Event, Fact, NewFact
from tickwork.model.members import Leader, Worker
from tickwork.model.outcomes import Aborted, Failed, Held, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.policy import Durability, Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Attempt, History, Lease, ParkReason, Record, Spec, Status
from tickwork.store.contact import Contact
from tickwork.store.contract.assigning import LOOK_MAX, Aside, Assigned, Assignment, Look, Seen, Waiting
from tickwork.store.contract.control import DOCUMENTS_PAGE, ENTRIES_MAX, ENTRIES_PAGE, Control, Document, Entry
from tickwork.store.contract.gates import Ask, Gate, Gates, GateState, Left, Refusal, RunVerdict, Woken
from tickwork.store.contract.locks import Locks
from tickwork.store.contract.log import FactLog
from tickwork.store.contract.marks import Marks
from tickwork.store.contract.members import Heard, Members
from tickwork.store.contract.operators import Operators, Retried
from tickwork.store.contract.queries import AHEAD_MAX, PAGE_MAX, Finding, Pause, Queries, Query, Situation, Stats
from tickwork.store.contract.schedules import SCHEDULES_PAGE, Advance, Schedules
from tickwork.store.contract.tasks import (
    MANY_MAX,
    STANDING_TURN,
    SUBMIT_MAX,
    BlockingTasks,
    Claim,
    Claimed,
    Edge,
    Extended,
    Finished,
    Grant,
    OutboxEntry,
    Receipt,
    Reclaimed,
    StandingTasks,
    Tasks,
    Unreadable,
    Verdict,
)
from tickwork.store.hints import Hint

__all__ = [
    "AHEAD_MAX",
    "DOCUMENTS_PAGE",
    "ENTRIES_MAX",
    "ENTRIES_PAGE",
    "LOOK_MAX",
    "MANY_MAX",
    "PAGE_MAX",
    "PARTS",
    "SCHEDULES_PAGE",
    "STANDING_TURN",
    "SUBMIT_MAX",
    "Aborted",
    "Advance",
    "Aside",
    "Ask",
    "Assigned",
    "Assignment",
    "Attempt",
    "BlockingTasks",
    "Capabilities",
    "Claim",
    "Claimed",
    "Contact",
    "Control",
    "Document",
    "Durability",
    "Edge",
    "Entry",
    "Event",
    "Extended",
    "Fact",
    "FactLog",
    "Failed",
    "Finding",
    "Finished",
    "Gate",
    "GateState",
    "Gates",
    "Grant",
    "Heard",
    "Held",
    "Hint",
    "History",
    "Leader",
    "Lease",
    "Left",
    "Locks",
    "Look",
    "Marks",
    "Members",
    "NewFact",
    "NotPermitted",
    "Operators",
    "OutboxEntry",
    "Outcome",
    "ParkReason",
    "Pause",
    "Policy",
    "Queries",
    "Query",
    "Receipt",
    "Reclaimed",
    "Record",
    "Refusal",
    "Released",
    "Retried",
    "RunVerdict",
    "Schedule",
    "Schedules",
    "Seen",
    "Situation",
    "Snoozed",
    "Spec",
    "StandingTasks",
    "Stats",
    "Status",
    "Stopped",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "Succeeded",
    "Tasks",
    "Unreadable",
    "Verdict",
    "Waiting",
    "Woken",
    "Worker",
]


PARTS = ("tasks", "operators", "queries", "schedules", "members", "locks", "marks", "gates", "control", "log")


class NotPermitted(StoreError):
    """The user of this store lacks the right to do it."""


class Capabilities(Struct, frozen=True):
    """What kind of store it is. Nothing else may be concluded from a store's URL or class."""

    shared: bool
    """Other processes see the same data."""

    remote: bool
    """It works while the caller goes on, so a worker keeps two exchanges under way."""

    own_clock: bool
    """Its own clock decides, so no other one can be given (`Scheduler(clock=...)`)."""

    durabilities: tuple[Durability, ...]
    """What a receipt of `submit` can stand for."""

    submit_order: bool = False
    """Lists without a status come in the order of submits, the newest first."""

    partitions: int = 1
    """In how many places tasks are kept; strict order holds in each of them."""

    blocking_submits: bool = False
    """Threads without an event loop can submit without one: its `tasks` are `BlockingTasks`."""

    standing_claims: bool = False
    """An idle worker's claim can wait in the store: its `tasks` are `StandingTasks`."""


class Store(Protocol):
    """Where tasks live: ten parts, and the life of the object itself. The text of this module says what holds."""

    url: str
    """Where it is, without passwords."""

    contact: Contact
    """Told of outages by whoever meets one, and used by the store for what it has to report itself."""

    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def operators(self) -> Operators: ...
    @property
    def queries(self) -> Queries: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def members(self) -> Members: ...
    @property
    def locks(self) -> Locks: ...
    @property
    def marks(self) -> Marks: ...
    @property
    def gates(self) -> Gates: ...
    @property
    def control(self) -> Control: ...
    @property
    def log(self) -> FactLog: ...

    async def open(self) -> None:
        """Open files or connections; safe to call twice. Raises `StoreError` with a clear text when it cannot."""

    async def close(self) -> None: ...

    async def migrate(self, take_over: bool, report: Callable[[int], None]) -> bool:
        """Move what an older version of Tickwork wrote to the layout of this one. The store need not be open. False
        when there is nothing to move. `report` is told how many entries have moved.

        It may be interrupted at any moment and begun again. It refuses while workers of the older version are up,
        unless it is to take over from them: then they can do nothing more, and what they run is taken back when its
        lease ends.
        """

    def sibling(self) -> Store:
        """A store on the same data for use from another thread; may be the same object."""

    def now(self) -> int:
        """The store's clock, for showing times; never for a decision that a transition should make."""

    def hint(self, topic: str) -> Hint:
        """Ask to be woken on a topic (one of `tickwork.store.hints`, or a task id). Use as a context manager."""
