"""What a node that does not campaign does while no node leads: it releases tasks that wait for others, and warns."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from tickwork.ids import name_of
from tickwork.model.members import Leader
from tickwork.node import duties
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store

SPREAD = 0.5  # seconds: each node waits a random part of it, so that mostly one of them does the work
WARN_AFTER = 60.0  # seconds without a leader; an election takes a few


class StandIn:
    """The duty `stand in`. While another node leads, it makes no call to the store."""

    def __init__(self, store: Store, limit: int, bus: Bus, leader: Callable[[], Leader | None], log: Log) -> None:
        self._store = store
        self._limit = limit
        self._bus = bus
        self._leader = leader
        self._log = log
        self._unled_since = time.monotonic()
        self._warned = False

    async def work(self) -> float | None:
        """Do the leader's duty `propagate` while there is no leader."""
        leader = self._leader()
        if leader is not None:
            self._see_leader(leader)
            return None
        self._see_none()
        await asyncio.sleep(random.uniform(0, SPREAD))  # noqa: S311
        return await duties.propagate(self._store, self._limit, self._bus)

    def _see_leader(self, leader: Leader) -> None:
        self._unled_since = time.monotonic()
        if self._warned:
            self._warned = False
            self._log.warning("node %s leads now", name_of(leader.id))

    def _see_none(self) -> None:
        seconds = time.monotonic() - self._unled_since
        if seconds >= WARN_AFTER and not self._warned:
            self._warned = True
            self._log.warning(
                "no node has led for %d s: schedules do not run, and ended tasks are not removed; start one that does: "
                "`tickwork up MODULE:APP` or `tickwork up --role scheduler`",
                seconds,
            )
