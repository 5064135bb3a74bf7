"""A program with a lifespan: for the tests of child processes, and by itself a node that is ended by a signal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tickwork import Scheduler, TaskContext


def note(what: str) -> None:
    """One line, in the order of all processes."""
    if diary := os.environ.get("LIFESPAN_DIARY"):
        with Path(diary).open("a") as file:
            file.write(f"{os.getpid()} {what}\n")
    else:
        print(what, flush=True)


@asynccontextmanager
async def lifespan(app: Scheduler) -> AsyncIterator[dict[str, Any]]:
    note("enter")
    yield {"loop": asyncio.get_running_loop(), "pid": os.getpid(), "runs": []}
    note("leave")


app = Scheduler("memory://", lifespan=lifespan, shutdown_timeout=5, concurrency=1)


@app.on_startup
async def connect() -> None:
    if os.environ.get("LIFESPAN_BROKEN"):
        raise ConnectionError("nobody answers")
    note("startup")


@app.on_shutdown
def disconnect() -> None:
    note("shutdown")


@app.task(run_in="process", max_retry=0)
def blocking(ctx: TaskContext) -> list[Any]:
    note("run")
    ctx.state["runs"].append(ctx.task_id)
    return [ctx.state["pid"], os.getpid(), len(ctx.state["runs"])]


@app.task(run_in="process", max_retry=0)
async def on_its_loop(ctx: TaskContext) -> list[Any]:
    note("run")
    return [ctx.state["pid"], os.getpid(), asyncio.get_running_loop() is ctx.state["loop"]]


@app.task
async def slow(ctx: TaskContext) -> int:
    note("run")
    await asyncio.sleep(0.3)
    note("ran")
    return int(ctx.state["pid"])


async def submit_one() -> None:
    await slow.submit()


if __name__ == "__main__":
    if sys.argv[1:] == ["slow start"]:

        @app.on_startup
        async def wait() -> None:
            note("waiting")
            await asyncio.sleep(60)

    else:
        app.on_startup(submit_one)
    app.run()
