"""Handlers with dependencies that run in child processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

from tickwork import Depends, Scheduler, TaskContext

app = Scheduler("memory://")
left: list[str] = []


async def connection(ctx: TaskContext) -> AsyncIterator[str]:
    await asyncio.sleep(0)
    yield f"connection of {ctx.type}"
    left.append(ctx.type)


@app.task(run_in="process", max_retry=0)
def blocking(number: int, db: str = Depends(connection)) -> list[Any]:
    return [number, db, os.getpid(), list(left)]


@app.task(run_in="process", max_retry=0)
async def waiting(number: int, db: str = Depends(connection)) -> list[Any]:
    await asyncio.sleep(0)
    return [number, db, os.getpid(), list(left)]
