"""The last runs of each schedule, from the facts about their tasks and about ticks that were left out.

A run is named by its tick, so adding it twice changes nothing. Of very many schedules that fire at once some are
written with the next step; those are lost if this process dies before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice

from tickwork.model import runs as model
from tickwork.model.facts import Event, Fact
from tickwork.model.runs import MISSED, SKIPPED, Run, run_of
from tickwork.model.statistics import Unreadable
from tickwork.store.contract import Store

KINDS = frozenset((Fact.SCHEDULE_SKIPPED, Fact.SCHEDULE_MISSED, Fact.SCHEDULE_DROPPED))
LATE_MAX = 10_000  # runs that have not ended and whose lateness is known
WAITING_MAX = 10_000  # schedules whose runs wait to be written
STEP = 500  # schedules that are written in one step
TOGETHER = 10  # of them at the same time
SWAP_TRIES = 5


class Runs:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._late: dict[str, int] = {}  # by the id of the task
        self._waiting: dict[str, list[Run]] = {}  # by schedule
        self._dropped: set[str] = set()

    def began(self, fact: Event) -> None:
        """A task was submitted that may be a run."""
        if fact.kind == Fact.TASK_SUBMITTED and (run := run_of(fact.id)) is not None:
            self._late[fact.id] = max(fact.at - run[1], 0)
            if len(self._late) > LATE_MAX:
                del self._late[next(iter(self._late))]

    def ended(self, fact: Event, outcome: str) -> None:
        """A task has ended that may be a run."""
        if (run := run_of(fact.id)) is not None:
            schedule, tick, tail = run
            took = fact.duration if fact.duration > 0 and outcome != "cancelled" else None
            self._add(schedule, Run(tick, outcome, tail, self._late.pop(fact.id, None), took))

    def told(self, fact: Event) -> None:
        """Of a schedule: it was removed, or left ticks out."""
        if fact.kind == Fact.SCHEDULE_DROPPED:
            self._waiting.pop(fact.id, None)
            self._dropped.add(fact.id)
        elif fact.kind == Fact.SCHEDULE_SKIPPED:
            self._add(fact.id, Run(fact.at, SKIPPED))
        else:  # its detail begins with the number of ticks
            count = fact.detail.partition(" ")[0]
            self._add(fact.id, Run(fact.at, MISSED, count=int(count) if count.isdecimal() else 1))

    def _add(self, schedule: str, run: Run) -> None:
        if schedule in self._waiting or len(self._waiting) < WAITING_MAX:
            self._waiting.setdefault(schedule, []).append(run)

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    async def save(self) -> None:
        """Write those that wait, as far as one step goes."""
        for dropped in self._dropped:
            await self._change(dropped, None)
        self._dropped.clear()
        names = list(islice(self._waiting, STEP))
        for together in _pieces(names, TOGETHER):
            await asyncio.gather(*(self._write(name, self._waiting[name]) for name in together))
            for name in together:
                del self._waiting[name]

    async def _write(self, schedule: str, more: list[Run]) -> None:
        if await self._store.schedules.get(schedule) is not None:  # else it only looked like a run, or is gone
            await self._change(schedule, more)

    async def _change(self, schedule: str, more: list[Run] | None) -> None:
        """Add runs to those of a schedule; None forgets all of them."""
        mark = model.mark_of(schedule)
        for _ in range(SWAP_TRIES):  # it fails while another leader writes the same
            stored = await self._store.marks.get(mark)
            new = None if more is None else model.text_of(model.joined(_read(stored), more))
            if await self._store.marks.swap(mark, stored, new):
                return


def _read(stored: str | None) -> list[Run]:
    try:
        return [] if stored is None else model.read(stored)
    except Unreadable:  # of a later version, which has gone again
        return []


def _pieces(names: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]
