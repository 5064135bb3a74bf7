"""Locks by name, for the users' own critical sections."""

from __future__ import annotations

from typing import Protocol


class Locks(Protocol):
    async def acquire(self, name: str, owner: str, ttl: int) -> int | None:
        """Take a lock that is free or has run out, or renew one's own. None: another owner has it.

        Answers the fence, which is greater for every new holding of that name, also after a release, and the same while
        it is renewed. It is no smaller than the time in microseconds, so that it grows even over a failover in which
        the last fences were lost.
        """

    async def extend(self, name: str, owner: str, ttl: int) -> bool:
        """Renew one's own lock that has not run out."""

    async def release(self, name: str, owner: str) -> bool:
        """Free one's own lock; False when it was another's, or has run out. True also when sent again within a minute,
        while nobody else has taken it."""

    async def holder(self, name: str) -> tuple[str, int] | None:
        """The owner and the end of its time; None when the lock is free or has run out."""
