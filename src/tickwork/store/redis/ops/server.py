"""The version and settings of a Redis server, checked before it is used."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from tickwork.errors import StoreError
from tickwork.store.redis.keys import Layout
from tickwork.store.redis.net.link import LinkLost, pack
from tickwork.store.redis.net.target import Target
from tickwork.store.redis.net.wire import Wire

OLDEST = (6, 2)
MODERN = (7, 0)
WITH_WAITAOF = (7, 2)


class Server(Struct, frozen=True):
    version: tuple[int, ...] = MODERN
    info: dict[str, str] = {}

    @property
    def modern(self) -> bool:
        return self.version >= MODERN

    @property
    def name(self) -> str:
        valkey = self.info.get("valkey_version")
        return f"Valkey {valkey}" if valkey else f"Redis {self.info.get('redis_version', '?')}"


def read_info(reply: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in reply.decode(errors="replace").splitlines())
    return {name: value for name, colon, value in lines if colon}


def memory_used(info: dict[str, str]) -> float:
    """As a share of what the server may use; 0 where it may use all."""
    used, limit = (int(info.get(name, 0)) for name in ("used_memory", "maxmemory"))
    return min(used / limit, 1.0) if limit else 0.0


async def check_server(wire: Wire, key: str, durability: str) -> Server:
    """Refuse a server that would lose tasks. Raises `StoreUnavailable` when there is none."""
    info = read_info(await wire.call(key, "INFO"))
    version = tuple(map(int, re.findall(r"\d+", info.get("redis_version", "0"))[:3]))
    server = Server(version, info)
    where = f"{server.name} at {wire.target.url}"
    if version < OLDEST:
        raise StoreError(f"{where} is too old: 6.2 is the oldest that has what Tickwork needs")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and not wire.target.allow_eviction:
        raise StoreError(
            f"{where} evicts keys when it is full (maxmemory-policy {policy}), which would lose tasks. Set it to "
            "noeviction, or add allow_eviction=true to the URL if losing tasks is acceptable"
        )
    await check_durability(wire, key, server, durability)
    return server


async def check_durability(wire: Wire, key: str, server: Server, durability: str) -> None:
    if durability == "disk" and server.version < WITH_WAITAOF:
        fsync = await setting(wire, key, "appendfsync")
        if server.info.get("aof_enabled") != "1" or fsync not in ("always", None):
            raise StoreError(
                f'durability="disk" needs appendonly yes and appendfsync always on {server.name} at {wire.target.url}; '
                f"it has appendonly {'yes' if server.info.get('aof_enabled') == '1' else 'no'}, appendfsync {fsync}"
            )
        if fsync is None:
            wire.contact.log.warning(
                "whether %s has appendfsync always cannot be read; assuming that it has", wire.target.url
            )
    if durability == "disk" and server.info.get("aof_enabled") != "1":
        raise StoreError(f'durability="disk" needs appendonly yes on {server.name} at {wire.target.url}')


async def setting(wire: Wire, key: str, name: str) -> str | None:
    """A server's setting, None where it may not be read."""
    try:
        reply: Any = await wire.run(key, pack("CONFIG", "GET", name))
    except (StoreError, LinkLost):
        return None
    return reply[1].decode() if isinstance(reply, list) and len(reply) == 2 else None


async def stored_partitions(target: Target, namespace: str, patience: float) -> int | None:
    """How many partitions a namespace has, None when there is no such namespace."""
    layout = Layout(namespace)
    wire = Wire(target, 1, patience)
    try:
        for root in (layout.root, layout.before(layout.root)):  # one that has to be migrated has partitions too
            stored = await wire.call(root, "HGET", f"{root}meta", "partitions")
            if stored is not None:
                return int(stored)
    finally:
        await wire.close()
    return None
