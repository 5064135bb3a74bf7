"""`tickwork stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.queues import show_queues
from tickwork.cli.session import ask, store_of
from tickwork.model.tasks import Status

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.client.queues import QueueInfo
    from tickwork.store.contract import Stats


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
