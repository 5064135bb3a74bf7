"""A process to be killed: it submits tasks, runs them, and writes down what it saw.

Arguments: store, history file, role (`submit` or `work`), and as JSON the options of its scheduler; among them
`stranger`, which makes it a machine of its own, so that nobody sees that its process is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import tickwork.host
import tickwork.node.node
from tests.faults import mutate
from tests.faults.history import History
from tickwork import Scheduler, TaskContext
from tickwork.errors import StoreUnavailable
from tickwork.model.outcomes import Outcome
from tickwork.model.tasks import Lease
from tickwork.store.contract import Claim, Finished
from tickwork.store.redis.partitions import PartitionedTasks
from tickwork.store.redis.tasks import Tasks

OPTIONS: dict[str, Any] = {"concurrency": 5, "lease_ttl": 3, "renew_interval": 1, "max_losses": 1000, "timeout": 60}
CALM = 0.5  # seconds of a frozen task in which its loop still runs, long enough for its first progress to be sent


def become_stranger() -> None:
    def own_host() -> str:
        return f"machine-{os.getpid()}"

    setattr(tickwork.host, "host_id", own_host)  # noqa: B010
    setattr(tickwork.node.node, "host_id", own_host)  # noqa: B010


def write_answers(history: History) -> None:
    """Write down what the store says to outcomes, progress and log lines."""
    for kind in (Tasks, PartitionedTasks):
        _write_verdicts(history, kind)
    note = Tasks.note

    async def spied_note(self: Tasks, lease: Lease, progress: float | None, text: str, lines: list[str]) -> bool:
        accepted = await note(self, lease, progress, text, lines)
        history.write("note", id=lease.id, fence=lease.fence, text=text, accepted=accepted)
        return accepted

    setattr(Tasks, "note", spied_note)  # noqa: B010


def _write_verdicts(history: History, kind: type[Tasks]) -> None:
    finish = kind.finish

    async def spied_finish(self: Tasks, outcomes: list[Outcome], then_claim: Claim | None = None) -> Finished:
        answer = await finish(self, outcomes, then_claim)
        for outcome, verdict in zip(outcomes, answer.verdicts, strict=True):
            lease = outcome.lease
            history.write("verdict", id=lease.id, fence=lease.fence, outcome=type(outcome).__name__, kind=verdict.kind)
        return answer

    setattr(kind, "finish", spied_finish)  # noqa: B010


def add_handlers(app: Scheduler, history: History) -> None:
    def write(what: str, ctx: TaskContext) -> None:
        history.write(what, id=ctx.task_id, attempt=ctx.attempt, fence=ctx.fence)

    @app.task
    async def work(milliseconds: int, ctx: TaskContext) -> int:
        write("start", ctx)
        await asyncio.sleep(milliseconds / 1000)
        write("end", ctx)
        return ctx.fence

    @app.task
    async def tick(ctx: TaskContext) -> int:
        write("start", ctx)
        await asyncio.sleep(0.05)
        write("end", ctx)
        return ctx.fence

    @app.task
    async def freeze(seconds: float, ctx: TaskContext) -> int:
        """Holds its loop, so that a signal finds it inside, and has much to say when it is let go."""
        write("start", ctx)
        ctx.progress(0.1, f"early {ctx.fence}")
        await asyncio.sleep(CALM)
        write("frozen", ctx)
        time.sleep(seconds)  # noqa: ASYNC251
        ctx.progress(0.9, f"late {ctx.fence}")
        ctx.logger.info("late %d", ctx.fence)
        write("end", ctx)
        return ctx.fence

    @app.task
    async def poison(ctx: TaskContext) -> None:
        write("start", ctx)
        await asyncio.sleep(0.2)
        history.write("kill", victim=os.getpid())
        os.kill(os.getpid(), signal.SIGKILL)


async def submit_on(app: Scheduler, history: History) -> None:
    for number in range(1, sys.maxsize):
        task_id = f"{os.getpid()}-{number}"
        try:
            await app.submit("work", random.randrange(1, 30), id=task_id)
        except StoreUnavailable:
            continue
        history.write("ack", id=task_id)
        await asyncio.sleep(0.005)


async def main(url: str, history_path: str, role: str, options: dict[str, Any]) -> None:
    history = History(Path(history_path))
    if options.pop("stranger", False):
        become_stranger()
    write_answers(history)
    app = Scheduler(url, namespace="faults", **{**OPTIONS, **options})
    add_handlers(app, history)
    async with app:
        history.write("up", node=app.id)
        if role == "submit":
            await submit_on(app, history)
        await app.wait_stopped()


if __name__ == "__main__":
    mutate.apply()
    _, store_url, history_file, its_role, *more = sys.argv
    try:
        asyncio.run(main(store_url, history_file, its_role, json.loads(more[0]) if more else {}))
    except KeyboardInterrupt:
        pass
