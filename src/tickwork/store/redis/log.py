"""The log on Redis: a stream for each partition. Each entry holds the facts of one script call."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import msgspec

from tickwork.model.facts import Event, Facts, grouped
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

    async def read_groups(self, after: int, limit: int) -> tuple[list[Facts], int]:
        core = self._core
        if not core.alone:
            events, count = await self.read(after, limit)
            return grouped(events), count
        found: list[Facts] = []
        dropped, left = await self._dropped(core.layout.root), limit
        start = max(after, dropped)

        def take(groups: list[Facts]) -> int:
            nonlocal found, left
            if groups[0].numbers[0] <= start:  # only the first entry may have facts on both sides
                groups = grouped([event for facts in groups for event in facts.events() if event.seq > start])
            found += groups
            left -= sum(len(facts.ids) for facts in groups)
            return left

        await self._walk(core.layout.root, start, take)
        return found, missed(after, dropped)

    async def _events_of(
        self, part: str, after: int, limit: int, task_id: str | None, horizon: int | None
    ) -> tuple[list[Event], int]:
        found: list[Event] = []
        dropped = await self._dropped(part)
        start, end = max(after, dropped), math.inf if horizon is None else horizon

        def take(groups: list[Facts]) -> int:
            nonlocal found
            for facts in groups:
                if task_id is None or any(is_about_task(task_id, facts.kind, each) for each in facts.ids):
                    events = [event for event in facts.events() if start < event.seq <= end]
                    found += [
                        event for event in events if task_id is None or is_about_task(task_id, event.kind, event.id)
                    ]
            if groups[-1].numbers[-1] > end or len(found) >= limit:
                return 0
            return limit - len(found) if task_id is None else PIECE

        await self._walk(part, start, take)
        return found[:limit], dropped

    async def _walk(self, part: str, place: int, take: Callable[[list[Facts]], int]) -> None:
        """Hand the groups of each entry that has facts after this place to `take`, until it wants no more facts; it
        answers how many it wants."""
        step, read, facts = STEP_FIRST, 0, 0
        while True:
            entries = await self._core.ask(part, "XRANGE", f"{part}events", f"({place}-0", "+", "COUNT", step)
            for entry in entries:
                groups = self._groups_of(entry)
                place, read = groups[-1].numbers[-1], read + 1
                facts += sum(len(group.ids) for group in groups)
                wanted = take(groups)
                if wanted <= 0:
                    return
            if len(entries) < step:
                return
            step = min(max(min(wanted, PIECE) * read // facts, 1), STEP_MAX)

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

    def _groups_of(self, entry: Any) -> list[Facts]:
        try:
            return self._read_groups(entry)
        except UNREADABLE as error:
            return grouped([unreadable_fact(int(entry[0].partition(b"-")[0]), error)])

    def _read_groups(self, entry: Any) -> list[Facts]:
        at, groups, step = int(entry[1][1]), _groups(entry[1][3]), len(self._core.prefixes)
        number = _first_of(entry, groups, step)
        found = []
        for group in groups:
            kind, name, worker, attempt, detail = group[:FACTS_AT]
            task_type, _, queue = name.partition("\n")
            ids, seconds = group[FACTS_AT::2], [took / 1e6 for took in group[FACTS_AT + 1 :: 2]]
            if not ids or len(ids) != len(seconds):
                raise ValueError("a group of facts has none, or a part of one")
            end = number + len(ids) * step
            found.append(
                Facts(range(number, end, step), at, kind, task_type, queue, worker, attempt, detail, ids, seconds)
            )
            number = end
        return found


def _first_of(entry: Any, groups: Any, step: int) -> int:
    """The number of the first fact of an entry, which itself has that of the last one."""
    last = int(entry[0].partition(b"-")[0])
    return last - (sum((len(group) - FACTS_AT) // 2 for group in groups) - 1) * step
