"""One namespace as the control plane serves it: its client, what is read often, its event streams and its audit log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from tickwork.client.client import Client
from tickwork.model.members import Worker
from tickwork.server.audit import Audit
from tickwork.server.buckets import Buckets
from tickwork.server.live import Hub
from tickwork.store.contract import Stats, Store

T = TypeVar("T")

FRESH = 0.5  # seconds for which numbers that many pages show are good


class Cached(Generic[T]):
    """What many ask for at the same time is read once."""

    def __init__(self, read: Callable[[], Awaitable[T]], fresh: float = FRESH) -> None:
        self._read = read
        self._fresh = fresh
        self._until = 0.0
        self._reading: asyncio.Future[T] | None = None

    async def get(self) -> T:
        if self._reading is None or (self._reading.done() and time.monotonic() >= self._until):
            self._reading = asyncio.ensure_future(self._read())
            self._until = time.monotonic() + self._fresh
            self._reading.add_done_callback(self._forget_failure)
        # One who stops waiting must not stop it for the others.
        return await asyncio.shield(self._reading)

    def forget(self) -> None:
        """It has changed: the next one who asks reads it anew, also if a reading is under way."""
        self._reading = None

    def _forget_failure(self, reading: asyncio.Future[T]) -> None:
        if (reading.cancelled() or reading.exception() is not None) and self._reading is reading:
            self._until = 0.0


class Space:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.namespace = client.config.namespace
        self._stats = Cached(self._read_stats)
        self._members = Cached(self._read_members)
        self.buckets = Buckets()
        self.audit = Audit(self.store)
        self.hub = Hub(client, self.stats)

    async def store(self) -> Store:
        return await self.client._access.open_store()

    async def stats(self) -> Stats:
        return await self._stats.get()

    async def members(self) -> list[Worker]:
        return await self._members.get()

    def forget(self) -> None:
        """Whoever changed something sees that at once."""
        self._stats.forget()
        self._members.forget()

    async def _read_stats(self) -> Stats:
        return await (await self.store()).queries.stats()

    async def _read_members(self) -> list[Worker]:
        return await (await self.store()).members.workers(counted=True)

    async def close(self) -> None:
        """End its streams, which needs no store, and then write what is still to be told."""
        await self.hub.close()
        await self.audit.flush()
