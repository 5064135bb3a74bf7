"""Confirming that a write is as safe as `durability` says, by a command that follows it on the same connection.

`memory`: Redis has answered. `disk`: the write is synced to the append-only file; servers before 7.2 cannot confirm
that, so they need `appendfsync always`. `replicated`: all replicas that are connected, or were until a moment ago, have
it.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from tickwork.model.policy import Durability
from tickwork.store.redis.net.wire import Wire
from tickwork.store.redis.ops.server import WITH_WAITAOF, Server, check_durability, read_info

WAIT = 1000  # milliseconds for one confirmation
FRESH = 1.0  # seconds for which the number of replicas is reused
REPLICA_GRACE = 5.0  # seconds for which a replica that has disconnected must still confirm: it may be the next master
NO_REPLICA = 0.1  # seconds until replicas are counted again


class Seen(NamedTuple):
    """The number of replicas that a master has reported, and how many must confirm."""

    at: float
    history: str  # the replication id, which changes with a failover
    connected: int
    needed: int
    fewer_since: float | None = None


class Confirmations:
    def __init__(self) -> None:
        self._replicas: dict[str, Seen] = {}
        self._synced: dict[str, Server] = {}  # key -> the server whose persistence was checked

    async def command(self, durability: Durability, key: str, wire: Wire, server: Server) -> tuple[Any, ...] | None:
        """The command that must follow a write; empty if none is needed; None if no replica is connected now. Raises
        `StoreError` when the server cannot give that durability."""
        if durability == "replicated":
            count = await self._count_replicas(key, wire)
            return ("WAIT", count, WAIT) if count else None
        if durability == "disk":
            await self._check_disk(key, wire, server)
            return ("WAITAOF", 1, 0, WAIT) if server.version >= WITH_WAITAOF else ()
        return ()

    async def _check_disk(self, key: str, wire: Wire, server: Server) -> None:
        """Check the persistence of a server once. Opening the store does not, if only single submits ask for `disk`."""
        if self._synced.get(key) is not server:
            now = read_info(await wire.call(key, "INFO", "persistence"))
            await check_durability(wire, key, Server(server.version, {**server.info, **now}), "disk")
            self._synced[key] = server

    async def _count_replicas(self, key: str, wire: Wire) -> int:
        seen = self._replicas.get(key)
        if seen is None or time.monotonic() - seen.at > FRESH or seen.connected == 0:
            seen = self._replicas[key] = look(read_info(await wire.call(key, "INFO", "replication")), seen)
        return seen.needed if seen.connected else 0


def look(info: dict[str, str], before: Seen | None) -> Seen:
    now, count, history = time.monotonic(), int(info.get("connected_slaves", 0)), info.get("master_replid", "")
    if before is None or before.history != history or count >= before.needed:
        return Seen(now, history, count, count)
    fewer_since = before.fewer_since or now
    if now - fewer_since > REPLICA_GRACE:
        return Seen(now, history, count, count)
    return Seen(now, history, count, before.needed, fewer_since)


def enough(answer: Any, wait: tuple[Any, ...]) -> bool:
    return int(answer[0] if isinstance(answer, list) else answer) >= int(wait[1])
