"""Submits that are made at the same time travel together: many coroutines, one script call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from tickwork.model import Durability, Spec
from tickwork.store.base import Receipt

BATCH = 100  # tasks in one call
SHARE = 50  # of those that are gathered: while the store works on one half, the other is made
WEIGHT = 1_000_000  # bytes of payload in one call

Place = tuple[int, str, Durability]
Args = tuple[Any, ...]
Send = Callable[[str, list[Spec], list[Args], Durability], Awaitable[list[Receipt]]]


class Coalescer:
    """For each event loop, prefix and durability: one that comes alone goes at once; those that come while another is
    under way are gathered, and go together in the next round of the loop."""

    def __init__(self, pack: Callable[[Spec], Args], send: Send) -> None:
        self._pack = pack
        self._send = send
        self._under_way: Counter[Place] = Counter()
        self._waiting: dict[Place, list[tuple[Spec, Args, asyncio.Future[Receipt]]]] = {}
        self._sending: set[asyncio.Future[None]] = set()

    async def submit(self, prefix: str, specs: list[Spec], durability: Durability) -> list[Receipt]:
        if len(specs) != 1:
            return await self._submit_many(prefix, specs, durability)
        packed = self._pack(specs[0])  # before it travels with others: a bad one fails its own caller only
        loop = asyncio.get_running_loop()
        place = (id(loop), prefix, durability)
        if self._under_way[place]:
            return [await self._join(specs[0], packed, place, loop)]
        self._under_way[place] += 1
        try:
            return await self._send(prefix, specs, [packed], durability)
        finally:
            self._under_way[place] -= 1

    async def _submit_many(self, prefix: str, specs: list[Spec], durability: Durability) -> list[Receipt]:
        async def send(piece: list[Spec]) -> list[Receipt]:
            return await self._send(prefix, piece, list(map(self._pack, piece)), durability)

        pieces = pieces_of(specs)
        if any(spec.depends_on for spec in specs):  # perhaps on one that comes before it
            return [receipt for piece in pieces for receipt in await send(piece)]
        answers = await asyncio.gather(*map(send, pieces), return_exceptions=True)
        receipts: list[Receipt] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            receipts += answer
        return receipts

    def _join(self, spec: Spec, packed: Args, place: Place, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Receipt]:
        queue = self._waiting.get(place)
        if queue is None:
            queue = self._waiting[place] = []
            loop.call_soon(self._flush, place)
        waiter: asyncio.Future[Receipt] = loop.create_future()
        queue.append((spec, packed, waiter))
        if len(queue) == SHARE:
            self._flush(place)
        return waiter

    def _flush(self, place: Place) -> None:
        queue = self._waiting.pop(place, [])
        start = 0
        for piece in pieces_of([spec for spec, _, _ in queue]):
            end = start + len(piece)
            sending = asyncio.ensure_future(self._deliver(place, queue[start:end]))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
            start = end

    async def _deliver(self, place: Place, queue: list[tuple[Spec, Args, asyncio.Future[Receipt]]]) -> None:
        _, prefix, durability = place
        try:
            receipts = await self._send(
                prefix, [spec for spec, _, _ in queue], [args for _, args, _ in queue], durability
            )
        except Exception as error:
            for _, _, waiter in queue:
                if not waiter.done():
                    waiter.set_exception(error)
            return
        for (_, _, waiter), receipt in zip(queue, receipts, strict=True):
            if not waiter.done():  # its caller has given up
                waiter.set_result(receipt)


def pieces_of(specs: list[Spec]) -> list[list[Spec]]:
    pieces: list[list[Spec]] = []
    weight = 0
    for spec in specs:
        size = len(spec.payload)
        if not pieces or len(pieces[-1]) == BATCH or weight + size > WEIGHT:
            pieces.append([])
            weight = 0
        pieces[-1].append(spec)
        weight += size
    return pieces
