"""Looks of those who wait for results: all that are taken at the same time are sent in one exchange.

A process may wait for thousands of tasks, and each waiter looks again from time to time, or at once when wake-ups may
have been lost.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from tickwork.model.tasks import Record
from tickwork.store.redis.core import Core
from tickwork.store.redis.records import unpack

STEP = 100  # tasks in one command


class Seen(NamedTuple):
    """A task, and whether its end will be published to this process."""

    record: Record | None
    watched: bool


Waiter = tuple[str, "asyncio.Future[Seen]"]


class Looks:
    """Gathers looks, separately for each event loop and prefix. They are sent in the next iteration of the loop."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._gathered: dict[tuple[int, str], list[Waiter]] = {}
        self._sending: set[asyncio.Future[None]] = set()

    def look(self, prefix: str, task_id: str) -> asyncio.Future[Seen]:
        loop = asyncio.get_running_loop()
        place = (id(loop), prefix)
        if place not in self._gathered:
            self._gathered[place] = []
            loop.call_soon(self._send_all, place)
        waiter: asyncio.Future[Seen] = loop.create_future()
        self._gathered[place].append((task_id, waiter))
        return waiter

    def _send_all(self, place: tuple[int, str]) -> None:
        waiters = self._gathered.pop(place)
        for start in range(0, len(waiters), STEP):
            sending = asyncio.ensure_future(self._send(place[1], waiters[start : start + STEP]))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def _send(self, prefix: str, waiters: list[Waiter]) -> None:
        ids = [task_id for task_id, _ in waiters]
        commands = [("MGET", *(f"{prefix}task:{each}" for each in ids)), ("HMGET", f"{prefix}watchers", *ids)]
        try:
            values, watchers = await self._core.ask_all(prefix, commands)
        except Exception as error:
            for _, waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(error)
            return
        here = self._core.channel.encode()
        for (task_id, waiter), value, channels in zip(waiters, values, watchers, strict=True):
            if not waiter.done():  # its caller has given up
                record = None if value is None else unpack(task_id, value)
                waiter.set_result(Seen(record, channels is not None and here in channels.split(b"\n")))
