"""The leader's duty: read the log from where it was left, and keep statistics of it in the store.

Every fact is counted once: the mark with the open buckets has the number of the last fact in it, and both change in one
step. A bucket that is closed is written to a mark of its own before that. Whoever reads the same facts closes the same
bucket, so it does not matter who writes it, or whether it is written twice. A leader that was deposed fails to change
the mark, and forgets what it has read.
"""

from __future__ import annotations

import time

from tickwork.config import Config
from tickwork.model.failures import FAILURES, Failures
from tickwork.model.statistics import KEPT, OPEN, SIZES, Grain, Open, Unreadable, mark_of, pack
from tickwork.monitor.runs import Runs
from tickwork.monitor.tally import Tally, Waits
from tickwork.node.duties import Duty
from tickwork.node.parts import Parts
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store

NAME = "statistics"
PAGE = 5_000  # facts in one read
SAVE_EVERY = 2.0  # seconds
PAUSE = 0.25  # seconds between two reads of a log that is read to its end: a busy store fills it in 1.5 seconds
IDLE_PAUSE = 1.0  # and of one to which nothing was added
PRUNE_STEP = 200  # buckets that are removed at a time


def with_statistics(parts: Parts, config: Config, store: Store) -> Parts:
    parts = parts.copy()
    duty = Statistics(store, Log.of(config.logger, NAME))
    parts.duties.append(Duty(NAME, duty.work, IDLE_PAUSE))
    return parts


class Statistics:
    def __init__(self, store: Store, log: Log, save_every: float = SAVE_EVERY) -> None:
        self._store = store
        self._log = log
        self._save_every = save_every
        self._tally: Tally | None = None
        self._stored: str | None = None
        self._stored_failures: str | None = None
        self._saved_at = 0.0
        self._seen = -1  # the last number of the log when it was read to its end
        self._told = ""

    async def work(self) -> float | None:
        tally = self._tally or await self._begin()
        if tally is None:
            return None
        idle, full = await self._read(tally)
        if tally.changed and (time.monotonic() - self._saved_at >= self._save_every):
            await self._save(tally)
        if full:
            return 0
        return IDLE_PAUSE if idle and not tally.changed else PAUSE

    async def _begin(self) -> Tally | None:
        """Go on from what is stored. None if that cannot be read."""
        marks = self._store.marks
        self._stored, self._stored_failures = await marks.get(OPEN), await marks.get(FAILURES)
        try:
            opened = Open(0, 0) if self._stored is None else Open.read(self._stored)
            failures = Failures() if self._stored_failures is None else Failures.read(self._stored_failures)
        except Unreadable as error:
            self._tell(f"no statistics are kept: those in the store cannot be read by this version ({error})")
            return None
        self._tally = Tally(opened, failures, Runs(self._store), Waits())
        self._seen, self._saved_at = -1, time.monotonic()
        return self._tally

    async def _read(self, tally: Tally) -> tuple[bool, bool]:
        """Count a page of facts. Answers whether there were none, and whether there may be more."""
        log, cursor = self._store.log, tally.open.cursor
        last = await log.last()
        if last == self._seen:
            return True, False
        groups, missed = await log.read_groups(cursor, PAGE)
        if missed and cursor:  # those before the first start of statistics are not missed
            at = groups[0].at if groups else self._store.now()
            tally.miss(missed, at)
            if not groups:
                tally.open.cursor = last
            self._tell("statistics: facts left the log before they were read; reports say how many")
        tally.take(groups)
        full = sum(len(facts.ids) for facts in groups) >= PAGE
        if not full:
            self._seen = last
        return not groups, full

    async def _save(self, tally: Tally) -> None:
        try:
            saved = await self._write(tally)
        except BaseException:
            self._tally = None  # what is stored is known only when it is read again
            raise
        if not saved:
            self._tally = None  # another node leads
        tally.changed = tally.runs.waiting
        self._saved_at = time.monotonic()

    async def _write(self, tally: Tally) -> bool:
        marks, opened = self._store.marks, tally.open
        for grain, bucket in opened.closed:
            await marks.swap(mark_of(grain, bucket.start), None, pack(bucket.data()))
            opened.kept[grain].append(bucket.start // SIZES[grain])
        opened.closed.clear()
        await self._prune(opened)
        if tally.failures.changed:
            text = tally.failures.text()
            if not await marks.swap(FAILURES, self._stored_failures, text):
                return False
            self._stored_failures, tally.failures.changed = text, False
        await tally.runs.save()
        text = opened.text()
        if not await marks.swap(OPEN, self._stored, text):
            return False
        self._stored = text
        return True

    async def _prune(self, opened: Open) -> None:
        for grain, numbers in opened.kept.items():
            old = (opened.at - KEPT[grain]) // SIZES[grain]
            gone = [number for number in numbers[:PRUNE_STEP] if number < old]
            for number in gone:
                await self._remove(grain, number * SIZES[grain])
            del numbers[: len(gone)]

    async def _remove(self, grain: Grain, start: int) -> None:
        mark = mark_of(grain, start)
        await self._store.marks.swap(mark, await self._store.marks.get(mark), None)

    def _tell(self, text: str) -> None:
        if text != self._told:  # once, and not with every page
            self._told = text
            self._log.warning("%s", text)
