"""Locks on Redis."""

from __future__ import annotations

from tickwork.store.redis.core import Part


class Locks(Part):
    async def acquire(self, name: str, owner: str, ttl: int) -> int | None:
        return await self._core.run("lock", self._core.layout.root, "take", name, owner, ttl) or None

    async def extend(self, name: str, owner: str, ttl: int) -> bool:
        return bool(await self._core.run("lock", self._core.layout.root, "extend", name, owner, ttl))

    async def release(self, name: str, owner: str) -> bool:
        return bool(await self._core.run("lock", self._core.layout.root, "release", name, owner, 0))

    async def holder(self, name: str) -> tuple[str, int] | None:
        root = self._core.layout.root
        known, back = await self._core.ask_all(
            root, [("GET", f"{root}lock:{name}"), ("HGET", f"{root}meta", "clock_back")]
        )
        if known is None:
            return None
        _, till, owner = known.decode().split(" ", 2)
        until = int(till) - int(back or 0)
        return (owner, until) if until > self._core.now() else None
