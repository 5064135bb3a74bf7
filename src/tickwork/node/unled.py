"""Where no node leads, those that only work stand in for what tasks wait for, and say what nobody does."""

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

SPREAD = 0.5  # seconds over which those who heard of the same end take their turns, so that mostly one does the work
WARN_AFTER = 60.0  # an election takes seconds


class StandIn:
    """A duty of a node that does not campaign. While another leads, it does not ask the store for anything."""

    def __init__(self, store: Store, limit: int, bus: Bus, leader: Callable[[], Leader | None], log: Log) -> None:
        self._store = store
        self._limit = limit
        self._bus = bus
        self._leader = leader
        self._log = log
        self._unled_since = time.monotonic()
        self._warned = False

    async def work(self) -> float | None:
        """Tell dependants of the tasks that ended; a leader would do it at once."""
        leader = self._leader()
        if leader is not None:
            self._hear_of(leader)
            return None
        self._miss()
        await asyncio.sleep(random.uniform(0, SPREAD))  # noqa: S311
        return await duties.propagate(self._store, self._limit, self._bus)

    def _hear_of(self, leader: Leader) -> None:
        self._unled_since = time.monotonic()
        if self._warned:
            self._warned = False
            self._log.warning("node %s leads now", name_of(leader.id))

    def _miss(self) -> None:
        seconds = time.monotonic() - self._unled_since
        if seconds >= WARN_AFTER and not self._warned:
            self._warned = True
            self._log.warning(
                "no node has led for %d s: schedules do not run, and ended tasks are not removed; start one that does: "
                "`tickwork up MODULE:APP` or `tickwork up --role scheduler`",
                seconds,
            )
