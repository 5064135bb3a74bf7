"""The Redis store: many machines, one namespace.

Reading order: `keys.py` (what is where), `lua/parts/prelude.lua` and the scripts, `records.py` (a task as a string),
`tasks.py` and its siblings (the parts of the contract), `batches.py`, `creating.py` and `short.py` (submits),
`claims.py`, `standing.py`, `partitions.py`, `dispatch.py`, `rounds.py` and `reach.py` (what several partitions need
more), `indexes.py` (lists), `migrations.py`, `net/` (connections), `ops/` (for operators).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tickwork.model.policy import Policy
from tickwork.store.contract import Capabilities
from tickwork.store.hints import Hint
from tickwork.store.redis.control import Control
from tickwork.store.redis.core import PATIENCE, Core
from tickwork.store.redis.gates import Gates
from tickwork.store.redis.indexes import Indexes
from tickwork.store.redis.locks import Locks
from tickwork.store.redis.log import FactLog
from tickwork.store.redis.marks import Marks
from tickwork.store.redis.members import Members
from tickwork.store.redis.migrations import migrate
from tickwork.store.redis.net.target import Target
from tickwork.store.redis.operators import Operators
from tickwork.store.redis.ops.audit import Audit
from tickwork.store.redis.partitions import PartitionedTasks
from tickwork.store.redis.queries import Queries
from tickwork.store.redis.schedules import Schedules
from tickwork.store.redis.tasks import Tasks

__all__ = ["PATIENCE", "RedisStore"]


class RedisStore:
    def __init__(
        self, target: Target, namespace: str = "scheduler", policy: Policy | None = None, **options: Any
    ) -> None:
        self._assemble(Core(target, namespace, policy, **options))

    def _assemble(self, core: Core) -> None:
        self.core = core
        self.url = core.url
        self.hints = core.hints
        self.contact = core.contact
        self.capabilities = Capabilities(
            shared=True,
            remote=True,
            own_clock=True,
            durabilities=("memory", "disk", "replicated"),
            partitions=len(core.layout.parts),
            blocking_submits=True,
            standing_claims=core.alone,
        )
        audit = Audit(core)
        indexes = Indexes(core, audit)
        self.queries = Queries(core, audit, indexes)
        self.tasks = Tasks(core) if core.alone else PartitionedTasks(core, self.queries)
        self.operators = Operators(core, self.tasks, self.queries, audit, indexes)
        self.schedules = Schedules(core, self.tasks)
        self.members = Members(core)
        self.locks = Locks(core)
        self.marks = Marks(core)
        self.gates = Gates(core)
        self.control = Control(core)
        self.log = FactLog(core)

    async def open(self) -> None:
        await self.core.open()

    async def migrate(self, take_over: bool, report: Callable[[int], None]) -> bool:
        """Move the namespace of an older version to this layout. The store need not be open."""
        await self.core.connect()
        return await migrate(self.core, take_over, report)

    async def close(self) -> None:
        await self.core.close()

    def sibling(self) -> RedisStore:
        """A store for the heart: with its own connections, and without repeating calls, since it must notice soon when
        Redis cannot be reached."""
        twin = RedisStore.__new__(RedisStore)
        twin._assemble(self.core.sibling())
        return twin

    def now(self) -> int:
        return self.core.now()

    def hint(self, topic: str) -> Hint:
        return self.core.hint(topic)
