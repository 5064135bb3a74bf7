"""`tickwork stats` and `tickwork workers`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.output import Column
from tickwork.cli.queues import show_queues
from tickwork.cli.session import ask, now_of, store_of
from tickwork.model.members import Worker
from tickwork.model.tasks import Status
from tickwork.store.contract import Query

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.client.queues import QueueInfo
    from tickwork.model.info import WorkerInfo
    from tickwork.store.contract import Stats

SECOND = timedelta(seconds=1)
COUNTED_MAX = 200  # running tasks that are looked at one by one
COLORS = {"idle": "green", "working": "green", "busy": "yellow", "offline": "red"}
WORKER_COLUMNS = (
    Column("ID", least=16),
    Column("STATUS", color=COLORS.get),
    Column("BUSY", right=True),
    Column("QUEUES", least=7, drop=2),
    Column("TYPES", least=8, drop=4),
    Column("PID", right=True, drop=3),
    Column("UP", drop=1, right=True),
    Column("SEEN"),
)


@click.command("stats")
@global_options
def stats_command() -> None:
    """Count tasks by status and queue."""

    async def look(client: Client) -> tuple[Stats, list[QueueInfo], str]:
        store = await store_of(client)
        return await store.queries.stats(), await client.queues.list(), client.config.namespace

    stats, queues, namespace = ask(look)
    if output.as_json():
        from tickwork.client.views import queue_stats

        output.show_json(
            {
                "namespace": namespace,
                "tasks": {status.value: stats.statuses.get(status, 0) for status in Status},
                "counts": queue_stats(stats),
                "queues": queues,
                "workers": stats.workers,
                "dropped_dead_letters": stats.dropped,
            }
        )
        return
    for status in Status:
        count = stats.statuses.get(status, 0)
        if count or status is not Status.ASSIGNED:
            text = click.style(f"{status:<10}", fg=output.status_color(status) if count else "bright_black")
            click.echo(f"{text} {count:>9,}")
    click.echo(f"{'workers':<10} {stats.workers:>9,}")
    if stats.dropped:
        click.secho(f"{stats.dropped:,} dead letters were dropped, as there were too many (dlq_max)", fg="red")
    click.echo()
    show_queues(queues)


@click.command("workers")
@click.option(
    "--status", type=click.Choice(["idle", "busy", "online", "offline"]), help="Only workers in this status.  [all]"
)
@global_options
def workers_command(status: str | None) -> None:
    """List workers."""

    async def look(client: Client) -> tuple[list[WorkerInfo], datetime]:
        from tickwork.client.views import worker_infos

        return worker_infos(await _counted(client), status), await now_of(client)

    workers, now = ask(look)
    if output.as_json():
        output.show_json({"workers": workers})
        return
    rows = [
        (
            worker.id,
            status_of(worker),
            f"{worker.running}/{worker.capacity}",
            ", ".join(worker.queues),
            ", ".join(worker.task_types),
            worker.pid or "",
            output.duration(max((now - worker.started_at) // SECOND, 0)) if worker.lost_at is None else "",
            output.age(worker.beat_at, now),
        )
        for worker in workers
    ]
    none = f"no worker is {status}" if status in ("busy", "offline") else "no worker is up"
    output.show_table(WORKER_COLUMNS, rows, f"{none}; start one with `tickwork up MODULE:APP`")


async def _counted(client: Client) -> list[Worker]:
    from tickwork.client.watching import counted

    store = await store_of(client)
    workers = await store.members.workers()
    running, cursor = await store.queries.page(Query(Status.RUNNING, limit=COUNTED_MAX))
    return workers if cursor is not None else counted(workers, (record.worker_id for record in running))


def status_of(worker: WorkerInfo) -> str:
    return "working" if worker.status == "idle" and worker.running else worker.status
