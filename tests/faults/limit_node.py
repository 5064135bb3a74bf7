"""A node whose handlers have limits and a breaker, and write down when they begin and end.

Arguments: store, history file, role (only `work`), and as JSON the options of its scheduler; also `stranger` (see
`victim`), and `broken`, the path of a file: while it is there, what has a breaker fails.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.faults.history import History
from tests.faults.stalls import watch_for_stalls
from tests.faults.victim import OPTIONS, become_stranger
from tickwork import FixedDelay, Scheduler, TaskContext

RATE, BURST = 100, 10
SLOTS = 3  # of what has a limit of runs at a time
FAILURES, TIMEOUT = 5, 0.8  # of the breaker


def add_handlers(app: Scheduler, history: History, broken: Path) -> None:
    async def run(ctx: TaskContext, seconds: float, of: str) -> None:
        history.write("start", id=ctx.task_id, of=of, fence=ctx.fence)
        await asyncio.sleep(seconds)
        history.write("end", id=ctx.task_id, of=of, fence=ctx.fence)

    @app.task("rated", rate=f"{RATE}/s", burst=BURST)
    async def rated(ctx: TaskContext) -> None:
        history.write("start", id=ctx.task_id, of="rated")

    @app.task("narrow", concurrency=SLOTS)
    async def narrow(seconds: float, ctx: TaskContext) -> None:
        await run(ctx, seconds, "narrow")

    @app.task("keyed", concurrency=1, per="key")
    async def keyed(seconds: float, key: str, ctx: TaskContext) -> None:
        await run(ctx, seconds, f"keyed/{key}")

    @app.task("both", rate="60/s", burst=5, concurrency=SLOTS)
    async def both(seconds: float, ctx: TaskContext) -> None:
        await run(ctx, seconds, "both")

    @app.task("guarded", breaker=(FAILURES, TIMEOUT), max_retry=1000, retry=FixedDelay(0.05))
    async def guarded(ctx: TaskContext) -> None:
        """Takes a while to fail, so that many are under way when the breaker opens."""
        fails = broken.exists()
        history.write("start", id=ctx.task_id, of="guarded", fails=fails)
        await asyncio.sleep(0.05)
        history.write("end", id=ctx.task_id, of="guarded")
        if fails:
            raise OSError("no answer")


async def main(url: str, history_path: str, options: dict[str, Any]) -> None:
    history = History(Path(history_path))
    if options.pop("stranger", False):
        become_stranger()
    broken = Path(options.pop("broken", "/nowhere"))
    app = Scheduler(url, namespace="faults", **{**OPTIONS, **options})
    add_handlers(app, history, broken)
    stop_watching = watch_for_stalls(history, "late", os.getpid())
    async with app:
        history.write("up", node=app.id)
        await app.wait_stopped()
    stop_watching()


if __name__ == "__main__":
    _, store_url, history_file, _, more = sys.argv
    try:
        asyncio.run(main(store_url, history_file, json.loads(more)))
    except KeyboardInterrupt:
        pass
