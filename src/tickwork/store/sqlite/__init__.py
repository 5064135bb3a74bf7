"""The SQLite store: one file, no server, several processes of a host.

Transitions run on the writer's thread, queries on the reader's (`thread.py`). A method marked `@writes` or `@reads`
runs there as a whole and is offered as a coroutine.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from tickwork.clock import Clock
from tickwork.forks import tell_of_forks
from tickwork.model.policy import Durability, Policy
from tickwork.store.contract import Capabilities
from tickwork.store.hints import Hint
from tickwork.store.sqlite.control import Control
from tickwork.store.sqlite.core import Core
from tickwork.store.sqlite.gates import Gates
from tickwork.store.sqlite.homes import Homes
from tickwork.store.sqlite.locks import Locks
from tickwork.store.sqlite.log import FactLog
from tickwork.store.sqlite.marks import Marks
from tickwork.store.sqlite.members import Members
from tickwork.store.sqlite.operators import Operators
from tickwork.store.sqlite.queries import Queries
from tickwork.store.sqlite.schedules import Schedules
from tickwork.store.sqlite.tasks import Tasks


class SqliteStore:
    capabilities = Capabilities(
        shared=True,
        remote=False,
        own_clock=False,
        submit_order=True,
        durabilities=("memory", "disk"),
        blocking_submits=True,
    )

    def __init__(
        self,
        path: str,
        namespace: str = "scheduler",
        policy: Policy | None = None,
        clock: Clock | None = None,
        durability: Durability = "memory",
    ) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self.core = core = Core(path, namespace, policy or Policy(), clock, durability)
        self.hints = core.hints
        self.contact = core.contact
        homes = Homes(core.writer)
        self.tasks = Tasks(core, homes)
        self.queries = Queries(core)
        self.operators = Operators(core, homes, self.queries.audit)
        self.schedules = Schedules(core, homes.rows, self.tasks.submit_ticks)
        self.members = Members(core)
        self.locks = Locks(core)
        self.marks = Marks(core)
        self.gates = Gates(core)
        self.control = Control(core)
        self.log = FactLog(core)
        self._opening = threading.Lock()
        self._open = False
        tell_of_forks(self)

    async def open(self) -> None:
        # In a thread of its own, so that a caller who gives up leaves nothing half open; two loops may ask at once.
        if not self._open:
            await asyncio.to_thread(self._open_both)

    def _open_both(self) -> None:
        with self._opening:
            if not self._open:
                self.core.write.start()
                self.core.read.start()
                self._open = True

    async def migrate(self, take_over: bool, report: Callable[[int], None]) -> bool:
        return await asyncio.to_thread(self.core.writer.migrate, take_over, report)

    async def close(self) -> None:
        self._open = False
        self.core.files.closing = True
        await self.core.read.stop()
        await self.core.write.stop()

    def after_fork(self) -> None:
        self._opening = threading.Lock()
        self._open = False
        self.hints.forget()
        self.contact.reset()
        self.core.read.after_fork()
        self.core.write.after_fork()

    def sibling(self) -> SqliteStore:
        return self

    def now(self) -> int:
        return self.core.now()

    def hint(self, topic: str) -> Hint:
        return self.hints.add(topic)
