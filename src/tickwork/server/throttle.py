"""Failed logins are slowed down, by the address that they come from."""

from __future__ import annotations

import time
from collections.abc import Callable

from tickwork.server.problems import Refused

FAILURES_MAX = 10  # at once; then one every `REST` seconds
REST = 6.0
CLIENTS_MAX = 10_000
EVERYBODY = "everybody"  # beyond these


class Throttle:
    """Counts failures, which fade with time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._owed: dict[str, float] = {}  # until when the failures of an address are paid off

    def check(self, address: str) -> None:
        """Raises `Refused` while an address has failed too often."""
        owed = max(self._owed.get(address, 0.0), self._owed.get(EVERYBODY, 0.0))
        wait = owed - self._clock() - FAILURES_MAX * REST
        if wait > 0:
            raise Refused(
                429, "too_many_failures", f"too many failed logins: try again in {wait:.0f} s", retry_after=wait
            )

    def failed(self, address: str) -> None:
        now = self._clock()
        if address not in self._owed and len(self._owed) >= CLIENTS_MAX:
            self._owed = {each: until for each, until in self._owed.items() if until > now}
            if len(self._owed) >= CLIENTS_MAX:  # an attack from everywhere: they share what is left
                address = EVERYBODY
        self._owed[address] = max(self._owed.get(address, now), now) + REST
