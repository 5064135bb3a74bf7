"""Locks of the memory store."""

from __future__ import annotations

from typing import NamedTuple

from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.rules import ENDED_KEPT, UNLOCK_KEPT, next_fence


class _Lock(NamedTuple):
    owner: str
    fence: int
    until: int
    freed_at: int = 0  # when it was given back


class Locks(Part):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        core.on_set_back.append(self._set_back)
        self._locks: dict[str, _Lock] = {}
        self._fence = 0

    def _set_back(self, by: int) -> None:
        for name, lock in self._locks.items():
            if not lock.freed_at:
                self._locks[name] = lock._replace(until=lock.until - by)

    def _held(self, name: str, now: int) -> _Lock | None:
        lock = self._locks.get(name)
        return lock if lock is not None and lock.until > now else None

    @atomic
    def acquire(self, name: str, owner: str, ttl: int) -> int | None:
        now = self._core.now()
        self._core.pulse(now)
        lock = self._held(name, now)
        if lock is None:
            self._fence = next_fence(self._fence, now)
            lock = _Lock(owner, self._fence, 0)
        elif lock.owner != owner:
            return None
        self._locks[name] = lock._replace(until=now + ttl)
        return lock.fence

    @atomic
    def extend(self, name: str, owner: str, ttl: int) -> bool:
        now = self._core.now()
        self._core.pulse(now)
        lock = self._held(name, now)
        if lock is None or lock.owner != owner:
            return False
        self._locks[name] = lock._replace(until=now + ttl)
        return True

    @atomic
    def release(self, name: str, owner: str) -> bool:
        now = self._core.now()
        self._core.pulse(now)
        lock = self._locks.get(name)
        if lock is None or lock.owner != owner:
            return False
        if lock.freed_at:
            return now < lock.freed_at + UNLOCK_KEPT
        if lock.until <= now:
            return False
        self._locks[name] = lock._replace(until=0, freed_at=now)
        return True

    @atomic
    def holder(self, name: str) -> tuple[str, int] | None:
        lock = self._held(name, self._core.now())
        return None if lock is None else (lock.owner, lock.until)

    def prune(self, now: int, limit: int) -> None:
        over = [name for name, lock in self._locks.items() if max(lock.until, lock.freed_at) <= now - ENDED_KEPT]
        for name in over[:limit]:
            del self._locks[name]
