"""A node is a list of services, and each of them is watched.

A vital service that ends by an error ends the node, in order: without it the node would do harm, or nothing at all. Any
other is reported, counted and started again after a pause that grows while it keeps failing.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.observe.observations import LoopLagged, ServiceFailed

PAUSE_MIN, PAUSE_MAX = 0.1, 30.0  # seconds before a service is started again
LAG_INTERVAL = 1.0  # seconds between two measurements of the event loop
STEADY = 60.0  # one that ran for so long begins again with the shortest pause


class Service(NamedTuple):
    """A part of a node, which works beside its tasks.

    `run` works until it is cancelled, or returns when all of its work is done. `start` is awaited before `run`; if it
    fails, the node does not start. `stop` is awaited when the node ends, after its last task, with the seconds that
    are left; `run` should return then.
    """

    name: str
    run: Callable[[], Awaitable[None]]
    vital: bool = False  # if it ends by an error, the node is drained and ends
    again: bool = True  # whether it is worth starting again after an error
    start: Callable[[], Awaitable[None]] | None = None
    stop: Callable[[float], Awaitable[None]] | None = None


class Supervisor:
    def __init__(self, log: Log, on_vital_end: Callable[[], None] = lambda: None, bus: Bus | None = None) -> None:
        self._log = log
        self._bus = bus or Bus()
        self._on_vital_end = on_vital_end
        self.restarts: Counter[str] = Counter()  # by the name of a service
        self.resting: set[str] = set()  # the services that have failed and are not started again yet

    async def watch(self, service: Service) -> None:
        """Run a service that was started, for as long as this is not cancelled, whatever becomes of it."""
        pause, is_first = PAUSE_MIN, True
        while True:
            started = time.monotonic()
            try:
                if service.start is not None and not is_first:
                    await service.start()
                is_first = False
                await service.run()
                return
            except Exception as error:
                failed = ServiceFailed(service.name, error, service.vital, self.restarts[service.name])
                self._bus.publish(ServiceFailed, failed)
                if service.vital:
                    self._log.error("%s ended by an error, so this node is drained", service.name, exc_info=error)
                    self._on_vital_end()
                    return
                if not service.again:
                    self._log.error("%s ended by an error", service.name, exc_info=error)
                    return
                if time.monotonic() - started >= STEADY:
                    pause = PAUSE_MIN
                self._log.error(
                    "%s ended by an error; it is started again in %.1f s", service.name, pause, exc_info=error
                )
            self.restarts[service.name] += 1
            self.resting.add(service.name)
            await asyncio.sleep(pause)
            self.resting.discard(service.name)
            pause = min(2 * pause, PAUSE_MAX)


async def tell_loop_lag(bus: Bus) -> None:
    """Tell how late the event loop is with a timer, again and again."""
    while True:
        due = time.monotonic() + LAG_INTERVAL
        await asyncio.sleep(LAG_INTERVAL)
        bus.publish(LoopLagged, LoopLagged(max(time.monotonic() - due, 0.0)))
