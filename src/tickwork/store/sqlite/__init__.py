"""The SQLite store: one file, no server, several processes of a host.

Transitions run on the writer's thread (`thread.py`), queries on the reader's; `tasks.py`, `members.py` and
`locks.py` hold the SQL.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Literal

from tickwork.clock import Clock, SystemClock
from tickwork.errors import StoreError
from tickwork.forks import tell_of_forks
from tickwork.model.facts import Event
from tickwork.model.members import Leader, Worker
from tickwork.model.outcomes import Outcome
from tickwork.model.policy import Durability, Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Lease, Record, Spec, Status
from tickwork.observe.loggers import Log
from tickwork.store.contact import Contact
from tickwork.store.contract import (
    Advance,
    Capabilities,
    Claim,
    Claimed,
    Finding,
    Finished,
    Heard,
    OutboxEntry,
    Pause,
    Query,
    Receipt,
    Reclaimed,
    Stats,
)
from tickwork.store.flat import Flat
from tickwork.store.hints import Hint, Hints
from tickwork.store.rules import leads
from tickwork.store.sqlite import locks, members, queries
from tickwork.store.sqlite.files import Files
from tickwork.store.sqlite.locks import Locks
from tickwork.store.sqlite.members import SchedulesAndMembers
from tickwork.store.sqlite.rows import Rows
from tickwork.store.sqlite.session import Reader, Writer
from tickwork.store.sqlite.tasks import Tasks
from tickwork.store.sqlite.thread import SqliteThread


class SqliteStore(Flat):
    capabilities = Capabilities(shared=True, remote=False, own_clock=False, durabilities=("memory", "disk"))

    def __init__(
        self,
        path: str,
        namespace: str = "scheduler",
        policy: Policy | None = None,
        clock: Clock | None = None,
        durability: str = "memory",
    ) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self.durability = durability
        self.policy = policy or Policy()
        self.hints = Hints()
        self.contact = contact = Contact(Log.of(None, "store.sqlite"))
        self._clock = clock or SystemClock()
        self._clock.on_change(self.hints.notify_all)
        self._files = Files(path)
        writer = Writer(self._files, namespace, self.policy, self._clock, self.hints, durability, contact)
        reader = Reader(self._files, namespace)
        self._write = SqliteThread("tickwork-sqlite-writer", writer, path, contact)
        self._read = SqliteThread("tickwork-sqlite-reader", reader, path, contact)
        self._tasks = Tasks(writer)
        self._members = SchedulesAndMembers(writer)
        self._locks = Locks(writer)
        self._reader = reader
        self._rows = Rows(reader)
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
                self._write.start()
                self._read.start()
                self._open = True

    async def close(self) -> None:
        self._open = False
        self._files.closing = True
        await self._read.stop()
        await self._write.stop()

    def after_fork(self) -> None:
        self._opening = threading.Lock()
        self._open = False
        self.hints.forget()
        self.contact.reset()
        self._read.after_fork()
        self._write.after_fork()

    def sibling(self) -> SqliteStore:
        return self

    def now(self) -> int:
        return self._clock.now()

    def hint(self, topic: str) -> Hint:
        return self.hints.add(topic)

    # --- tasks

    async def submit(self, specs: list[Spec], durability: Durability | None = None) -> list[Receipt]:
        if durability == "replicated":
            raise StoreError("a SQLite file has no replicas; durability can be memory or disk")
        receipts = await self._write.call(lambda: self._tasks.submit(specs))
        if durability == "disk" and self.durability != "disk":
            await asyncio.to_thread(self._files.sync_log)
        return receipts

    async def resolve(self, task_id: str, upstream: str, ok: bool, fence: int | None = None) -> bool:
        return await self._write.call(lambda: self._tasks.resolve(task_id, upstream, ok, fence))

    async def promote(self, limit: int) -> int | None:
        return await self._write.call(lambda: self._tasks.promote(limit))

    async def claim(self, want: Claim) -> Claimed:
        return await self._write.call(lambda: self._tasks.claim(want))

    async def extend(self, leases: list[Lease], lease_ttl: int) -> list[Literal["held", "cancel", "lost"]]:
        return await self._write.call(lambda: self._tasks.extend(leases, lease_ttl))

    async def note(self, lease: Lease, progress: float | None, text: str, lines: list[str]) -> bool:
        return await self._write.call(lambda: self._tasks.note(lease, progress, text, lines))

    async def finish(self, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        return await self._write.call(lambda: self._tasks.finish(outcomes, then_claim))

    async def reclaim(
        self, limit: int, gone: tuple[str, ...] = (), why: str = "", nodes: tuple[str, ...] = ()
    ) -> Reclaimed:
        return await self._write.call(lambda: self._tasks.reclaim(limit, gone, why, nodes))

    async def outbox(self, limit: int) -> list[OutboxEntry]:
        return await self._write.call(lambda: self._tasks.outbox(limit))

    async def dependants(self, task_id: str, limit: int) -> list[str]:
        return await self._read.call(lambda: queries.dependants(self._reader, task_id, limit))

    async def clear_outbox(self, told: list[OutboxEntry]) -> None:
        return await self._write.call(lambda: self._tasks.clear_outbox(told))

    async def cancel(self, task_id: str, force: bool, reason: str = "") -> Status | None:
        return await self._write.call(lambda: self._tasks.cancel(task_id, force, reason))

    async def run_now(self, task_id: str) -> Status | None:
        return await self._write.call(lambda: self._tasks.run_now(task_id))

    async def retry(self, task_id: str, only: Status | None = None) -> Status | None:
        return await self._write.call(lambda: self._tasks.retry(task_id, only))

    async def delete(self, task_id: str, only: Status | None = None) -> Status | None:
        return await self._write.call(lambda: self._tasks.delete(task_id, only))

    async def prune(self, limit: int) -> int:
        return await self._write.call(lambda: self._tasks.prune(limit))

    async def get(self, task_id: str, waiter: Hint | None = None) -> Record | None:
        return await self._read.call(lambda: self._rows.get(task_id))

    async def page(self, query: Query) -> tuple[list[Record], str | None]:
        return await self._read.call(lambda: queries.page(self._rows, query))

    async def stats(self) -> Stats:
        return await self._read.call(lambda: queries.stats(self._reader))

    async def audit(self) -> list[str]:
        return await self._read.call(lambda: queries.audit(self._reader, self._rows))

    async def health(self) -> list[Finding]:
        """For `tickwork doctor`: who else may read or replace the file."""
        return self._files.health()

    async def mend(self) -> list[str]:
        """Homes are indexes that SQLite itself keeps, so there is nothing to mend."""
        return await self.audit()

    # --- pauses

    async def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        return await self._write.call(lambda: self._members.pause(kind, name, note))

    async def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        return await self._write.call(lambda: self._members.resume(kind, name))

    async def paused(self) -> list[Pause]:
        return await self._read.call(lambda: queries.pauses(self._reader))

    # --- schedules

    async def put_schedule(self, schedule: Schedule, if_changed: bool = False, create: bool = False) -> Schedule | None:
        return await self._write.call(lambda: self._members.put_schedule(schedule, if_changed, create))

    async def drop_schedule(self, schedule_id: str) -> bool:
        return await self._write.call(lambda: self._members.drop_schedule(schedule_id))

    async def get_schedule(self, schedule_id: str) -> Schedule | None:
        return await self._read.call(lambda: members.get_schedule(self._reader, schedule_id))

    async def all_schedules(self) -> list[Schedule]:
        return await self._read.call(lambda: members.list_schedules(self._reader))

    async def due_schedules(self, limit: int) -> tuple[list[Schedule], int | None]:
        return await self._read.call(lambda: members.due_schedules(self._reader, self.now(), limit))

    async def advance(
        self, schedule_id: str, seen: int | None, step: Advance, ticks: tuple[Spec, ...] = ()
    ) -> Advance | None:
        submit = self._tasks.submit_ticks
        return await self._write.call(lambda: self._members.advance(schedule_id, seen, step, ticks, submit))

    async def set_schedule(
        self,
        schedule_id: str,
        *,
        paused: bool | None = None,
        next_at: int | None = None,
        stopped: str | None = None,
    ) -> bool:
        return await self._write.call(
            lambda: self._members.set_schedule(schedule_id, paused=paused, next_at=next_at, stopped=stopped)
        )

    async def report_run(
        self, schedule_id: str, task_id: str, status: Status, fence: int | None = None
    ) -> Schedule | None:
        def report() -> Schedule | None:
            if self._tasks.moved_on(task_id, fence):
                return None
            return self._members.report_run(schedule_id, task_id, status)

        return await self._write.call(report)

    # --- members

    async def beat(self, worker: Worker, ttl: int | None = None) -> Heard:
        return await self._write.call(lambda: self._members.beat(worker, ttl))

    async def leave(self, worker_id: str, node: str = "") -> None:
        return await self._write.call(lambda: self._members.leave(worker_id, node))

    async def workers(self) -> list[Worker]:
        return await self._read.call(lambda: members.list_workers(self._reader))

    async def campaign(self, node: str, ttl: int) -> Leader:
        return await self._write.call(lambda: self._members.campaign(node, ttl))

    async def leader(self) -> Leader | None:
        return leads(await self._read.call(lambda: members.written_leader(self._reader)), self.now())

    async def resign(self, node: str, term: int) -> bool:
        return await self._write.call(lambda: self._members.resign(node, term))

    # --- locks

    async def lock(self, name: str, owner: str, ttl: int) -> int | None:
        return await self._write.call(lambda: self._locks.lock(name, owner, ttl))

    async def extend_lock(self, name: str, owner: str, ttl: int) -> bool:
        return await self._write.call(lambda: self._locks.extend(name, owner, ttl))

    async def unlock(self, name: str, owner: str) -> bool:
        return await self._write.call(lambda: self._locks.unlock(name, owner))

    async def locked(self, name: str) -> tuple[str, int] | None:
        return await self._read.call(lambda: locks.holder(self._reader, name, self.now()))

    # --- log

    async def events(self, after: int, limit: int, task_id: str | None = None) -> tuple[list[Event], int]:
        return await self._read.call(lambda: queries.events(self._reader, self.policy, after, limit, task_id))

    async def last_event(self) -> int:
        return await self._read.call(lambda: queries.last_event(self._reader))
