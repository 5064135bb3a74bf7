"""The memory store: the contract in its plainest form, held to the same tests as every other store."""

from __future__ import annotations

from collections.abc import Callable

from tickwork.clock import Clock
from tickwork.model.policy import Policy
from tickwork.store.contract import Capabilities
from tickwork.store.hints import Hint
from tickwork.store.memory.control import Control
from tickwork.store.memory.core import Core
from tickwork.store.memory.gates import Gates
from tickwork.store.memory.homes import Homes
from tickwork.store.memory.locks import Locks
from tickwork.store.memory.log import FactLog
from tickwork.store.memory.marks import Marks
from tickwork.store.memory.members import Members
from tickwork.store.memory.operators import Operators
from tickwork.store.memory.queries import Queries
from tickwork.store.memory.schedules import Schedules
from tickwork.store.memory.tasks import Tasks


class MemoryStore:
    url = "memory://"
    capabilities = Capabilities(
        shared=False, remote=False, own_clock=False, submit_order=True, durabilities=("memory",)
    )

    def __init__(self, policy: Policy | None = None, clock: Clock | None = None) -> None:
        core = Core(policy, clock)
        self.hints = core.hints
        self.contact = core.contact
        self.log = FactLog(core)
        homes = Homes(core, self.log)
        self.members = Members(core, self.log, homes)
        self.locks = Locks(core)
        self.marks = Marks(core, self.log)
        self.gates = Gates(core, self.log)
        self.control = Control(core)
        self.tasks = Tasks(core, homes, self.members)
        self.schedules = Schedules(core, self.log, homes, self.tasks.submit_one)
        self.queries = Queries(core, homes, self.members)
        self.operators = Operators(core, self.log, homes, self.members, self.locks, self.queries.audit)
        self.core = core

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close: the tasks live as long as the object."""

    async def migrate(self, take_over: bool, report: Callable[[int], None]) -> bool:
        return False  # no other version ever wrote to it

    def sibling(self) -> MemoryStore:
        return self

    def now(self) -> int:
        return self.core.now()

    def hint(self, topic: str) -> Hint:
        return self.hints.add(topic)
