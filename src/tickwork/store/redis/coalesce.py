"""Submits that are made at the same time travel together: many coroutines, one script call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from tickwork.model import Durability, Spec
from tickwork.store.base import Receipt

BATCH = 100  # tasks in one call
WEIGHT = 1_000_000  # and bytes of payload

Place = tuple[int, str, Durability]


class Parcel(NamedTuple):
    """A spec, packed for its script before it travels with others: a bad one fails its own caller only."""

    spec: Spec
    args: tuple[Any, ...]


Send = Callable[[str, list[Parcel], Durability], Awaitable[list[Receipt]]]


class Coalescer:
    """For each event loop, prefix and durability: one that comes alone goes at once; those that come while another is
    under way are gathered, and go together in the next round of the loop."""

    def __init__(self, pack: Callable[[Spec], tuple[Any, ...]], send: Send) -> None:
        self._pack = pack
        self._send = send
        self._under_way: Counter[Place] = Counter()
        self._waiting: dict[Place, list[tuple[Parcel, asyncio.Future[Receipt]]]] = {}
        self._sending: set[asyncio.Future[None]] = set()

    async def submit(self, prefix: str, specs: list[Spec], durability: Durability) -> list[Receipt]:
        parcels = [Parcel(spec, self._pack(spec)) for spec in specs]
        if len(parcels) != 1:
            # One piece after the other: a later task may depend on an earlier one.
            return [receipt for piece in pieces_of(parcels) for receipt in await self._send(prefix, piece, durability)]
        loop = asyncio.get_running_loop()
        place = (id(loop), prefix, durability)
        if self._under_way[place]:
            return [await self._join(parcels[0], place, loop)]
        self._under_way[place] += 1
        try:
            return await self._send(prefix, parcels, durability)
        finally:
            self._under_way[place] -= 1

    def _join(self, parcel: Parcel, place: Place, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Receipt]:
        queue = self._waiting.get(place)
        if queue is None:
            queue = self._waiting[place] = []
            loop.call_soon(self._flush, place)
        waiter: asyncio.Future[Receipt] = loop.create_future()
        queue.append((parcel, waiter))
        return waiter

    def _flush(self, place: Place) -> None:
        queue = self._waiting.pop(place)
        start = 0
        for piece in pieces_of([parcel for parcel, _ in queue]):
            waiters = [waiter for _, waiter in queue[start : start + len(piece)]]
            start += len(piece)
            sending = asyncio.ensure_future(self._deliver(place, piece, waiters))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def _deliver(self, place: Place, piece: list[Parcel], waiters: list[asyncio.Future[Receipt]]) -> None:
        try:
            receipts = await self._send(place[1], piece, place[2])
        except Exception as error:
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error)
            return
        for waiter, receipt in zip(waiters, receipts, strict=True):
            if not waiter.done():  # its caller has given up
                waiter.set_result(receipt)


def pieces_of(parcels: list[Parcel]) -> list[list[Parcel]]:
    pieces: list[list[Parcel]] = [[]]
    weight = 0
    for parcel in parcels:
        size = len(parcel.spec.payload)
        if pieces[-1] and (len(pieces[-1]) == BATCH or weight + size > WEIGHT):
            pieces.append([])
            weight = 0
        pieces[-1].append(parcel)
        weight += size
    return pieces if pieces[0] else []
