"""What it costs when nothing happens: idle nodes, handlers that sleep, callers that wait for results."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from benchmarks.growth.flows import PAUSE, longest_pause
from benchmarks.growth.lab import Lab, Used, in_lab
from benchmarks.growth.points import Measured

WINDOW = 10.0
SETTLE = 3.0  # seconds until what is done at a start is over: an election, the first beats
LEASE, RENEW = 6.0, 2.0
A_NODE = "Redis us/s a node"
CALLS = "script calls/s a node"
COMMANDS = "commands/s"


@in_lab
async def by_idle_nodes(lab: Lab) -> Measured:
    """All nodes are in this process, each with its worker, its heart and its connections."""
    nodes = lab.ask.size
    async with AsyncExitStack() as stack:
        for _ in range(nodes):
            await stack.enter_async_context(lab.app(concurrency=10))
        used = await _while_nothing_happens(lab)
    costs = {"worker us/s a node": used.python / used.wall / nodes * 1e6}
    if lab.server is not None:
        costs["Redis % of a core"] = used.redis / used.wall * 100
        costs[A_NODE] = used.redis / used.wall / nodes * 1e6
        costs[CALLS] = used.scripts / used.wall / nodes
    return Measured(costs)


async def _while_nothing_happens(lab: Lab) -> Used:
    await asyncio.sleep(lab.ask.seconds(SETTLE))
    with lab.watch() as used:
        await asyncio.sleep(lab.ask.seconds(WINDOW))
    return used


@in_lab
async def by_sleeping_handlers(lab: Lab) -> Measured:
    """Their leases are renewed every two seconds."""
    handlers, running = lab.ask.size, 0
    app = lab.app(concurrency=handlers, lease_ttl=LEASE, renew_interval=RENEW, shutdown_timeout=0.1)
    all_run = asyncio.Event()

    @app.task
    async def sleep(number: int) -> None:
        nonlocal running
        running += 1
        if running == handlers:
            all_run.set()
        await asyncio.sleep(3600)

    async with app:
        await sleep.submit_many({"number": number} for number in range(handlers))
        await asyncio.wait_for(all_run.wait(), 60)
        async with longest_pause(0.02) as longest:
            used = await _while_nothing_happens(lab)
    costs = {
        "worker us/s each": used.python / used.wall / handlers * 1e6,
        "worker % of a core": used.python / used.wall * 100,
        PAUSE: longest.seconds * 1e3,
    }
    if lab.server is not None:
        costs["Redis us/s each"] = used.redis / used.wall / handlers * 1e6
        costs["Redis % of a core"] = used.redis / used.wall * 100
    return Measured(costs)


@in_lab
async def by_waiters(lab: Lab) -> Measured:
    """Callers in one process that wait for the results of tasks which do not end."""
    app = lab.app()
    await app.queue_stats()
    handles = await app.submit_many("noop", [None] * lab.ask.size)
    waiting = [asyncio.ensure_future(handle.result(3600)) for handle in handles]
    try:
        used = await _while_nothing_happens(lab)
    finally:
        for waiter in waiting:
            waiter.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await app.shutdown()
    costs = {"caller us/s each": used.python / used.wall / lab.ask.size * 1e6}
    if lab.server is not None:
        costs[COMMANDS] = used.commands / used.wall
        costs["Redis % of a core"] = used.redis / used.wall * 100
    return Measured(costs)
