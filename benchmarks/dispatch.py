"""What assigned dispatch costs beside pull: `python -m benchmarks.dispatch`.

Both ways run in turns against one Redis server: a leader and some workers in this process drain a queue of tasks that
do nothing. The table has the CPU time of Redis and of Python a task, and the ratio of both ways.
"""

from __future__ import annotations

import asyncio
import time

import click
from msgspec import Struct
from tests.support.redis import RedisServer

from benchmarks.crew import redis_cpu
from tickwork import Scheduler


class Cost(Struct, frozen=True):
    """Microseconds a task."""

    redis: float
    python: float
    wall: float


async def drain(server: RedisServer, mode: str, number: int, tasks: int, workers: int, concurrency: int) -> Cost:
    app = Scheduler(
        server.url, namespace=f"{mode}{number}", dispatch=mode, worker_count=workers, concurrency=concurrency
    )
    done = asyncio.Event()
    left = tasks

    @app.task
    async def work() -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    redis, python, began = redis_cpu(server), time.process_time(), time.monotonic()
    await app.submit_many("work", [None] * tasks)
    async with app:
        await done.wait()
    spent = (redis_cpu(server) - redis, time.process_time() - python, time.monotonic() - began)
    await app.close()
    return Cost(*(1e6 * each / tasks for each in spent))


async def measure(tasks: int, rounds: int, workers: int, concurrency: int) -> dict[str, list[Cost]]:
    found: dict[str, list[Cost]] = {"pull": [], "assigned": []}
    with RedisServer() as server:
        for number in range(rounds):
            for mode in ("pull", "assigned") if number % 2 == 0 else ("assigned", "pull"):
                found[mode].append(await drain(server, mode, number, tasks, workers, concurrency))
    return found


@click.command()
@click.option("--tasks", default=10_000, show_default=True)
@click.option("--rounds", default=4, show_default=True)
@click.option("--workers", default=3, show_default=True)
@click.option("--concurrency", default=20, show_default=True)
def main(tasks: int, rounds: int, workers: int, concurrency: int) -> None:
    """CPU time a task, with pull and with assigned dispatch."""
    found = asyncio.run(measure(tasks, rounds, workers, concurrency))
    best = {mode: {name: min(getattr(cost, name) for cost in costs) for name in Cost.__struct_fields__}
            for mode, costs in found.items()}  # fmt: skip
    click.echo(
        f"{'us a task, best of':<20}{'redis':>10}{'python':>10}{'wall':>10}   ({rounds} rounds of {tasks:,} tasks)"
    )
    for mode, costs in best.items():
        click.echo(f"{mode:<20}" + "".join(f"{cost:>10.1f}" for cost in costs.values()))
    ratios = [best["assigned"][name] / best["pull"][name] for name in Cost.__struct_fields__]
    click.echo(f"{'assigned / pull':<20}" + "".join(f"{ratio:>10.2f}" for ratio in ratios))


if __name__ == "__main__":
    main()
