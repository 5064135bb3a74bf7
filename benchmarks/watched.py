"""What it costs to watch a node: `python -m benchmarks.watched`.

Two processes work side by side, a node with metrics, statistics and alerts and one without, so that whatever else the
machine does concerns both. Each has a store of its own. It submits tasks that do nothing while their queue is paused,
and then runs them. The CPU time of the process and of its Redis counts, until all tasks have run and the statistics
have every one of them. All that the watched node needs more, with the submits or later, is compared to what the other
one needs to run its tasks. `--parts` adds nodes with metrics, statistics or alerts alone. All options are the defaults,
so alerts are looked at every 30 seconds, which is about every sixth round.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import click
from msgspec import Struct
from tests.support.redis import RedisServer

from benchmarks.crew import redis_cpu
from tickwork import Scheduler
from tickwork.config.options import SchedulerOptions

STORES = ("redis", "sqlite", "memory")
SETTLE = 3.0  # seconds after the last task: statistics are written every two
WARM = 1_000  # tasks that come first

OFF: SchedulerOptions = {"concurrency": 100, "metrics": False, "monitoring": False, "statistics": False}
METRICS: SchedulerOptions = {"metrics": True, "metrics_port": 0}
STATISTICS: SchedulerOptions = {"statistics": True}
ALERTS: SchedulerOptions = {"monitoring": True}
SETTINGS: dict[str, SchedulerOptions] = {
    "off": OFF,
    "on": {**OFF, **METRICS, **STATISTICS, **ALERTS},
    "metrics": {**OFF, **METRICS},
    "statistics": {**OFF, **STATISTICS},
    "alerts": {**OFF, **ALERTS},
}


class Cost(Struct, frozen=True):
    """CPU microseconds a task, with its submit and without."""

    whole: float
    drain: float


class Node:
    def __init__(self, url: str, setting: str, server: RedisServer | None) -> None:
        self.app = Scheduler(url, **SETTINGS[setting])
        self._counts = bool(SETTINGS[setting].get("statistics"))
        self._server = server
        self._left = 0
        self._ran = asyncio.Event()
        self._total = 0

        @self.app.task
        async def work(number: int) -> None:
            self._left -= 1
            if not self._left:
                self._ran.set()

    def _used(self) -> float:
        return time.process_time() + (0.0 if self._server is None else redis_cpu(self._server))

    async def drain(self, tasks: int) -> Cost:
        self._left, self._total = tasks, self._total + tasks
        self._ran.clear()
        await self.app.queues.pause("default")
        began = self._used()
        await self.app.submit_many("work", range(tasks))
        full = self._used()
        await self.app.queues.resume("default")
        await self._ran.wait()
        await asyncio.sleep(SETTLE)
        used = self._used()
        if self._counts and (counted := (await self.app.report()).total.success) != self._total:
            raise RuntimeError(f"the report has {counted:,} tasks, and {self._total:,} have run")
        return Cost(1e6 * (used - began) / tasks, 1e6 * (used - full) / tasks)


@contextmanager
def store(kind: str) -> Iterator[tuple[str, RedisServer | None]]:
    with tempfile.TemporaryDirectory(prefix="tickwork-watched-") as folder:
        if kind == "redis":
            with RedisServer() as server:
                yield server.url, server
        else:
            yield "memory://" if kind == "memory" else f"sqlite:///{folder}/tasks.db", None


def be_node(kind: str, setting: str) -> None:
    """In a process of its own: a line in says how many tasks to drain, a line out what that has cost."""

    async def run(url: str, server: RedisServer | None) -> None:
        node = Node(url, setting, server)
        async with node.app:
            while line := await asyncio.to_thread(sys.stdin.readline):
                cost = await node.drain(int(line))
                print(json.dumps([cost.whole, cost.drain]), flush=True)

    with store(kind) as (url, server):
        asyncio.run(run(url, server))


def measure(kind: str, settings: list[str], tasks: int, rounds: int) -> dict[str, list[Cost]]:
    found: dict[str, list[Cost]] = {setting: [] for setting in settings}
    with ExitStack() as stack:
        nodes = {}
        for setting in settings:
            command = [sys.executable, "-m", "benchmarks.watched", "--node", f"{kind} {setting}"]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            nodes[setting] = stack.enter_context(process)
        for turn in range(rounds + 1):
            for process in nodes.values():
                assert process.stdin is not None
                print(tasks if turn else WARM, file=process.stdin, flush=True)
            for setting, process in nodes.items():
                assert process.stdout is not None
                cost = Cost(*json.loads(process.stdout.readline()))
                if turn:
                    found[setting].append(cost)
            print(f"{kind}: round {turn}/{rounds}", file=sys.stderr)
        for process in nodes.values():
            assert process.stdin is not None
            process.stdin.close()
    return found


def text(kind: str, found: dict[str, list[Cost]]) -> Iterator[str]:
    """The cost, and how much more it is than `off`, as a share of a drain: over all rounds, and of the best ones."""
    ways: tuple[Callable[[list[float]], float], ...] = (statistics.mean, min)
    for setting, costs in found.items():
        figures = []
        for of in ways:
            whole, base = (of([cost.whole for cost in each]) for each in (costs, found["off"]))
            drain = of([cost.drain for cost in found["off"]])
            figures.append(f"{whole:>8.1f}{drain + whole - base:>8.1f}{(whole - base) / drain:>+8.1%}")
        yield f"{f'{kind}, {setting}':<22}" + "   ".join(figures)


@click.command()
@click.option("--tasks", default=20_000, show_default=True, type=click.IntRange(100, 30_000))
@click.option("--rounds", default=12, show_default=True, type=click.IntRange(min=1))
@click.option("--store", "stores", multiple=True, type=click.Choice(STORES), help="Only on this one; may be repeated.")
@click.option("--parts", is_flag=True, help="Metrics, statistics and alerts each alone, too.")
@click.option("--node", "told", hidden=True)
def main(tasks: int, rounds: int, stores: tuple[str, ...], parts: bool, told: str | None) -> None:
    """The CPU time of a task on a node that is watched, and on one that is not."""
    if told is not None:
        be_node(*told.split())
        return
    settings = list(SETTINGS) if parts else ["off", "on"]
    lines: list[str] = []
    for kind in stores or STORES:
        lines += text(kind, measure(kind, settings, tasks, rounds))
    print(f"CPU us a task, {rounds} rounds of {tasks:,} tasks")
    print(f"{'':<22}{'all rounds':>24}   {'best of each':>24}")
    print(f"{'':<22}" + "   ".join([f"{'whole':>8}{'drain':>8}{'more':>8}"] * 2))
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
