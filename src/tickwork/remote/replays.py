"""Requests that a worker has seen: the same one again gets the same answer, and runs nothing."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from msgspec import Struct

from tickwork.remote.signing import TOLERANCE, Signed


class Reply(Struct, frozen=True):
    """An answer to be sent."""

    status: int
    body: bytes
    headers: dict[str, str] = {}


class Replayed(Exception):
    """A request under the id of another one."""


class Full(Exception):
    """So many requests came in the last minutes that no more can be remembered."""


class Seen:
    """One request and its answer, which may still be on its way. None: the answer is not kept any more."""

    __slots__ = ("answer", "signature", "until")

    def __init__(self, signature: str, until: float) -> None:
        self.signature = signature
        self.until = until
        self.answer: asyncio.Future[Reply] | None = asyncio.get_running_loop().create_future()


class Replays:
    """Bounded twice: so many requests, and so many bytes of answers. A request is remembered for as long as its time is
    not too old, so none can come a second time unnoticed; answers are forgotten sooner when there is no room."""

    def __init__(self, requests_max: int, bytes_max: int) -> None:
        self._requests_max = requests_max
        self._bytes_max = bytes_max
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._kept: OrderedDict[str, int] = OrderedDict()  # request id -> bytes of its answer
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._seen)

    def find(self, signed: Signed) -> Seen | None:
        """The same request, if it came before. Raises `Replayed` if another came under its id."""
        seen = self._seen.get(signed.request_id)
        if seen is not None and seen.signature != signed.signature:
            raise Replayed
        return seen

    def add(self, signed: Signed, now: float) -> Seen:
        self._forget(now)
        if len(self._seen) >= self._requests_max:
            raise Full
        seen = self._seen[signed.request_id] = Seen(signed.signature, signed.time + TOLERANCE)
        return seen

    def answered(self, request_id: str, seen: Seen, reply: Reply) -> None:
        assert seen.answer is not None, "it is kept at least until there is one"
        seen.answer.set_result(reply)
        if self._seen.get(request_id) is not seen:
            return
        self._kept[request_id] = len(reply.body)
        self._bytes += len(reply.body)
        while self._bytes > self._bytes_max:
            oldest, size = self._kept.popitem(last=False)
            self._bytes -= size
            self._seen[oldest].answer = None

    def _forget(self, now: float) -> None:
        """Those that would be refused as too old. Their order is nearly that of their times, as clocks differ little:
        what stands behind a younger one waits for it."""
        while self._seen:
            request_id, seen = next(iter(self._seen.items()))
            if seen.until >= now:
                return
            del self._seen[request_id]
            self._bytes -= self._kept.pop(request_id, 0)
