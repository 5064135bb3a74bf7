"""The log on Redis: a stream for each partition. Each entry holds the facts of one script call."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import msgspec

from tickwork.model.facts import Event
from tickwork.store.redis.core import Part
from tickwork.store.rules import before_newest, is_about_task, missed
from tickwork.store.unreadable import UNREADABLE, unreadable_fact

STEP_FIRST, STEP_MAX = 20, 500  # entries in one read; later reads go by how many facts the entries have
PIECE = 2_000  # facts in one reply at most, about, so that none is huge
FACTS_AT = 5  # index of the first fact in a group, behind the fields that they share

_groups = msgspec.msgpack.Decoder().decode


class FactLog(Part):
    async def read(self, after: int, limit: int, task_id: str | None = None) -> tuple[list[Event], int]:
        core = self._core
        # All facts about a task are in the log of its own partition.
        logs = core.prefixes if task_id is None else [core.part(task_id)]
        horizon = await self._settle() if len(logs) > 1 else None
        pieces = await asyncio.gather(*(self._events_of(part, after, limit, task_id, horizon) for part in logs))
        dropped = max(piece[1] for piece in pieces)
        if len(pieces) == 1 and core.alone:
            return pieces[0][0], missed(after, dropped)
        found = sorted((event for events, _ in pieces for event in events), key=lambda event: event.seq)
        return found[:limit], 1 if dropped > after else 0  # numbers have gaps, so they cannot be counted

    async def _events_of(
        self, part: str, after: int, limit: int, task_id: str | None, horizon: int | None
    ) -> tuple[list[Event], int]:
        found: list[Event] = []
        dropped = await self._dropped(part)
        start = place = max(after, dropped)
        step, read, facts = STEP_FIRST, 0, 0
        while len(found) < limit:
            entries = await self._core.ask(part, "XRANGE", f"{part}events", f"({place}-0", "+", "COUNT", step)
            for entry in entries:
                events = self._facts_of(entry)
                place, facts = events[-1].seq, facts + len(events)
                if task_id is not None:
                    events = [event for event in events if is_about_task(task_id, event.kind, event.id)]
                found += [event for event in events if event.seq > start] if not read else events
                read += 1
                if len(found) >= limit:
                    break
            if len(entries) < step or (horizon is not None and place > horizon):
                break
            wanted = PIECE if task_id is not None else min(PIECE, limit - len(found))
            step = min(max(wanted * read // facts, 1), STEP_MAX)
        if horizon is not None:  # an entry may hold facts on both sides of it
            found = [event for event in found if event.seq <= horizon]
        return found[:limit], dropped

    async def _settle(self) -> int:
        """The number up to which the logs of several partitions can be read as one. It is that of the newest fact.
        Logs that are behind get it as their last number, so that all later facts have greater ones."""
        core = self._core
        lasts = await asyncio.gather(*(core.ask(part, "GET", f"{part}facts") for part in core.prefixes))
        newest = max(int(last or 0) for last in lasts)
        behind = [part for part, last in zip(core.prefixes, lasts, strict=True) if int(last or 0) < newest]
        await asyncio.gather(*(core.run("settle", part, newest) for part in behind))
        return (newest + 1) * len(core.prefixes) - 1 if newest else 0

    async def _dropped(self, part: str) -> int:
        last, length, first = await self._core.ask_all(
            part,
            [
                ("GET", f"{part}facts"),
                ("XLEN", f"{part}events"),
                ("XRANGE", f"{part}events", "-", "+", "COUNT", 1),
            ],
        )
        before_first = self._first_number(first[0]) - 1 if first else 0
        if self._core.alone:
            return max(before_newest(int(last or 0), self._core.policy.events_max), before_first)
        if self._core.policy.events_max == 0:
            return (int(last or 0) + 1) * len(self._core.prefixes) - 1 if last else 0
        return before_first if length >= self._core.policy.events_max else 0

    async def last(self) -> int:
        if not self._core.alone:
            return await self._settle()
        return int(await self._core.ask(self._core.layout.root, "GET", f"{self._core.layout.root}facts") or 0)

    def _first_number(self, entry: Any) -> int:
        try:
            return _first_of(entry, _groups(entry[1][3]), len(self._core.prefixes))
        except UNREADABLE:
            return int(entry[0].partition(b"-")[0])

    def _facts_of(self, entry: Any) -> list[Event]:
        try:
            return self._read_facts(entry)
        except UNREADABLE as error:
            return [unreadable_fact(int(entry[0].partition(b"-")[0]), error)]

    def _read_facts(self, entry: Any) -> list[Event]:
        at, groups, step = int(entry[1][1]), _groups(entry[1][3]), len(self._core.prefixes)
        number = _first_of(entry, groups, step)
        found = []
        for group in groups:
            kind, name, worker, attempt, detail = group[:FACTS_AT]
            task_type, _, queue = name.partition("\n")
            found += [
                Event(each, at, kind, subject, task_type, queue, worker, attempt, took / 1e6, detail)
                for each, subject, took in zip(count(number, step), group[FACTS_AT::2], group[FACTS_AT + 1 :: 2])
            ]
            number += (len(group) - FACTS_AT) // 2 * step
        return found


def _first_of(entry: Any, groups: Any, step: int) -> int:
    """The number of the first fact of an entry, which itself has that of the last one."""
    last = int(entry[0].partition(b"-")[0])
    return last - (sum((len(group) - FACTS_AT) // 2 for group in groups) - 1) * step
