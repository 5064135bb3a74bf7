"""Distributed locks: a lease on a name, renewed for as long as its holder lives."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import TracebackType

from tickwork.config import Config
from tickwork.errors import ConfigError, LeaseLost, StoreError, StoreUnavailable, TickworkError
from tickwork.forks import keep, tell_of_forks
from tickwork.handlers.options import name as checked_name
from tickwork.handlers.options import seconds, wait_limit
from tickwork.ids import new_id
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store
from tickwork.texts import shown

FIRST_PAUSE = 0.02  # between two tries for a lock that another holds
LONGEST_PAUSE = 0.5


class Lock:
    """A lock that one holder at a time has, over all processes on the store. `app.lock(name)` makes them.

        async with app.lock("report") as lock:
            await write_report(fence=lock.fence)

    For one holder and one event loop, and not reentrant. It is renewed in the background while it is held; a holder
    that dies loses it after `ttl`.
    """

    def __init__(
        self,
        open_store: Callable[[], Awaitable[Store]],
        config: Config,
        name: str,
        ttl: float | timedelta | None = None,
    ) -> None:
        self.name = checked_name("a lock's name", name)
        self._key = config.lock_prefix + name
        self._ttl_ms = round(1000 * (config.lock_ttl or config.lease_ttl if ttl is None else seconds("ttl", ttl)))
        if self._ttl_ms < 1:
            raise ConfigError(f"ttl must be a millisecond or more, not {shown(ttl)}")
        self._owner = new_id()
        self._log = Log.of(config.logger, "lock")
        self._open_store = open_store
        self._store: Store | None = None  # the one that it was taken from, while it was not given back
        self._fence: int | None = None
        self._acquiring = False
        self._trusted_until = 0.0  # by the monotonic clock, counted from before the store was asked
        self._renewing: asyncio.Task[None] | None = None
        tell_of_forks(self)

    def after_fork(self) -> None:
        """What the parent holds is not the child's: neither to rely on, nor to renew or give back."""
        keep(self._renewing)
        self._owner = new_id()
        self._store = self._renewing = None
        self._acquiring = False
        self._trusted_until = 0.0

    @property
    def held(self) -> bool:
        """False as soon as the lease may be over, as far as this process can tell."""
        return time.monotonic() < self._trusted_until

    @property
    def fence(self) -> int:
        """Greater for every new holder. What the lock guards can refuse a fence below the greatest it has seen."""
        if self._fence is None:
            raise TickworkError(f"lock {self.name!r} has no fence before it is acquired")
        return self._fence

    def check(self) -> None:
        """Raise `LeaseLost` unless it is held."""
        if not self.held:
            raise self._lost()

    async def acquire(self, timeout: float | timedelta | None = None) -> bool:
        """Wait for the lock, for ever or up to `timeout` (0 tries once); False when another still has it.

        An answer of the store that comes when the ttl is over already counts as a try that failed: the lock is given
        back, and asked for again while there is time.
        """
        if self.held or self._acquiring:
            state = "held" if self.held else "being acquired"
            raise TickworkError(
                f"lock {self.name!r} is {state} by this object; a second holder needs its own app.lock()"
            )
        patience = wait_limit("timeout", timeout)
        self._stop_renewing()
        self._acquiring = True
        try:
            return await self._acquire(await self._open_store(), patience)
        finally:
            self._acquiring = False

    async def _acquire(self, store: Store, patience: float) -> bool:
        deadline = time.monotonic() + patience
        pause = FIRST_PAUSE
        while not await self._try(store):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            await asyncio.sleep(min(left, pause * random.uniform(1, 1.25)))  # noqa: S311
            pause = min(2 * pause, LONGEST_PAUSE)
        return True

    async def _try(self, store: Store) -> bool:
        asked_at = time.monotonic()
        try:
            fence = await store.locks.acquire(self._key, self._owner, self._ttl_ms)
        except (asyncio.CancelledError, StoreError):  # it may have been given all the same
            await self._give_back(store)
            raise
        if fence is None:
            return False
        self._trust(asked_at)
        if not self.held:  # this process was stopped, or the store was slow: another may have it by now
            ttl = self._ttl_ms / 1000
            self._log.warning("lock %s was given too late: the answer took longer than its ttl of %g s", self.name, ttl)
            await self._give_back(store)
            return False
        self._store, self._fence = store, fence
        self._renewing = asyncio.get_running_loop().create_task(self._renew(store))
        return True

    async def _give_back(self, store: Store) -> None:
        try:
            await store.locks.release(self._key, self._owner)
        except StoreError as error:
            self._log.warning("lock %s may be taken until its ttl is over: %s", self.name, error)

    def _trust(self, asked_at: float) -> None:
        self._trusted_until = asked_at + self._ttl_ms / 1000

    async def _renew(self, store: Store) -> None:
        """Until it is told that the lock is another's. While the store cannot be reached it may still be ours."""
        ttl = self._ttl_ms / 1000
        pause, told = ttl / 3, False
        while True:
            await asyncio.sleep(pause)
            asked_at = time.monotonic()
            try:
                kept = await store.locks.extend(self._key, self._owner, self._ttl_ms)
            except StoreUnavailable as error:
                if not told:
                    self._log.warning("lock %s could not be renewed, trying again: %s", self.name, error)
                pause, told = min(ttl / 12, 1.0), True
                continue
            except StoreError as error:
                self._log.error("lock %s cannot be renewed: %s", self.name, error)
                return
            if not kept:
                self._trusted_until = 0.0
                self._log.error("lock %s was lost", self.name)
                return
            self._trust(asked_at)
            pause, told = ttl / 3, False

    def _stop_renewing(self) -> None:
        renewing, self._renewing = self._renewing, None
        if renewing is not None:
            renewing.cancel()

    async def release(self) -> bool:
        """Give it back; False when it was not held (any more). Another holder's lock is left alone."""
        self._stop_renewing()
        self._trusted_until = 0.0
        if self._store is None:
            return False
        was_ours = await self._store.locks.release(self._key, self._owner)
        self._store = None
        return was_ours

    async def __aenter__(self) -> Lock:
        await self.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._store is None:  # released by hand
            return
        trusted = self.held
        try:
            kept = await self.release()
        except StoreError as problem:
            self._log.warning("lock %s could not be released and ends with its ttl: %s", self.name, problem)
            if kind is None and not trusted:
                raise self._lost() from problem
        else:
            if kind is None and not kept:
                raise self._lost()

    def _lost(self) -> LeaseLost:
        if self._fence is None:
            return LeaseLost(f"lock {self.name!r} was not acquired")
        return LeaseLost(f"lock {self.name!r} is not held any more; another may have it since")

    def __repr__(self) -> str:
        return f"<Lock {self.name}{' held' if self.held else ''}>"
