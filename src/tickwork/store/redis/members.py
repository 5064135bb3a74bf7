"""Schedules, members, leadership, pauses and locks.

A schedule is changed in this process, by the rules that every store shares, and swapped in if nobody else has changed
it meanwhile; else it is done again on what is there now.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from tickwork.errors import StoreUnavailable
from tickwork.model.facts import Fact
from tickwork.model.members import Leader, Worker
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import ENDS, Status
from tickwork.store.contract import Advance, Heard
from tickwork.store.redis.core import Core
from tickwork.store.redis.records import CODES
from tickwork.store.rules import advance_facts, advanced, changed, leads, same_definition, succeed
from tickwork.store.unreadable import UNREADABLE, read_schedule, refuse_stub

ENDED = frozenset(CODES[status].encode() for status in ENDS)
TRIES = 50  # of a swap; every failure means that another one succeeded

_encode = msgspec.msgpack.Encoder().encode
_worker = msgspec.msgpack.Decoder(Worker).decode

Facts = list[tuple[Fact, str]]
Change = Callable[[Schedule | None], tuple[Schedule | None, Facts] | None]


async def _never() -> bool:
    return False


class Members(Core):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._due: dict[str, bytes] = {}
        self._unreadable_due = 0

    # --- schedules

    async def _swap(
        self, schedule_id: str, change: Change, seen: bytes | None = None, void: Callable[[], Awaitable[bool]] = _never
    ) -> Schedule | None:
        """Apply a change to what is stored; `change` answers None to leave it alone. Answers what is stored then.
        `void` is asked each time after the schedule was read: a change that comes too late is not made."""
        root = self.layout.root
        for _ in range(TRIES):
            if seen is None:
                seen = await self.ask(root, "HGET", f"{root}schedules", schedule_id)
            old = None if seen is None else read_schedule(schedule_id, seen)
            if await void():
                return None
            step = change(old)
            if step is None:
                return old
            new, facts = step
            next_at = "" if new is None or not new.active or new.next_at is None else new.next_at
            told = [part for fact, detail in facts for part in (fact.value, detail)]
            blob = b"" if new is None else _encode(new)
            if await self.run("swap", root, schedule_id, seen or b"", blob, next_at, *told):
                return new
            seen = None
        raise StoreUnavailable(f"schedule {schedule_id} is changed by others all the time")

    async def put_schedule(self, schedule: Schedule, if_changed: bool = False, create: bool = False) -> Schedule | None:
        refused = False

        def put(old: Schedule | None) -> tuple[Schedule, Facts] | None:
            nonlocal refused
            refused = old is not None and create
            if refused or (old is not None and if_changed and same_definition(old, schedule)):
                return None
            if old is not None and old.unreadable:
                old = None
            return succeed(old, schedule, self.now()), [(Fact.SCHEDULE_PUT, schedule.cron or "")]

        stored = await self._swap(schedule.id, put)
        return None if refused else stored

    async def drop_schedule(self, schedule_id: str) -> bool:
        found = False

        def drop(old: Schedule | None) -> tuple[None, Facts] | None:
            nonlocal found
            found = old is not None
            return (None, [(Fact.SCHEDULE_DROPPED, "")]) if found else None

        await self._swap(schedule_id, drop)
        return found

    async def get_schedule(self, schedule_id: str) -> Schedule | None:
        root = self.layout.root
        blob = await self.ask(root, "HGET", f"{root}schedules", schedule_id)
        return None if blob is None else read_schedule(schedule_id, blob)

    async def all_schedules(self) -> list[Schedule]:
        root = self.layout.root
        found = await self.ask(root, "HGETALL", f"{root}schedules")
        schedules = [read_schedule(name.decode(), blob) for name, blob in zip(found[::2], found[1::2], strict=True)]
        return sorted(schedules, key=lambda schedule: schedule.id)

    async def due_schedules(self, limit: int) -> tuple[list[Schedule], int | None]:
        # Those that cannot be read stay due, as a leader of a newer version may be able to fire them.
        now, later, *blobs = await self.run("due", self.layout.root, limit + self._unreadable_due)
        self._skew = now - time.monotonic_ns() // 1_000_000
        found = [(read_schedule("", blob), blob) for blob in blobs if blob]
        due = [(schedule, blob) for schedule, blob in found if not schedule.unreadable]
        self._unreadable_due = len(blobs) - len(due)
        self._due = {schedule.id: blob for schedule, blob in due[:limit]}
        more = len(due) > limit
        return [schedule for schedule, _ in due[:limit]], 0 if more else None if later < 0 else later

    async def _advance(self, schedule_id: str, seen: int | None, step: Advance) -> Advance | None:
        done = False

        def move(old: Schedule | None) -> tuple[Schedule, Facts] | None:
            nonlocal done
            done = old is not None and not old.unreadable and old.next_at == seen
            return (advanced(old, step), advance_facts(step)) if old is not None and done else None

        await self._swap(schedule_id, move, self._due.pop(schedule_id, None))  # as it was read a moment ago
        return step if done else None

    async def set_schedule(
        self,
        schedule_id: str,
        *,
        paused: bool | None = None,
        next_at: int | None = None,
        stopped: str | None = None,
    ) -> bool:
        found = False

        def alter(old: Schedule | None) -> tuple[Schedule, Facts] | None:
            nonlocal found
            found = old is not None
            if old is not None:
                refuse_stub(old)
            fact = Fact.SCHEDULE_STOPPED if stopped else Fact.SCHEDULE_PUT
            return (
                None if old is None else (changed(old, self.now(), paused, next_at, stopped), [(fact, stopped or "")])
            )

        await self._swap(schedule_id, alter)
        return found

    async def report_run(
        self, schedule_id: str, task_id: str, status: Status, fence: int | None = None
    ) -> Schedule | None:
        async def too_late() -> bool:
            found = None if fence is None else await self.run("state", self._part(task_id), task_id)
            return found is not None and (found[0] not in ENDED or int(found[1].partition(b".")[2]) != fence)

        def report(old: Schedule | None) -> tuple[Schedule, Facts] | None:
            if old is None or old.last_task_id != task_id:
                return None
            return replace(old, last_status=status.value), []

        return await self._swap(schedule_id, report, void=too_late)

    # --- pauses

    async def pause(self, kind: Literal["queue", "type"], name: str, note: str = "") -> None:
        for number, part in enumerate(self.layout.parts):
            await self.run("pause", part, kind, name, "pause", note, quiet=number > 0)

    async def resume(self, kind: Literal["queue", "type"], name: str) -> bool:
        paused = False
        for number, part in enumerate(self.layout.parts):
            # Asked before, so that a call which is sent again is answered as the first time.
            paused = await self.ask(part, "HGET", f"{part}pauses", f"{kind}:{name}") is not None or paused
            await self.run("pause", part, kind, name, "resume", "", quiet=number > 0)
        for part in self.layout.parts:
            self.wake(set(self._queues), part)
        return paused

    # --- members

    async def beat(self, worker: Worker, ttl: int | None = None) -> Heard:
        args = (worker.id, worker.node, _encode(worker), ttl or self.policy.lease_ttl)
        self.own_workers.add(worker.id)
        reply = await self.run("beat", self.layout.root, *args, purpose="work")
        found, *rival = reply
        leader = Leader(found[0].decode(), *found[1:]) if found else None
        return Heard(leader, _read_worker(worker.id, *rival) if rival else None)

    async def leave(self, worker_id: str, node: str = "") -> None:
        self.own_workers.discard(worker_id)
        for prefix in self.prefixes:  # the namespace's own first, which knows the nodes
            if not await self.run("leave", prefix, worker_id, node):
                return

    async def workers(self) -> list[Worker]:
        root = self.layout.root
        blobs, times = await self.ask_all(root, [("HGETALL", f"{root}workers"), ("HGETALL", f"{root}workers:times")])
        moments = dict(zip(times[::2], times[1::2], strict=True))
        found = [
            _read_worker(worker_id.decode(), blob, moments[worker_id])
            for worker_id, blob in zip(blobs[::2], blobs[1::2], strict=True)
            if worker_id in moments
        ]
        return sorted(found, key=lambda worker: worker.id)

    async def campaign(self, node: str, ttl: int) -> Leader:
        reply = await self.run("campaign", self.layout.root, node, ttl)
        return Leader(reply[0].decode(), *reply[1:])

    async def leader(self) -> Leader | None:
        root = self.layout.root
        found = await self.ask(root, "HMGET", f"{root}schedule:leader", "id", "term", "until", "ttl")
        if None in found:
            return None
        return leads(Leader(found[0].decode(), *map(int, found[1:])), self.now())

    async def resign(self, node: str, term: int) -> bool:
        return bool(await self.run("resign", self.layout.root, node, term))

    # --- locks

    async def lock(self, name: str, owner: str, ttl: int) -> int | None:
        return await self.run("lock", self.layout.root, "take", name, owner, ttl) or None

    async def extend_lock(self, name: str, owner: str, ttl: int) -> bool:
        return bool(await self.run("lock", self.layout.root, "extend", name, owner, ttl))

    async def unlock(self, name: str, owner: str) -> bool:
        return bool(await self.run("lock", self.layout.root, "release", name, owner, 0))

    async def locked(self, name: str) -> tuple[str, int] | None:
        root = self.layout.root
        known, back = await self.ask_all(root, [("GET", f"{root}lock:{name}"), ("HGET", f"{root}meta", "clock_back")])
        if known is None:
            return None
        _, till, owner = known.decode().split(" ", 2)
        until = int(till) - int(back or 0)
        return (owner, until) if until > self.now() else None


def _read_worker(worker_id: str, blob: bytes, times: bytes) -> Worker:
    try:
        return _with_times(_worker(blob), times)
    except UNREADABLE:
        return Worker(id=worker_id)


def _with_times(worker: Worker, times: bytes) -> Worker:
    started_at, beat_at, expires_at, *lost_at = map(int, times.split())
    lost = lost_at[0] if lost_at else None
    running = worker.running if lost is None else 0
    return replace(worker, started_at=started_at, beat_at=beat_at, expires_at=expires_at, lost_at=lost, running=running)
