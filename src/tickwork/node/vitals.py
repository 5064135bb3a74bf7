"""What a process says of itself with each heartbeat: CPU, memory, and how late its event loop was."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from msgspec import Struct

SPAN = 5.0  # seconds: a CPU share over less time would jump about


class Vitals(Struct, frozen=True):
    cpu: float = 0.0
    memory: int = 0
    loop_lag: float = 0.0


class Pulse:
    """Measures this process, at most once in `SPAN` seconds. `take_lag` gives the worst lag since it was last asked."""

    def __init__(self, take_lag: Callable[[], float]) -> None:
        self._take_lag = take_lag
        self._measured_at = time.monotonic()
        self._used = time.process_time()
        self._last = Vitals(memory=resident_memory())

    def read(self) -> Vitals:
        passed = time.monotonic() - self._measured_at
        if passed >= SPAN:
            used = time.process_time()
            cpu = max(used - self._used, 0.0) / passed
            self._measured_at, self._used = self._measured_at + passed, used
            self._last = Vitals(round(cpu, 3), resident_memory(), round(self._take_lag(), 3))
        return self._last


def resident_memory() -> int:
    """In bytes; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):  # not Linux
        return 0
