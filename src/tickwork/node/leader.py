"""Leadership: one node at a time does the duties that are needed once for all nodes.

Nothing depends on it for being correct: with two leaders, or with none for a while, no task is lost or created twice.
A node trusts its leadership for the length of the lease by its own monotonic clock, counted from before it asked the
store. `docs/leadership.md` tells the whole.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.members import Leader
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.observe.observations import LeadershipChanged
from tickwork.store.contract import Store


class Candidate:
    """Asks the store for the leadership again and again, and runs the leader's duties (`lead`) while it has it."""

    def __init__(
        self,
        store: Store,
        node: str,
        lease_ttl: float,
        renew_interval: float,
        lead: Callable[[], Awaitable[None]],
        log: Log | None = None,
        bus: Bus | None = None,
    ) -> None:
        self._log = log or Log.of(None, "leader")
        self._bus = bus or Bus()
        self._store = store
        self._node = node
        self._lease_ttl = lease_ttl
        self._renew_interval = renew_interval
        self._lead = lead
        self._work: asyncio.Task[None] | None = None
        self._trusted_until = 0.0
        self.term: int | None = None

    @property
    def leads(self) -> bool:
        return self.term is not None and time.monotonic() < self._trusted_until

    async def run(self) -> None:
        while True:
            asked_at = time.monotonic()
            try:
                answer = await self._other_leader() or await self._campaign()
            except StoreError as error:
                if isinstance(error, StoreUnavailable):
                    self._store.contact.lost("leader", error)
                else:
                    self._log.warning("cannot campaign for leadership now: %s", error)
                if not self.leads:
                    await self._step_down()
            else:
                self._store.contact.made("leader")
                await self._take_answer(answer, asked_at)
            await asyncio.sleep(self._renew_interval)

    async def _other_leader(self) -> Leader | None:
        """Who leads, if it is another node. To look is much cheaper than to campaign, and there may be many nodes."""
        leader = None if self.term is not None else await self._store.members.leader()
        # A lease with more time left than its own length is from before the clock was set back; `campaign` shortens it.
        if leader is None or leader.id == self._node or leader.until - self._store.now() > leader.ttl:
            return None
        return leader

    async def _campaign(self) -> Leader:
        return await self._store.members.campaign(self._node, round(self._lease_ttl * 1000))

    async def _take_answer(self, answer: Leader, asked_at: float) -> None:
        if answer.id != self._node:
            await self._step_down()
            return
        margin = self._lease_ttl / 10
        self._trusted_until = asked_at + self._lease_ttl - margin
        if self.term != answer.term:
            await self._step_down()
            self.term = answer.term
            self._log.info("this node leads, term %d", answer.term)
            self._bus.publish(LeadershipChanged, LeadershipChanged(self._node, answer.term, True))
            self._work = asyncio.ensure_future(self._lead())

    async def _step_down(self) -> None:
        work, term = self._work, self.term
        self._work = self.term = None
        if work is not None and not work.get_loop().is_closed():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            self._log.info("this node no longer leads")
            self._bus.publish(LeadershipChanged, LeadershipChanged(self._node, term or 0, False))

    async def resign(self) -> None:
        term = self.term
        await self._step_down()
        if term is not None:
            try:
                await self._store.members.resign(self._node, term)
            except StoreError as error:  # the lease will run out by itself
                self._log.warning("could not resign: %s", error)
