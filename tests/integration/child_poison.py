"""A node with several workers: `python -m tests.integration.child_poison URL WORKERS`. One of its handlers kills it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.integration.apps import FAST, SOON_LED
from tickwork import Scheduler

NEIGHBOURS = 3


def main() -> None:
    url, workers = sys.argv[1:]
    own = {"worker_count": int(workers), "concurrency": 4 // int(workers)}
    app = Scheduler(url, **{**FAST, **SOON_LED, **own})

    @app.task
    async def innocent(folder: str, number: int) -> None:
        """It runs for as long as the gate is there."""
        (Path(folder) / f"{os.getpid()}-{number}").touch()
        while (Path(folder) / "gate").exists():
            await asyncio.sleep(0.005)

    @app.task
    async def poison(folder: str) -> None:
        """It strikes when all its neighbours run, or at once when the gate is gone."""
        while (Path(folder) / "gate").exists() and len(list(Path(folder).glob(f"{os.getpid()}-*"))) < NEIGHBOURS:
            await asyncio.sleep(0.005)
        os.kill(os.getpid(), signal.SIGKILL)

    app.run()


if __name__ == "__main__":
    main()
