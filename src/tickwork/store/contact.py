"""Whether a store can be used, as all who use it see it: an outage is told once when it begins, once when it ends."""

from __future__ import annotations

import threading
import time

from tickwork.forks import hold_during_forks
from tickwork.observe.loggers import Log


class Contact:
    """Belongs to a store. Whoever finds that a call cannot be done now says so under a name, and says when it can."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.lost_since: float | None = None  # by the monotonic clock
        self._without: set[str] = set()
        self._lock = threading.Lock()  # the heart has a thread of its own
        hold_during_forks(self._lock)

    def lost(self, who: str, why: object, since: float | None = None) -> None:
        with self._lock:
            self._without.add(who)
            if self.lost_since is not None:
                return
            self.lost_since = time.monotonic() if since is None else since
        self.log.warning("the store cannot be used now, trying again: %s", why)

    def made(self, who: str) -> None:
        if self.lost_since is None:
            return
        with self._lock:
            self._without.discard(who)
            if self._without or self.lost_since is None:
                return
            seconds, self.lost_since = time.monotonic() - self.lost_since, None
        self.log.warning("the store can be used again, after %.1f s", seconds)

    def forget(self, who: str) -> None:
        """It does not ask any more, so what it found is no news."""
        with self._lock:
            self._without.discard(who)

    def reset(self) -> None:
        """The store was closed."""
        with self._lock:
            self._without.clear()
            self.lost_since = None
