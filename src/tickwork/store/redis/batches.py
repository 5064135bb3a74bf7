"""Batches of submits: tasks that many coroutines submit at the same time are sent in one script call."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator

from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.contract import Receipt
from tickwork.store.redis.core import Core
from tickwork.store.redis.creating import Args, create, submit_args
from tickwork.store.redis.short import ShortSubmit

BATCH = 100  # tasks in one call
SHARE = 50  # gathered submits that are sent at once: Redis works on them while others are being made
WEIGHT = 1_000_000  # bytes in one call

Place = tuple[int, str, Durability]
Gathered = tuple[Spec, Args, "asyncio.Future[Receipt]"]


class Coalescer:
    """Gathers submits, separately for each event loop, prefix and durability. A submit is sent at once if no other is
    under way. Otherwise it is gathered, and all gathered ones are sent in the next iteration of the event loop."""

    def __init__(self, core: Core, short: ShortSubmit) -> None:
        self._core = core
        self._short = short
        self._under_way: Counter[Place] = Counter()
        self._waiting: dict[Place, list[Gathered]] = {}
        self._sending: set[asyncio.Future[None]] = set()

    async def submit(self, prefix: str, specs: list[Spec], durability: Durability, watch: str = "") -> list[Receipt]:
        if len(specs) != 1:
            return await self._submit_many(prefix, specs, durability)
        packed = submit_args(specs[0], watch=watch)  # before it joins a batch: an error concerns only its own caller
        loop = asyncio.get_running_loop()
        place = (id(loop), prefix, durability)
        if self._under_way[place]:
            return [await self._join(specs[0], packed, place, loop)]
        self._under_way[place] += 1
        try:
            if durability == "memory" and await self._short.create(prefix, specs[0], packed):
                return [Receipt(specs[0].id, "created")]
            return await create(self._core, prefix, specs, [packed], durability)
        finally:
            self._under_way[place] -= 1

    async def _submit_many(self, prefix: str, specs: list[Spec], durability: Durability) -> list[Receipt]:
        """Send one piece after another, so that the order is kept. Each is packed while Redis works on the one
        before."""
        for spec in specs:
            if spec.context:  # only a context may fail to be packed; that must be found before the first piece is sent
                submit_args(spec)
        receipts: list[Receipt] = []
        sending: asyncio.Future[list[Receipt]] | None = None
        start = 0
        for packed in pieces_of(map(submit_args, specs)):
            piece = specs[start : start + len(packed)]
            start += len(packed)
            if sending is not None:
                receipts += await sending
            sending = asyncio.ensure_future(create(self._core, prefix, piece, packed, durability))
            await asyncio.sleep(0)  # so that it is sent before the next piece is packed
        return receipts + await sending if sending is not None else receipts

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
        for packed in pieces_of(args for _, args, _ in queue):
            end = start + len(packed)
            sending = asyncio.ensure_future(self._deliver(place, queue[start:end]))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
            start = end

    async def _deliver(self, place: Place, gathered: list[Gathered]) -> None:
        _, prefix, durability = place
        specs, packed = [spec for spec, _, _ in gathered], [args for _, args, _ in gathered]
        try:
            receipts = await create(self._core, prefix, specs, packed, durability)
        except Exception as error:
            for _, _, waiter in gathered:
                if not waiter.done():
                    waiter.set_exception(error)
            return
        for (_, _, waiter), receipt in zip(gathered, receipts, strict=True):
            if not waiter.done():  # its caller has given up
                waiter.set_result(receipt)


def pieces_of(packed: Iterable[Args]) -> Iterator[list[Args]]:
    """Split submits into pieces of at most `BATCH` tasks and about `WEIGHT` bytes."""
    piece: list[Args] = []
    weight = 0
    for args in packed:
        _, spec, options = args
        size = len(spec) + len(options)
        if piece and (len(piece) == BATCH or weight + size > WEIGHT):
            yield piece
            piece, weight = [], 0
        piece.append(args)
        weight += size
    if piece:
        yield piece
