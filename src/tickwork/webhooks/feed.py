"""The leader's duty: read the log from where it was left, and submit the deliveries of what the webhooks want.

How far it has come is a mark in the store for each webhook, moved on after the deliveries were submitted. Deliveries
are named by the number of their fact, so a leader that reads some facts again submits nothing twice; and one that is
late cannot move the mark of another, since it compares and sets.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import groupby

from msgspec.structs import replace

from tickwork.config.webhooks import Webhook
from tickwork.model.facts import Event
from tickwork.model.tasks import Spec
from tickwork.observe.loggers import Log
from tickwork.store.contract import SUBMIT_MAX, Store
from tickwork.webhooks.events import delivery, delivery_id, wants

READ_MAX = 500  # facts in one read
PAUSE = 0.05  # seconds between two reads of a log that is read to its end
SAVE_EVERY = 5.0  # seconds between two writes of a mark that has only passed over facts
SWEEP_EVERY = 10.0  # seconds between two looks at which deliveries have ended
SWEEP_SOON = 1.0  # the same while a webhook has as many as it may have
SWEEP_STEP = 100  # deliveries that are asked for at a time


def mark_of(name: str) -> str:
    return f"webhook:{name}"


class Feed:
    """How far one webhook has come.

    The mark holds two numbers: all facts up to `read` have led to their deliveries, and those of facts up to the second
    one have ended. A new leader begins at the second one, so that it knows again which deliveries still wait.
    """

    def __init__(self, hook: Webhook, namespace: str, store: Store, log: Log) -> None:
        self.hook = hook
        self.place = 0
        self._namespace = namespace
        self._store = store
        self._log = log
        self._mark = mark_of(hook.name)
        self._saved: str | None = None
        self._saved_at = 0.0
        self._swept_at = 0.0
        self._read = 0
        self._waiting: dict[int, str] = {}  # by the number of its fact, the oldest first: what the fact is about
        self._last: dict[str, int] = {}  # what a fact is about -> its last fact of these
        self._told_of_quota = False

    @property
    def room(self) -> int:
        return self.hook.quota - len(self._waiting)

    async def begin(self) -> None:
        """Go on from the mark, if another leader has moved it, or if this one has failed in the middle."""
        stored = await self._store.marks.get(self._mark)
        if stored is None:  # a new webhook is told of what happens from now on
            last = await self._store.log.last()
            stored = f"{last} {last}"
            if not await self._store.marks.swap(self._mark, None, stored):
                return await self.begin()
        if stored != self._saved:
            self._read, self.place = map(int, stored.split())
            self._saved, self._saved_at = stored, time.monotonic()
            self._swept_at = 0.0
            self._waiting.clear()
            self._last.clear()
        if self._waiting:
            await self._sweep()
        return None

    async def _sweep(self) -> None:
        """Forget the deliveries that have ended."""
        soon = SWEEP_SOON if self.room <= 0 else SWEEP_EVERY
        if time.monotonic() - self._swept_at < soon:
            return
        numbers = list(self._waiting)
        for start in range(0, len(numbers), SWEEP_STEP):
            some = numbers[start : start + SWEEP_STEP]
            ids = [delivery_id(self.hook.name, number) for number in some]
            records = await asyncio.gather(*(self._store.queries.get(task_id) for task_id in ids))
            for number, record in zip(some, records, strict=True):
                if record is None or record.status.ended:
                    about = self._waiting.pop(number)
                    if self._last.get(about) == number:
                        del self._last[about]
        self._swept_at = time.monotonic()
        self._tell_quota()

    def _tell_quota(self) -> None:
        full = self.room <= 0
        if full and not self._told_of_quota:
            self._log.warning(
                "webhook %s has %d deliveries that wait, as many as its quota: further events wait in the log",
                self.hook.name, len(self._waiting),
            )  # fmt: skip
        self._told_of_quota = full

    async def take(self, facts: Sequence[Event], missed: int) -> None:
        """Submit the deliveries of these facts, as far as there is room, and move the mark on."""
        if missed and self.place < self._read:
            self.place = self._read  # they had led to their deliveries
            return
        if missed:
            self._log.error(
                "webhook %s: %d facts were dropped from the log before they were read, so events are lost; the webhook "
                "was behind, or nobody led", self.hook.name, missed,
            )  # fmt: skip
            self.place = facts[0].seq - 1 if facts else await self._store.log.last()
        try:
            specs = self._deliveries(facts)
            await self._submit(specs)
            self._read = max(self._read, self.place)
            await self._save(at_once=bool(specs))
        except BaseException:
            self._saved = None  # it is read again from the mark, as what is known here may be ahead of it
            raise

    def _deliveries(self, facts: Sequence[Event]) -> list[Spec]:
        specs = []
        for fact in facts:
            if wants(self.hook, fact):
                if self.room <= 0:
                    break
                about = f"{fact.kind.partition('.')[0]} {fact.id}"
                if fact.seq > self._read:
                    specs.append(delivery(self.hook, self._namespace, fact, self._last.get(about)))
                self._waiting[fact.seq] = about
                self._last[about] = fact.seq
            self.place = fact.seq
        return specs

    async def _submit(self, specs: list[Spec]) -> None:
        for start in range(0, len(specs), SUBMIT_MAX):
            rest = specs[start : start + SUBMIT_MAX]
            while rest:
                receipts = await self._store.tasks.submit(rest)
                orphans = {receipt.id: receipt.other for receipt in receipts if receipt.verdict == "orphan"}
                gone = set(orphans.values()) - {spec.id for spec in rest}  # the one before has ended and was removed
                rest = [
                    replace(spec, depends_on=()) if orphans[spec.id] in gone else spec
                    for spec in rest
                    if spec.id in orphans
                ]

    async def _save(self, at_once: bool) -> None:
        if not at_once and time.monotonic() - self._saved_at < SAVE_EVERY:
            return
        ended = next(iter(self._waiting)) - 1 if self._waiting else self.place
        new = f"{self._read} {ended}"
        moved = await self._store.marks.swap(self._mark, self._saved, new)
        self._saved, self._saved_at = new if moved else None, time.monotonic()


class Feeder:
    """The duty over all webhooks. Those that are at the same place share one read."""

    def __init__(self, hooks: Sequence[Webhook], namespace: str, store: Store, log: Log) -> None:
        self._feeds = [Feed(hook, namespace, store, log) for hook in hooks]
        self._store = store

    async def work(self) -> float | None:
        for feed in self._feeds:
            await feed.begin()
        more = False
        ready = sorted((feed for feed in self._feeds if feed.room > 0), key=lambda feed: feed.place)
        for place, together in groupby(ready, key=lambda feed: feed.place):
            facts, missed = await self._store.log.read(place, READ_MAX)
            for feed in list(together):
                await feed.take(facts, missed)
                more |= feed.place != place and feed.room > 0 and (len(facts) == READ_MAX or bool(missed))
        if more:
            return 0
        await asyncio.sleep(PAUSE)
        return None
