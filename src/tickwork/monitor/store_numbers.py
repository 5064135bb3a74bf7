"""Numbers of the whole namespace, read from its store at most once in a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection

from tickwork.client.breakers import unclosed
from tickwork.errors import TickworkError
from tickwork.model.tasks import Status
from tickwork.monitor.tallies import NAMES_MAX, OTHER, Bounded
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store
from tickwork.timeouts import TimeLimit

READ_MAX = 5.0  # seconds that a reader of metrics waits for the store
BREAKER = "default"  # the name that is shown while there is no breaker
HOLDERS = ("limit", "breaker", "switch")  # gates are named so, before a colon
CROWDED_MAX = 1000  # gates whose tasks are counted, of those at which most wait
BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}


class QueueNumbers:
    __slots__ = ("age", "size")

    def __init__(self) -> None:
        self.size = 0
        self.age = 0.0  # seconds since which the first of its ready tasks waits


class StoreNumbers:
    """As they were when they were last read. A queue that was seen once stays, also when it is empty."""

    def __init__(
        self, store: Store, interval: float, log: Log, queues: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.statuses = dict.fromkeys(Status, 0)
        self.queues = Bounded(QueueNumbers, queues or (OTHER,))
        self.workers = 0
        self.dropped = 0
        self.breakers: dict[str, int] = Bounded(int, (BREAKER,))
        self.held = dict.fromkeys(HOLDERS, 0)
        self.is_up = True
        self._store = store
        self._interval = interval
        self._log = log
        self._clock = clock
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    async def refresh(self) -> None:
        """Read them, unless that was done within the interval. If the store does not answer, the last ones stay."""
        async with self._reading:  # who comes meanwhile takes what the first one finds
            now = self._clock()
            if self._read_at is not None and now - self._read_at < self._interval:
                return
            self._read_at = now
            try:
                with TimeLimit(READ_MAX, makes_up=True):
                    await self._read()
            except (TickworkError, TimeoutError) as error:
                if self.is_up:
                    self._log.warning("metrics show old numbers of the store: %s", error or "it does not answer")
                self.is_up = False
            else:
                self.is_up = True

    async def _read(self) -> None:
        queries = self._store.queries
        stats, since = await queries.stats(), await queries.waiting_since()
        now = self._store.now()
        self.statuses = {status: stats.statuses.get(status, 0) for status in Status}
        self.workers, self.dropped = stats.workers, stats.dropped
        queues = Bounded(QueueNumbers, self.queues)  # a new one, since another thread may read the old one
        for (name, _), size in stats.ready.items():  # also those in side lanes
            queues[name].size += size
        for name, at in since.items():
            queues[name].age = max(queues[name].age, (now - at) / 1000)
        self.queues = queues
        breakers = Bounded(int, self.breakers)  # one that was open once stays, as closed
        for breaker in await unclosed(self._store):
            name = breaker.of if breaker.of in breakers or len(breakers) < NAMES_MAX else OTHER
            breakers[name] = max(breakers.get(name, 0), BREAKER_STATES[breaker.state])
        self.breakers = breakers
        held = dict.fromkeys(HOLDERS, 0)
        for gate, count in await self._store.gates.crowded(CROWDED_MAX):
            held[gate.partition(":")[0]] += count
        self.held = held
