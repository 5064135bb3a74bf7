"""Three periodic tasks of a small service, with the things they need handed in, and a manager that owns them.

python examples/periodic_tasks.py                until Ctrl-C
python examples/periodic_tasks.py --seconds 1    each task once now, then stop after a second
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tickwork import PeriodicTask, Scheduler, TaskContext

# --- what the tasks work on


@dataclass
class Cache:
    """Stands for a cache server: values, and when each expires (None: never)."""

    entries: dict[str, float | None] = field(default_factory=dict)


@dataclass
class Database:
    users: int = 3
    api_calls: int = 120
    reports: list[str] = field(default_factory=list)


# --- the tasks


class ExampleTask(PeriodicTask):
    """Says hello every minute."""

    name = "example_task"
    spec = "0 * * * * *"
    timeout = 30

    async def run(self, ctx: TaskContext) -> None:
        ctx.logger.info("example task is running")


class CleanupTask(PeriodicTask):
    """At two in the morning: temporary cache keys that never expire, old logs, temporary files."""

    name = "cleanup_task"
    spec = "0 0 2 * * *"
    timeout = 600

    def __init__(self, cache: Cache, folder: Path, keep_logs_for: float = 7 * 86_400) -> None:
        self.cache = cache
        self.folder = folder
        self.keep_logs_for = keep_logs_for

    def run(self, ctx: TaskContext) -> None:
        keys = [key for key, until in self.cache.entries.items() if key.startswith("tmp:") and until is None]
        for key in keys:
            del self.cache.entries[key]
        oldest = time.time() - self.keep_logs_for
        logs = [file for file in self.folder.glob("*.log") if file.stat().st_mtime < oldest]
        files = [*logs, *self.folder.glob("*.tmp")]
        for file in files:
            if ctx.cancelled:
                return
            file.unlink(missing_ok=True)
        ctx.logger.info("cleaned up: %d keys, %d files", len(keys), len(files))


class StatsTask(PeriodicTask):
    """Every hour: counts users and calls, and stores a report."""

    name = "stats_task"
    spec = "0 0 * * * *"
    timeout = 120

    def __init__(self, database: Database) -> None:
        self.database = database

    async def run(self, ctx: TaskContext) -> None:
        report = f"{self.database.users} users, {self.database.api_calls} calls"
        self.database.reports.append(report)
        ctx.logger.info("statistics: %s", report)


# --- who owns them


class TaskManager:
    """Registers all tasks of the service, starts them with it and stops them with it."""

    def __init__(self, app: Scheduler, tasks: Sequence[PeriodicTask]) -> None:
        self.app = app
        for task in tasks:
            app.register(task)

    def list_tasks(self) -> list[str]:
        return self.app.list_registered()

    async def run_all_now(self) -> None:
        for name in self.list_tasks():
            await self.app.schedules.trigger(name)


def make_manager(folder: Path) -> TaskManager:
    cache = Cache({"tmp:upload": None, "tmp:session": time.time() + 60, "user:1": None})
    (folder / "upload.tmp").touch()
    tasks = [ExampleTask(), CleanupTask(cache, folder), StatsTask(Database())]
    return TaskManager(Scheduler("memory://", timezone="Europe/Berlin"), tasks)


async def show(manager: TaskManager, seconds: float) -> None:
    async with manager.app:
        await manager.run_all_now()
        await asyncio.sleep(seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Periodic tasks of a small service.")
    parser.add_argument("--seconds", type=float, help="run each task once now, and stop after so long")
    wanted: float | None = parser.parse_args().seconds
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
    with tempfile.TemporaryDirectory() as name:
        manager = make_manager(Path(name))
        print("registered:", manager.list_tasks())
        if wanted is None:
            manager.app.run()
        else:
            asyncio.run(show(manager, wanted))
