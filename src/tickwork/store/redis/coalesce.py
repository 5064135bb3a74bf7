"""Submits that are made at the same time travel together: many coroutines, one script call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tickwork.model import Durability, Spec
from tickwork.store.base import Receipt

BATCH = 100  # tasks in one call
WEIGHT = 1_000_000  # and bytes of payload

Send = Callable[[str, list[Spec], Durability], Awaitable[list[Receipt]]]
Place = tuple[int, str, Durability]


class Coalescer:
    """One queue for each event loop, prefix and durability; it is sent in the next round of the loop."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._sending: set[asyncio.Future[None]] = set()
        self._waiting: dict[Place, list[tuple[list[Spec], asyncio.Future[list[Receipt]]]]] = {}

    async def submit(self, prefix: str, specs: list[Spec], durability: Durability) -> list[Receipt]:
        if len(specs) > 1:
            return await self._in_pieces(prefix, specs, durability)
        loop = asyncio.get_running_loop()
        place = (id(loop), prefix, durability)
        queue = self._waiting.get(place)
        if queue is None:
            queue = self._waiting[place] = []
            loop.call_soon(self._flush, place)
        waiter: asyncio.Future[list[Receipt]] = loop.create_future()
        queue.append((specs, waiter))
        return await waiter

    async def _in_pieces(self, prefix: str, specs: list[Spec], durability: Durability) -> list[Receipt]:
        pieces = list(_pieces(specs))
        # One after the other: a later task may depend on an earlier one.
        return [receipt for piece in pieces for receipt in await self._send(prefix, piece, durability)]

    def _flush(self, place: Place) -> None:
        queue = self._waiting.pop(place)
        for start in range(0, len(queue), BATCH):
            sending = asyncio.ensure_future(self._deliver(place, queue[start : start + BATCH]))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def _deliver(self, place: Place, batch: list[tuple[list[Spec], asyncio.Future[list[Receipt]]]]) -> None:
        try:
            receipts = iter(await self._send(place[1], [spec for specs, _ in batch for spec in specs], place[2]))
        except Exception as error:
            for _, waiter in batch:
                if not waiter.done():
                    waiter.set_exception(error)
            return
        for specs, waiter in batch:
            own = [next(receipts) for _ in specs]
            if not waiter.done():  # its caller has given up
                waiter.set_result(own)


def _pieces(specs: list[Spec]) -> list[list[Spec]]:
    pieces: list[list[Spec]] = [[]]
    weight = 0
    for spec in specs:
        if pieces[-1] and (len(pieces[-1]) == BATCH or weight + len(spec.payload) > WEIGHT):
            pieces.append([])
            weight = 0
        pieces[-1].append(spec)
        weight += len(spec.payload)
    return pieces if pieces[0] else []
