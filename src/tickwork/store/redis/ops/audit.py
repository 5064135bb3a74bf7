"""The audit: is each task in the home of its status, and in no other? It can also correct what it finds.

All keys of the namespace are read, which takes a while and gives no snapshot. A task that looks wrong is therefore
checked again by a script, which sees it at one moment, before it is reported or corrected.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from tickwork.model.tasks import ENDS, HELD, Place, Record, Status
from tickwork.store.contract import NotPermitted
from tickwork.store.redis.core import Part
from tickwork.store.redis.records import HELD_IN, unpack
from tickwork.store.rules import unsound
from tickwork.store.unreadable import read_schedule

STEP = 500

Found = list[tuple[str, str]]  # home, and the entry or member there


class Audit(Part):
    async def examine(self, mend: bool = False) -> list[str]:
        problems: list[str] = []
        try:
            for part in self._core.layout.parts:
                problems += await self._examine_part(part, mend)
        except NotPermitted as error:
            raise NotPermitted(
                f"an audit of Redis at {self._core.target.url} lists keys, which a worker's user may not: give it one "
                "with the rights of `tickwork acl --for audit`"
            ) from error
        return problems

    async def _examine_part(self, part: str, mend: bool) -> list[str]:
        homes: dict[str, Found] = {}
        async for task_id, home, entry in self.all_homes(part):
            homes.setdefault(task_id, []).append((home, entry))
        problems = await self._behind(part, homes, mend)
        blocked: list[Record] = []
        async for record in self._all_records(part):
            found = homes.pop(record.id, [])
            if sorted(home for home, _ in found) != right_homes(record):
                problems += await self._look_again(part, record.id, found, mend)
            if unsound(record):
                problems += await self._unsound_still(record.id)
            if record.waiting:
                blocked.append(record)
        problems += await self._unreadable_schedules(part)
        # These have no record, or one that was created after the records were read.
        for task_id, found in homes.items():
            problems += await self._look_again(part, task_id, found, mend)
        for record in blocked:
            problems += await self._waits_in_vain(part, record, mend)
        return problems

    async def _behind(self, part: str, homes: dict[str, Found], mend: bool) -> list[str]:
        """The counter of positions must be ahead of all positions in use, or streams refuse new entries."""
        streams = (entry for found in homes.values() for home, entry in found if home.startswith(("stream:", "ended:")))
        taken = max((int(entry.partition("-")[0]) for entry in streams), default=0)
        given = int(
            await self._core.ask(part, "GET", f"{part}position") or 0
        )  # read after the homes, so that it can only be ahead
        if given >= taken:
            return []
        if mend:
            await self._core.run("recount", part, taken)
        return [f"the counter of positions is at {given:,}, though {taken:,} is taken: it was lost or set back"]

    async def _unreadable_schedules(self, part: str) -> list[str]:
        if part != self._core.layout.root:
            return []
        found = await self._core.ask(part, "HGETALL", f"{part}schedules")
        schedules = [read_schedule(name.decode(), blob) for name, blob in zip(found[::2], found[1::2], strict=True)]
        return [f"schedule {schedule.id}: {schedule.stopped}" for schedule in schedules if schedule.unreadable]

    async def _look_again(self, part: str, task_id: str, found: Found, mend: bool) -> list[str]:
        places = [text for place in found for text in place]
        reply = await self._core.run("mend", part, task_id, int(mend), *places)
        return [f"task {task_id} {line.decode()}" for line in reply]

    async def _unsound_still(self, task_id: str) -> list[str]:
        part = self._core.part(task_id)
        value = await self._core.ask(part, "GET", f"{part}task:{task_id}")
        if value is None:
            return []
        record = unpack(task_id, value)
        await self._core.read_leases(part, [record])
        return [f"task {task_id}: {problem}" for problem in unsound(record)]

    async def _waits_in_vain(self, part: str, record: Record, mend: bool) -> list[str]:
        """Whether a task waits for one that has ended or was removed, and that is not in the outbox."""
        problems = []
        for upstream in record.waiting:
            place = self._core.part(upstream)
            value, told = await self._core.ask_all(
                place, [("GET", f"{place}task:{upstream}"), ("ZSCORE", f"{place}outbox", upstream)]
            )
            status = None if value is None else unpack(upstream, value).status
            if told is not None or (status is not None and status not in ENDS):
                continue
            now = await self._core.ask(part, "GET", f"{part}task:{record.id}")
            if now is not None and upstream in unpack(record.id, now).waiting:
                problems.append(f"task {record.id} waits for {upstream}, which has ended or was removed")
                if mend:
                    await self._core.run("resolve", part, record.id, upstream, int(status is Status.SUCCESS), "")
        return problems

    # --- reading everything

    async def _all_records(self, part: str) -> AsyncIterator[Record]:
        ends: dict[str, int] = {}
        for home in await self._held_homes(part):
            held = await self._core.ask(part, "ZRANGE", part + home, 0, -1, "WITHSCORES")
            ends.update((task_id.decode(), int(float(end))) for task_id, end in zip(held[::2], held[1::2], strict=True))
        prefix = f"{part}task:"
        seen: set[bytes] = set()
        async for keys in self._scan(part, f"{prefix}*"):
            fresh = [key for key in keys if key not in seen]
            seen.update(fresh)
            values = await self._core.ask(part, "MGET", *fresh) if fresh else []
            for key, value in zip(fresh, values, strict=True):
                if value is not None:
                    task_id = key.decode().removeprefix(prefix)
                    yield unpack(task_id, value, ends.get(task_id, 0))

    async def _scan(self, part: str, pattern: str) -> AsyncIterator[list[bytes]]:
        cursor: Any = b"0"
        while True:
            cursor, keys = await self._core.ask(part, "SCAN", cursor, "MATCH", pattern, "COUNT", STEP)
            yield keys
            if cursor == b"0":
                return

    async def all_homes(self, part: str) -> AsyncIterator[tuple[str, str, str]]:
        held = [(home, 0) for home in await self._held_homes(part)]
        for name, tail in (("delayed", 11), ("retrying", 11), ("blocked", 0), *held):
            async for member in self._members(part, name):
                yield member[tail:], name, member
        for lane in await self._core.ask(part, "SMEMBERS", f"{part}aside"):
            tail = 11 if lane.startswith(b"fair:") else 0
            async for member in self._members(part, lane.decode()):
                yield member[tail:], lane.decode(), member
        lanes = [f"stream:{lane.decode()}" for lane in await self._core.ask(part, "SMEMBERS", f"{part}lanes")]
        for stream in (*lanes, *(f"ended:{status}" for status in sorted(ENDS))):
            async for entry, task_id in self._entries(part, stream):
                yield task_id, stream, entry

    async def _held_homes(self, part: str) -> list[str]:
        """Of tasks that run or are assigned: one home a worker."""
        lists = [("ZRANGE", f"{part}{name}", 0, -1) for name in ("lessees", "inboxes")]
        lessees, owners = await self._core.ask_all(part, lists)
        return [f"leases:{each.decode()}" for each in lessees] + [f"inbox:{each.decode()}" for each in owners]

    async def _members(self, part: str, name: str) -> AsyncIterator[str]:
        cursor: Any = b"0"
        seen: set[bytes] = set()
        while True:
            cursor, found = await self._core.ask(part, "ZSCAN", part + name, cursor, "COUNT", STEP)
            for member in found[::2]:
                if member not in seen:
                    seen.add(member)
                    yield member.decode()
            if cursor == b"0":
                return

    async def _entries(self, part: str, name: str) -> AsyncIterator[tuple[str, str]]:
        start = "-"
        while entries := await self._core.ask(part, "XRANGE", part + name, start, "+", "COUNT", STEP):
            for entry, fields in entries:
                yield entry.decode(), fields[1].decode()
            start = f"({entries[-1][0].decode()}"


def right_homes(record: Record) -> list[str]:
    """The homes in which a task of this status must be."""
    status, lane = record.status, f"{record.spec.band.name.lower()}:{record.spec.queue}"
    if status is Status.READY and record.place is Place.FRONT:
        return [f"front:{lane}"]
    if status is Status.READY and record.place is Place.SIDE:
        return [f"side:{lane}/{record.spec.kind}"]
    if status is Status.READY:
        return [f"{'fair' if record.place is Place.FAIR else 'stream'}:{lane}"]
    if status in HELD:
        return [f"{HELD_IN[status]}{record.worker_id}"]
    if status in ENDS:
        return [f"ended:{status}"]
    return ["delayed" if status is Status.PENDING else str(status)]
