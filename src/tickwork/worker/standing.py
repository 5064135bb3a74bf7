"""The standing claim of an idle worker: it waits in the store, and is answered with tasks the moment there are some.

It has a coroutine of its own, beside the turns of the exchange, and holds slots until it is answered. If its answer is
lost, the same claim is made in the usual way until that is answered. So whatever it was granted is known here before
the worker stands again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Protocol, cast

from msgspec.structs import replace

from tickwork.config import Config
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.store.contract import STANDING_TURN, Claim, Claimed, StandingTasks, Store
from tickwork.worker.sources import Sources

STAND_MAX = 10  # tasks: so many can be granted to a host that has vanished, and wait for the end of their lease
STAND_TIME = 2.0  # seconds that a claim stands; for so long after its end a host can still be granted tasks
BESIDE_MAX = 2  # tasks, where some run already: these could block the event loop, and with it whatever is granted
DUE_SLOTS = 2  # for tasks that become due while it stands; a claim for one, once filled, has others look for more
LINGER = 0.001  # seconds that a worker waits for outcomes of what has just begun, before it stands beside it
AGAIN_MAX = 0.5  # longest pause in seconds between two questions for an answer that was lost


class Slots(Protocol):
    """The worker, as its standing claim sees it."""

    capacity: int

    @property
    def free(self) -> int: ...
    @property
    def wanted(self) -> frozenset[str]: ...
    @property
    def crowded(self) -> frozenset[str]: ...
    @property
    def sources(self) -> Sources: ...


class Standing:
    """`next_claim` makes a claim of a turn for so many tasks; `take` is called with an answer and its claim."""

    def __init__(
        self,
        slots: Slots,
        store: Store,
        config: Config,
        next_claim: Callable[[int, int], Claim],
        take: Callable[[Claimed, Claim], None],
    ) -> None:
        self.claim: Claim | None = None  # stands, or its answer was lost and is asked for again
        self._slots = slots
        self._contact = store.contact
        self._tasks = cast("StandingTasks", store.tasks)
        self._config = config
        self._next_claim = next_claim
        self._take = take
        self._wanted: asyncio.Future[None] | None = None
        self._recalling: asyncio.Task[None] | None = None
        self._recalled = False
        self._rests_until = 0.0  # by the monotonic clock: it was refused, or its answer was lost
        self._lingers_until = 0.0

    def stand(self, free: int, due_at: float, now: float) -> float | None:
        """Stand, if this worker may. Answers how long it can wait until it has to be asked again, None if it waits for
        work in the usual way. `due_at` says when a delayed task is due."""
        if self.claim is not None:
            return self._time_left(self.claim, due_at, now)
        if free <= 0 or now < self._rests_until:
            return None
        limit = STAND_MAX if self._slots.sources.queues else free  # what was assigned waits for this worker anyway
        if self._slots.free < self._slots.capacity:
            if now < self._lingers_until:
                return self._lingers_until - now
            limit = min(limit, BESIDE_MAX) if self._slots.sources.queues else free
        limit = min(limit, self._config.batch_size, free - (DUE_SLOTS if due_at <= now + STAND_TIME else 0))
        if limit <= 0:
            return None
        self.claim, self._recalled = self._next_claim(STANDING_TURN, limit), False
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)
        return self._time_left(self.claim, due_at, now)

    def _time_left(self, claim: Claim, due_at: float, now: float) -> float:
        pause, spare = STAND_TIME, self._slots.free - claim.limit
        # It must not be granted anything any more, or it holds the slots of what has become due.
        changed = self._slots.wanted is not claim.types or self._slots.crowded is not claim.front_only
        if spare < 0 or changed or (spare == 0 and due_at <= now):
            self.recall()
            pause = self._config.scan_interval
        return min(pause, due_at - now) if due_at > now else pause

    def recall(self) -> None:
        """Have a claim that stands answered now, as it must not be granted anything any more."""
        if self.claim is not None and (self._recalling is None or self._recalling.done()):
            self._recalled = True
            self._recalling = asyncio.ensure_future(self._try_recall(self.claim))

    async def _try_recall(self, claim: Claim) -> None:
        with contextlib.suppress(StoreError):  # it is answered at the latest when its time is over
            await self._tasks.recall(claim)

    async def run(self) -> None:
        try:
            while True:
                if self.claim is None:
                    self._wanted = asyncio.get_running_loop().create_future()
                    await self._wanted
                else:
                    answer, claim = await self._answer(self.claim)
                    self.claim = None
                    self._lingers_until = time.monotonic() + LINGER
                    self._take(answer, claim)
        finally:
            if self._recalling is not None:
                self._recalling.cancel()

    async def _answer(self, claim: Claim) -> tuple[Claimed, Claim]:
        """An answer, and the claim that it answers: one for no more tasks if this one was recalled, refused, or its
        answer lost, which says nothing of what there is to do."""
        for_no_more = replace(claim, limit=0)
        stood_from = time.monotonic()
        try:
            claimed = await self._tasks.stand(claim, min(STAND_TIME, self._config.lease_ttl / 5))
        except StoreUnavailable:
            claimed = await self._ask_again(for_no_more)
        else:
            # A process that was stopped meanwhile may read an answer whose leases have run out.
            if claimed is not None and time.monotonic() - stood_from > self._config.lease_ttl / 2:
                claimed = await self._ask_again(for_no_more)
            if claimed is not None:
                return claimed, for_no_more if self._recalled else claim
        self._rests_until = time.monotonic() + self._config.scan_interval
        return claimed or Claimed([]), for_no_more

    async def _ask_again(self, claim: Claim) -> Claimed:
        who, pause = f"the standing claim of {claim.worker_id}", 0.05
        try:
            while True:
                try:
                    claimed = await self._tasks.claim(claim)
                except StoreUnavailable as error:
                    self._contact.lost(who, error)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, AGAIN_MAX)
                else:
                    self._contact.made(who)
                    return claimed
        finally:
            self._contact.forget(who)
