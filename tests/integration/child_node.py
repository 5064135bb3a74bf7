"""A node in a process of its own: `python -m tests.integration.child_node URL [OPTION=JSON]...`."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from tests.integration.apps import FAST, SOON_LED
from tests.integration.child_handlers import announce
from tickwork import Scheduler


def make(url: str, **options: Any) -> Scheduler:
    app = Scheduler(url, **{**FAST, **options})

    @app.task
    async def echo(payload: Any) -> Any:
        return payload

    @app.task
    async def pid() -> int:
        return os.getpid()

    @app.task
    async def fail(payload: Any) -> None:
        raise ValueError("as asked")

    @app.task(timeout=60)
    async def hold(path: str) -> int:
        """Say who we are, then wait until the file is gone."""
        announce(path)
        while Path(path).exists():
            await asyncio.sleep(0.005)
        return os.getpid()

    @app.task(timeout=60)
    async def stubborn(path: str) -> int:
        """The same, deaf to being cancelled."""
        announce(path)
        while Path(path).exists():
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                continue
        return os.getpid()

    return app


class Talking(Scheduler):
    async def start(self, *, work: bool = True, lead: bool = True) -> None:
        await super().start(work=work, lead=lead)
        print("started", self.id, flush=True)

    async def shutdown(self, timeout: float | timedelta | None = None) -> None:
        """Says `stopping` once no worker takes any more tasks."""
        workers = () if self._node is None else self._node.workers
        ending = asyncio.ensure_future(super().shutdown(timeout))
        while any(worker.free for worker in workers) and not ending.done():
            await asyncio.sleep(0.005)
        print("stopping", flush=True)
        await ending


def main() -> None:
    url, *given = sys.argv[1:]
    options = {key: msgspec.json.decode(value) for key, _, value in (item.partition("=") for item in given)}
    app = make(url, **{**SOON_LED, **options})
    app.__class__ = Talking
    app.run()
    print("stopped", flush=True)


if __name__ == "__main__":
    main()
