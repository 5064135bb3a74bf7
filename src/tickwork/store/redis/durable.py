"""What makes a write as safe as asked for: a command that follows it on the same connection, and its answer.

`memory`: Redis said OK. `disk`: it is in the append-only file, synced; servers before 7.2 cannot say so, there it takes
`appendfsync always`. `replicated`: all replicas that are connected have it.
"""

from __future__ import annotations

import time
from typing import Any

import hiredis

from tickwork.errors import StoreUnavailable
from tickwork.model import Durability
from tickwork.store.redis.server import WITH_WAITAOF, Server, read_info
from tickwork.store.redis.wire import Wire

WAIT = 1000  # milliseconds for one confirmation
FRESH = 1.0  # seconds for which the number of replicas is believed


class Keeper:
    def __init__(self) -> None:
        self._replicas: dict[str, tuple[float, int]] = {}

    async def command(self, durability: Durability, key: str, wire: Wire, server: Server) -> tuple[Any, ...]:
        """What must follow a write, nothing where the write alone is enough."""
        if durability == "replicated":
            return "WAIT", await self._count_replicas(key, wire), WAIT
        if durability == "disk" and server.version >= WITH_WAITAOF:
            return "WAITAOF", 1, 0, WAIT
        return ()

    async def _count_replicas(self, key: str, wire: Wire) -> int:
        looked_at, count = self._replicas.get(key, (0.0, 0))
        if time.monotonic() - looked_at > FRESH or count == 0:
            info = read_info(await wire.call(key, "INFO", "replication"))
            count = int(info.get("connected_slaves", 0))
            self._replicas[key] = time.monotonic(), count
        if count == 0:
            raise StoreUnavailable(
                f'durability="replicated", but no replica is connected to Redis at {wire.target.url}: nothing was sent'
            )
        return count


def enough(answer: Any, wait: tuple[Any, ...]) -> bool:
    if isinstance(answer, hiredis.ReplyError):
        return False
    return int(answer[0] if isinstance(answer, list) else answer) >= int(wait[1])
