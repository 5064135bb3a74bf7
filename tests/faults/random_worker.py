"""A worker of a random history. It runs tasks and takes locks, and writes down when.

Arguments: store, history file, and as JSON the options of its scheduler; among them `stranger`, as for `victim`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tests.faults import mutate
from tests.faults.history import History
from tests.faults.random_plan import LOCK_TTL
from tests.faults.stalls import watch_for_stalls
from tests.faults.victim import become_stranger
from tests.support.pages import url_of
from tickwork import Scheduler, Snooze, TaskContext


class Handlers:
    def __init__(self, app: Scheduler, history: History) -> None:
        self._app = app
        self._history = history
        app.task(self.work)
        app.task(self.block)
        app.task(self.doze)
        app.task(self.locked)
        app.task(self.tick)

    async def work(self, milliseconds: int, fails: int, ctx: TaskContext) -> int:
        with self._run(ctx):
            await asyncio.sleep(milliseconds / 1000)
            if ctx.attempt <= fails:
                raise ValueError(f"attempt {ctx.attempt} was to fail")
        return ctx.fence

    def block(self, milliseconds: int, fails: int, ctx: TaskContext) -> int:
        """In a thread. It sleeps in pieces, so that it can be told to stop."""
        with self._run(ctx):
            until = time.monotonic() + milliseconds / 1000
            while time.monotonic() < until:
                time.sleep(0.01)
            if ctx.attempt <= fails:
                raise ValueError(f"attempt {ctx.attempt} was to fail")
        return ctx.fence

    async def doze(self, milliseconds: int, ctx: TaskContext) -> int:
        with self._run(ctx):
            await asyncio.sleep(milliseconds / 1000)
            if random.random() < 0.5:
                raise Snooze(0.2)
        return ctx.fence

    async def locked(self, lock: str, milliseconds: int, ctx: TaskContext) -> int:
        with self._run(ctx):
            async with self._inside(lock, ctx.task_id) as entered:
                if entered:
                    await asyncio.sleep(milliseconds / 1000)
        return ctx.fence

    async def tick(self, ctx: TaskContext) -> int:
        with self._run(ctx):
            await asyncio.sleep(0.02)
        return ctx.fence

    @contextmanager
    def _run(self, ctx: TaskContext) -> Iterator[None]:
        self._history.write("start", id=ctx.task_id, attempt=ctx.attempt, fence=ctx.fence)
        try:
            yield
        finally:
            self._history.write("end", id=ctx.task_id, fence=ctx.fence)

    @asynccontextmanager
    async def _inside(self, name: str, task_id: str) -> AsyncIterator[bool]:
        """Hold the lock. The history tells of the time in which this process could be sure that it did."""
        lock = self._app.lock(name, ttl=LOCK_TTL)
        if not await lock.acquire(timeout=3):
            yield False
            return
        fence, sure_till = lock.fence, time.time()
        if lock.held:
            self._history.write("lock", id=task_id, name=name, fence=fence)

        async def look() -> None:
            nonlocal sure_till
            while True:
                now = time.time()  # before the look, so that it is never later than what it saw
                if not lock.held:
                    return
                sure_till = now
                await asyncio.sleep(0.01)

        looking = asyncio.create_task(look())
        try:
            yield True
        finally:
            looking.cancel()
            self._history.write("unlock", id=task_id, name=name, fence=fence, at=sure_till)
            await lock.release()


class Worker(Scheduler):
    """Writes down when it is up, and where its metrics are."""

    history: History

    async def start(self, *, work: bool = True, lead: bool = True) -> None:
        await super().start(work=work, lead=lead)
        self.history.write("up", node=self.id, metrics=f"{url_of(self, 'metrics_port')}/metrics")


def main(url: str, history_path: str, options: dict[str, Any]) -> None:
    history = History(Path(history_path))
    if options.pop("stranger", False):
        become_stranger()
    watch_for_stalls(history, "stalled", os.getpid())
    app = Worker(url, **options)
    app.history = history
    Handlers(app, history)
    app.run()


if __name__ == "__main__":
    mutate.apply()
    _, store_url, history_file, its_options = sys.argv
    main(store_url, history_file, json.loads(its_options))
