"""A process to be killed: it submits tasks, runs them, and writes down what it saw."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from tests.faults.history import History
from tickwork import Scheduler, TaskContext
from tickwork.errors import StoreUnavailable


async def main(url: str, history_path: str, submit: bool) -> None:
    history = History(Path(history_path))
    app = Scheduler(url, namespace="faults", concurrency=5, lease_ttl=3, renew_interval=1, max_losses=1000, timeout=60)

    @app.task
    async def work(milliseconds: int, ctx: TaskContext) -> int:
        history.write("start", id=ctx.task_id, attempt=ctx.attempt, fence=ctx.fence)
        await asyncio.sleep(milliseconds / 1000)
        return milliseconds

    async with app:
        history.write("up")
        number = 0
        while submit:
            number += 1
            task_id = f"{os.getpid()}-{number}"
            try:
                await app.submit("work", random.randrange(1, 30), id=task_id)
            except StoreUnavailable:
                continue
            history.write("ack", id=task_id)
            await asyncio.sleep(0.005)
        await app.wait_stopped()


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3] == "submit"))
    except KeyboardInterrupt:
        pass
