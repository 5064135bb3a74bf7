"""Indexes of lists: all tasks, and those of each type, queue and key, in the order of submits.

They are sorted sets that scripts keep while `layout` says so (`lua/parts/layout.lua`). Each partition has its own; a
list merges them by the time of the submit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from tickwork.model.tasks import Record
from tickwork.store.contract import PAGE_MAX, Query
from tickwork.store.redis.core import Core, Part
from tickwork.store.redis.keys import VERSION
from tickwork.store.redis.ops.audit import Audit
from tickwork.store.redis.records import unpack
from tickwork.store.rules import matches, not_a_cursor

STEP = 100  # tasks that are read, or indexed, in one call
ROUNDS_MIN = 2  # in which all homes are read
CURSOR = "index"
NEWEST = 2**63  # later than any time
BUILDING, BUILT, NOT_KEPT = "b", "i", ""  # what stands behind the version in `layout`
INDEXED = f"{VERSION}{BUILT}".encode()


class Found(NamedTuple):
    submitted_at: int
    seq: int
    part: int
    record: Record | None  # None: it was removed since the index was read, or does not match


class Indexes(Part):
    def __init__(self, core: Core, audit: Audit) -> None:
        super().__init__(core)
        self._audit = audit

    async def are_kept(self) -> bool:
        """Whether lists are indexed: the first partition is the last one that says so."""
        part = self._core.layout.parts[0]
        return bool(await self._core.ask(part, "GET", f"{part}layout") == INDEXED)

    # --- on and off

    async def keep(self, on: bool, report: Callable[[int], None] | None = None) -> bool:
        parts = self._core.layout.parts
        if not on:
            return any([await self._stop(part) for part in parts])
        changed = [await self._begin(part) for part in parts]
        added = await self._build(report or (lambda count: None))
        changed += [await self._switch(part, BUILT) for part in reversed(parts)]
        return any(changed) or added > 0

    async def _switch(self, part: str, state: str) -> bool:
        return bool(await self._core.run("index_switch", part, state))

    async def _begin(self, part: str) -> bool:
        await self._drop(part)  # what is left if a stop was cut short
        return await self._switch(part, BUILDING)

    async def _stop(self, part: str) -> bool:
        changed = await self._switch(part, NOT_KEPT)
        return await self._drop(part) or changed

    async def _drop(self, part: str) -> bool:
        """Remove the indexes, unless they are kept. Whether there were some."""
        found = False
        while names := await self._core.ask(part, "SRANDMEMBER", f"{part}indexes", STEP):
            if not await self._core.run("index_drop", part, *names):
                break
            found = True
        return found

    async def _build(self, report: Callable[[int], None]) -> int:
        """Index the tasks that are there already. A task that is submitted meanwhile is indexed by its submit. One that
        goes from a home that is not read yet to one that was read is not seen, so all are read once more, and again
        until none is new."""
        count, before, rounds = 0, 0, 0
        while rounds < ROUNDS_MIN or count > before:
            before, rounds = count, rounds + 1
            for part in self._core.layout.parts:
                async for ids in self._ids(part):
                    count += await self._core.run("index", part, *ids)
                    report(count)
        return count

    async def _ids(self, part: str) -> AsyncIterator[list[str]]:
        ids: list[str] = []
        async for task_id, _, _ in self._audit.all_homes(part):
            ids.append(task_id)
            if len(ids) == STEP:
                yield ids
                ids = []
        if ids:
            yield ids

    # --- lists

    def name_for(self, query: Query) -> str:
        """The index that looks at the fewest tasks."""
        if query.key is not None:
            return f"index:key:{query.key}"
        if query.type is not None:
            return f"index:type:{query.type}"
        return "index:all" if query.queue is None else f"index:queue:{query.queue}"

    async def size(self, query: Query) -> int:
        name = self.name_for(query)
        counts = (self._core.ask(part, "ZCARD", part + name) for part in self._core.layout.parts)
        return sum(await asyncio.gather(*counts))

    async def page(self, query: Query) -> tuple[list[Record], str | None]:
        """The newest tasks first. The cursor holds the place in each partition: the last number that was shown."""
        places = self._read_cursor(query)
        name = self.name_for(query)
        found: list[Record] = []
        # Every partition must be read before the first task is shown, and all together may look at `PAGE_MAX`.
        looked, step = 0, min(max(query.limit, 1), STEP, PAGE_MAX // (2 * len(places)))
        heads: list[list[Found]] = [[] for _ in places]
        ended = [place == 0 for place in places]
        while len(found) < query.limit:
            for part, head in enumerate(heads):
                if not head and not ended[part] and looked < PAGE_MAX:
                    step = min(step, PAGE_MAX - looked)
                    heads[part] = await self._read(part, name, places[part], step, query)
                    looked += len(heads[part])
                    ended[part] = len(heads[part]) < step
            if not all(head or over for head, over in zip(heads, ended, strict=True)):
                break  # no more may be looked at, and the next one could be in a partition that was not read
            ready = [head[0] for head in heads if head]
            if not ready:
                return found, None
            newest = max(ready, key=lambda each: each[:3])
            heads[newest.part].pop(0)
            places[newest.part] = newest.seq
            if newest.record is not None:
                found.append(newest.record)
            for part, head in enumerate(heads):
                if not head and ended[part]:
                    places[part] = 0
        if not any(places):
            return found, None
        return found, ".".join((CURSOR, *("" if place is None else str(place) for place in places)))

    async def _read(self, part: int, name: str, before: int | None, count: int, query: Query) -> list[Found]:
        prefix = self._core.layout.parts[part]
        start = "+inf" if before is None else f"({before}"
        members = await self._core.ask(
            prefix, "ZREVRANGEBYSCORE", prefix + name, start, "-inf", "WITHSCORES", "LIMIT", 0, count
        )
        ids = [member.decode() for member in members[::2]]
        values = await self._core.ask(prefix, "MGET", *(f"{prefix}task:{each}" for each in ids)) if ids else []
        found: list[Found] = []
        last = NEWEST  # of one that was removed the time is unknown: it must not keep back those behind it
        for task_id, seq, value in zip(ids, members[1::2], values, strict=True):
            record = None if value is None else unpack(task_id, value)
            last = last if record is None else record.submitted_at
            if record is not None and not matches(record, query):
                record = None
            found.append(Found(last, int(float(seq)), part, record))
        await self._core.read_leases(prefix, [each.record for each in found if each.record is not None])
        return found

    def _read_cursor(self, query: Query) -> list[int | None]:
        count = len(self._core.layout.parts)
        if not query.cursor:
            return [None] * count
        kind, *places = query.cursor.split(".")
        if kind != CURSOR or len(places) != count or not all(place == "" or place.isdecimal() for place in places):
            raise not_a_cursor(query.cursor)
        return [None if place == "" else int(place) for place in places]
