"""Connections belong to the event loop that made them; a store may be used from several loops."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import NamedTuple

from tickwork.errors import StoreUnavailable
from tickwork.store.redis.net.listen import Listener
from tickwork.store.redis.net.wire import Wire


class LoopConnections(NamedTuple):
    """What belongs to one event loop: its connections, and the listener for wake-ups."""

    wire: Wire
    listener: Listener


class ConnectionsByLoop:
    def __init__(self, make: Callable[[], LoopConnections], url: str) -> None:
        self._make = make
        self._url = url
        self._open: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopConnections] = weakref.WeakKeyDictionary()
        self._closed: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()

    def __len__(self) -> int:
        return len(self._open)

    def all(self) -> list[tuple[asyncio.AbstractEventLoop, LoopConnections]]:
        return [(loop, found) for loop in self._loops() if (found := self._open.get(loop)) is not None]

    def here(self) -> LoopConnections:
        """Those of the running loop, made when they are first asked for."""
        loop = asyncio.get_running_loop()
        found = self._open.get(loop)
        if found is None:
            if loop in self._closed:
                raise StoreUnavailable(f"the store at {self._url} was closed here")
            self._forget_closed_loops()
            found = self._open[loop] = self._make()
        return found

    def allow(self) -> None:
        """The running loop may connect (again)."""
        self._closed.discard(asyncio.get_running_loop())

    @property
    def closed_here(self) -> bool:
        return asyncio.get_running_loop() in self._closed

    def give_up(self) -> LoopConnections | None:
        """Those of the running loop, to be closed by the caller; it gets no others until `allow`."""
        loop = asyncio.get_running_loop()
        found = self._open.pop(loop, None)
        self._closed.add(loop)
        self._forget_closed_loops()
        return found

    def _forget_closed_loops(self) -> None:
        """Some programs make a loop for each request; what it used here must not outlive it. Several threads may do it
        at once, each with a loop of its own."""
        for loop in self._loops():
            if loop.is_closed() and (found := self._open.pop(loop, None)) is not None:
                found.wire.abandon()

    def _loops(self) -> list[asyncio.AbstractEventLoop]:
        """Those that are known at this moment; a walk over the dictionary itself would fail where another thread adds
        one."""
        return [loop for each in self._open.keyrefs() if (loop := each()) is not None]
