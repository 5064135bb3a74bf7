"""`tickwork bench`: what a store does here. For comparisons with others there is `benchmarks/` in the repository."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tickwork.cli import output
from tickwork.cli.options import Duration, global_options
from tickwork.cli.output import Column
from tickwork.cli.session import said, settings, sqlite_path
from tickwork.config.urls import mask_url

if TYPE_CHECKING:
    from tickwork.scheduler import Scheduler

BATCH = 500
COLUMNS = (
    Column("WHAT"),
    Column("TASKS", right=True),
    Column("TIME", right=True),
    Column("TASKS/S", right=True),
    Column("CPU µs/TASK", right=True),
    Column("p50", right=True),
    Column("p99", right=True),
)


class Measure(NamedTuple):
    what: str
    tasks: int
    seconds: float
    cpu_seconds: float
    latencies: tuple[float, ...] = ()

    def document(self) -> dict[str, Any]:
        p50, p99 = percentile(self.latencies, 0.5), percentile(self.latencies, 0.99)
        return {
            "what": self.what,
            "tasks": self.tasks,
            "seconds": round(self.seconds, 4),
            "tasks_per_second": round(self.tasks / self.seconds, 1),
            "cpu_us_per_task": round(self.cpu_seconds / self.tasks * 1e6, 1),
            "p50_ms": None if p50 is None else round(p50 * 1000, 3),
            "p99_ms": None if p99 is None else round(p99 * 1000, 3),
        }


def percentile(values: tuple[float, ...], part: float) -> float | None:
    return sorted(values)[min(int(len(values) * part), len(values) - 1)] if values else None


class Stopwatch:
    """Wall time and the CPU time of all threads of this process."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._wall

    def measure(self, what: str, tasks: int, latencies: list[float] | None = None) -> Measure:
        return Measure(what, tasks, self.seconds, time.process_time() - self._cpu, tuple(latencies or ()))


@click.command("bench")
@click.option("--seconds", type=Duration(), default=6.0, metavar="TIME", help="How long to measure, about.  [6s]")
@click.option("--concurrency", type=click.IntRange(1), default=10, show_default=True, help="Tasks that run at a time.")
@global_options
def bench_command(seconds: float, concurrency: int) -> None:
    """Measure what a store does on this machine.

    Submits tasks that do nothing, drains them with one worker, then waits for one after the other. A SQLite store is
    measured in a new file beside it, memory:// in this process; nothing is left behind.
    """
    from tickwork.node.running import run_loop
    from tickwork.scheduler import Scheduler

    measures: list[Measure] = []
    with _place() as (url, shown):
        app = Scheduler(url, namespace="bench", concurrency=concurrency, config=said("config"))
        if not output.as_json():
            click.echo(f"{output.clean(shown)}, {concurrency} at a time", err=True)
        run_loop(_bench(app, seconds / 3, measures))
    if output.as_json():
        output.show_json({"store": shown, "concurrency": concurrency, "measures": [m.document() for m in measures]})
        return
    output.show_table(COLUMNS, [_row(measure.document()) for measure in measures], "")


def _row(found: dict[str, Any]) -> tuple[object, ...]:
    latencies = ["" if found[key] is None else f"{found[key]:.2f}ms" for key in ("p50_ms", "p99_ms")]
    return (
        found["what"], f"{found['tasks']:,}", output.duration(found["seconds"]), f"{found['tasks_per_second']:,.0f}",
        f"{found['cpu_us_per_task']:,.0f}", *latencies,
    )  # fmt: skip


@contextmanager
def _place() -> Iterator[tuple[str, str]]:
    """A URL where nobody else's tasks are, and its name."""
    url = settings().config.store or ""
    path = sqlite_path(url)
    if path is None:
        yield url, mask_url(url)
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise click.UsageError(f"folder {folder} does not exist")
    with tempfile.TemporaryDirectory(prefix="tickwork-bench-", dir=folder) as place:
        yield f"sqlite:///{place}/bench.db", f"a new SQLite file in {folder}"


async def _bench(app: Scheduler, seconds: float, measures: list[Measure]) -> None:
    async def nothing() -> None:
        pass

    app.registry.register("nothing", nothing)
    try:
        measures.append(await _measure_submits(app, seconds))
        measures.append(await _measure_drain(app, measures[0].tasks))
        measures.append(await _measure_round_trips(app, seconds))
    finally:
        await app.shutdown()


async def _measure_submits(app: Scheduler, seconds: float) -> Measure:
    await app.submit_many("nothing", [None])  # opens the store
    watch, count = Stopwatch(), 0
    # Draining takes longer than submitting, and is to take no longer than its third of the time.
    while watch.seconds < seconds / 2:
        await app.submit_many("nothing", [None] * BATCH)
        count += BATCH
    return watch.measure(f"submit, {BATCH} a call", count)


async def _measure_drain(app: Scheduler, count: int) -> Measure:
    watch = Stopwatch()
    await app.start()
    while (await app.status()).tasks.get("success", 0) <= count:
        await asyncio.sleep(0.02)
    return watch.measure("drain", count)


async def _measure_round_trips(app: Scheduler, seconds: float) -> Measure:
    watch, latencies = Stopwatch(), list[float]()
    while watch.seconds < seconds:
        started = time.perf_counter()
        await (await app.submit("nothing")).result(60)
        latencies.append(time.perf_counter() - started)
    return watch.measure("submit and wait, one by one", len(latencies), latencies)
