"""Locks of the memory store."""

from __future__ import annotations

from typing import NamedTuple

from tickwork.clock import Clock
from tickwork.model.policy import Policy
from tickwork.store.memory.members import Core, atomic
from tickwork.store.rules import ENDED_KEPT, UNLOCK_KEPT, next_fence


class _Hold(NamedTuple):
    owner: str
    fence: int
    until: int
    freed_at: int = 0  # when it was given back


class Locks(Core):
    def __init__(self, policy: Policy | None = None, clock: Clock | None = None) -> None:
        super().__init__(policy, clock)
        self._holds: dict[str, _Hold] = {}
        self._lock_fence = 0

    def _set_back(self, by: int) -> None:
        super()._set_back(by)
        for name, hold in self._holds.items():
            if not hold.freed_at:
                self._holds[name] = hold._replace(until=hold.until - by)

    def _hold(self, name: str, now: int) -> _Hold | None:
        hold = self._holds.get(name)
        return hold if hold is not None and hold.until > now else None

    @atomic
    def lock(self, name: str, owner: str, ttl: int) -> int | None:
        now = self.now()
        self._pulse(now)
        hold = self._hold(name, now)
        if hold is None:
            self._lock_fence = next_fence(self._lock_fence, now)
            hold = _Hold(owner, self._lock_fence, 0)
        elif hold.owner != owner:
            return None
        self._holds[name] = hold._replace(until=now + ttl)
        return hold.fence

    @atomic
    def extend_lock(self, name: str, owner: str, ttl: int) -> bool:
        now = self.now()
        self._pulse(now)
        hold = self._hold(name, now)
        if hold is None or hold.owner != owner:
            return False
        self._holds[name] = hold._replace(until=now + ttl)
        return True

    @atomic
    def unlock(self, name: str, owner: str) -> bool:
        now = self.now()
        self._pulse(now)
        hold = self._holds.get(name)
        if hold is None or hold.owner != owner:
            return False
        if hold.freed_at:
            return now < hold.freed_at + UNLOCK_KEPT
        if hold.until <= now:
            return False
        self._holds[name] = hold._replace(until=0, freed_at=now)
        return True

    @atomic
    def locked(self, name: str) -> tuple[str, int] | None:
        hold = self._hold(name, self.now())
        return None if hold is None else (hold.owner, hold.until)

    def _prune_locks(self, now: int, limit: int) -> None:
        over = [name for name, hold in self._holds.items() if max(hold.until, hold.freed_at) <= now - ENDED_KEPT]
        for name in over[:limit]:
            del self._holds[name]
