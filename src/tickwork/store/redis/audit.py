"""The proof that each task is in exactly one home, and that each home holds only its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from tickwork.model import DELAYED, ENDS, Place, Record, Status
from tickwork.store.redis.core import Core
from tickwork.store.redis.records import unpack
from tickwork.store.rules import unsound

STEP = 500


class Audit(Core):
    async def audit(self) -> list[str]:
        problems: list[str] = []
        for part in self.layout.parts:
            problems += await self._audit_part(part)
        return problems

    async def _audit_part(self, part: str) -> list[str]:
        homes: dict[str, list[str]] = {}
        async for home, task_id in self._all_homes(part):
            homes.setdefault(task_id, []).append(home)
        records = {record.id: record async for record in self._all_records(part)}
        outbox = {i.decode() for i in await self.ask(part, "ZRANGE", f"{part}outbox", 0, -1)}
        problems = [f"task {i} is in {h} but has no record" for i, h in homes.items() if i not in records]
        for record in records.values():
            right = _right_homes(record)
            if (found := sorted(homes.get(record.id, []))) != right:
                problems.append(f"task {record.id} is {record.status}, so belongs in {right}, not {found}")
            problems.extend(f"task {record.id}: {problem}" for problem in unsound(record))
            for upstream in record.waiting:
                other = records.get(upstream)
                if (other is None or other.status in ENDS) and upstream not in outbox and len(self.layout.parts) == 1:
                    problems.append(f"task {record.id} waits for {upstream}, which will never tell")
        return problems

    async def _all_records(self, part: str) -> AsyncIterator[Record]:
        leases = await self.ask(part, "ZRANGE", f"{part}leases", 0, -1, "WITHSCORES")
        ends = {task_id.decode(): int(float(end)) for task_id, end in zip(leases[::2], leases[1::2], strict=True)}
        prefix = f"{part}task:"
        async for keys in self._scan(part, prefix):
            values = await self.ask(part, "MGET", *keys)
            for key, value in zip(keys, values, strict=True):
                if value is not None:
                    task_id = key.decode().removeprefix(prefix)
                    yield unpack(task_id, value, ends.get(task_id, 0))

    async def _scan(self, part: str, prefix: str) -> AsyncIterator[list[bytes]]:
        cursor: Any = b"0"
        seen: set[bytes] = set()
        while True:
            cursor, keys = await self.ask(part, "SCAN", cursor, "MATCH", f"{prefix}*", "COUNT", STEP)
            fresh = [key for key in keys if key not in seen]
            seen.update(fresh)
            if fresh:
                yield fresh
            if cursor == b"0":
                return

    async def _all_homes(self, part: str) -> AsyncIterator[tuple[str, str]]:
        for name, tail in (("delayed", 11), ("retrying", 11), ("blocked", 0), ("leases", 0)):
            for member in await self.ask(part, "ZRANGE", part + name, 0, -1):
                yield name, member.decode()[tail:]
        for shelf in await self.ask(part, "SMEMBERS", f"{part}aside"):
            for member in await self.ask(part, "ZRANGE", part + shelf.decode(), 0, -1):
                yield shelf.decode(), member.decode()
        for lane in await self.ask(part, "SMEMBERS", f"{part}lanes"):
            for entry in await self.ask(part, "XRANGE", f"{part}stream:{lane.decode()}", "-", "+"):
                yield f"stream:{lane.decode()}", entry[1][1].decode()
        for status in ENDS:
            for entry in await self.ask(part, "XRANGE", f"{part}ended:{status}", "-", "+"):
                yield f"ended:{status}", entry[1][1].decode()


def _right_homes(record: Record) -> list[str]:
    """Where a task of its status must be; one that runs keeps its entry in the stream until it is acknowledged."""
    status, lane = record.status, f"{record.spec.band.name.lower()}:{record.spec.queue}"
    if status is Status.READY and record.place is Place.FRONT:
        return [f"front:{lane}"]
    if status is Status.READY and record.place is Place.SIDE:
        return [f"side:{lane}/{record.spec.type}"]
    if status is Status.READY:
        return [f"stream:{lane}"]
    if status is Status.RUNNING:
        return ["leases", f"stream:{lane}"] if record.place is Place.MAIN else ["leases"]
    if status in ENDS:
        return [f"ended:{status}"]
    return ["delayed" if status in DELAYED and status is Status.PENDING else str(status)]
