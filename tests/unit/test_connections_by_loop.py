"""Connections of event loops that come and go in several threads."""

from __future__ import annotations

import asyncio
from typing import Any

from tickwork.store.redis.net.by_loop import ConnectionsByLoop, LoopConnections


class Wire:
    """One whose end takes long enough for another thread to look at the same loops."""

    def __init__(self, others: list[ConnectionsByLoop]) -> None:
        self._others = others
        self.ends = 0

    def abandon(self) -> None:
        self.ends += 1
        for each in self._others:
            each._forget_closed_loops()


def test_closed_loops_are_forgotten_by_two_at_once() -> None:
    of_all: list[ConnectionsByLoop] = []
    wires: list[Wire] = []

    def make() -> Any:
        wires.append(Wire(of_all))
        return LoopConnections(wires[-1], None)  # type: ignore[arg-type]

    connections = ConnectionsByLoop(make, "redis://x")

    async def ask() -> None:
        connections.here()

    loops = [asyncio.new_event_loop() for _ in range(3)]
    for loop in loops:
        loop.run_until_complete(ask())
    of_all.append(connections)
    for loop in loops:
        loop.close()
    asyncio.run(ask())
    assert [wire.ends for wire in wires] == [1, 1, 1, 0]
