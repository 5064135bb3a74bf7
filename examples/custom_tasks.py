"""Shapes that a periodic task of your own may have.

python examples/custom_tasks.py                until Ctrl-C
python examples/custom_tasks.py --seconds 1    each task once now, then stop after a second
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Protocol

from tickwork import PeriodicTask, Scheduler, TaskContext


class MyTask(PeriodicTask):
    """The plainest: a name, a cron line, a timeout, and what to do."""

    name = "my_task"
    spec = "0 */5 * * * *"
    timeout = 120

    async def run(self, ctx: TaskContext) -> None:
        ctx.logger.info("my task ran")


def simple(ctx: TaskContext) -> None:
    ctx.logger.info("simple task ran")


class Prices(Protocol):
    """What a dependent task asks of another service."""

    async def fetch(self) -> dict[str, int]: ...


class FixedPrices:
    async def fetch(self) -> dict[str, int]:
        return {"apple": 3, "pear": 4}


class DependentTask(PeriodicTask):
    """Gets data from a service that it was given, then works on it."""

    name = "dependent_task"
    spec = "0 */15 * * * *"
    timeout = 60

    def __init__(self, prices: Prices) -> None:
        self.prices = prices

    async def run(self, ctx: TaskContext) -> None:
        prices = await self.prices.fetch()
        ctx.logger.info("the dearest is %s", max(prices, key=prices.__getitem__))


class DynamicTask(PeriodicTask):
    """Reads its cron line from the configuration of the program."""

    name = "dynamic_task"
    timeout = 60

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.spec = settings.get("DYNAMIC_TASK_SPEC", "0 0 * * * *")

    async def run(self, ctx: TaskContext) -> None:
        ctx.logger.info("dynamic task ran, it is set to %s", self.spec)


class ConditionalTask(PeriodicTask):
    """Looks first whether there is anything to do. Not to do it is a success."""

    name = "conditional_task"
    spec = "0 */10 * * * *"
    timeout = 60

    def __init__(self, condition: Callable[[], bool]) -> None:
        self.condition = condition

    async def run(self, ctx: TaskContext) -> None:
        if not self.condition():
            ctx.logger.info("Task skipped: condition not met")
            return
        ctx.logger.info("conditional task ran")


class LongTask(PeriodicTask):
    """Works through many items, and stops between two of them when it is told to."""

    name = "long_task"
    spec = "0 0 3 * * *"
    timeout = 3600

    def __init__(self, items: int) -> None:
        self.items = items

    def run(self, ctx: TaskContext) -> None:
        for number in range(1, self.items + 1):
            if ctx.cancelled:
                ctx.logger.warning("stopped after %d items", number - 1)
                return
            ctx.progress(number / self.items)
        ctx.logger.info("long task did %d items", self.items)


def make_app() -> Scheduler:
    app = Scheduler("memory://")
    for task in (
        MyTask(),
        PeriodicTask.of("simple_task", "0 */10 * * * *", 60, simple),
        DependentTask(FixedPrices()),
        DynamicTask(os.environ),
        ConditionalTask(lambda: False),
        LongTask(1000),
    ):
        app.register(task)
    return app


async def show(app: Scheduler, seconds: float) -> None:
    async with app:
        for name in app.list_registered():
            await app.schedules.trigger(name)
        await asyncio.sleep(seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Periodic tasks of all shapes.")
    parser.add_argument("--seconds", type=float, help="run each task once now, and stop after so long")
    wanted: float | None = parser.parse_args().seconds
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
    if wanted is None:
        make_app().run()
    else:
        asyncio.run(show(make_app(), wanted))
