"""`tickwork health`: for probes of containers that serve no pages."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options, keep_store
from tickwork.cli.session import ask, settings, store_of
from tickwork.errors import StoreError

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.model.health import Health

COLORS = {"ok": "green", "warning": "yellow", "error": "red"}
COLORS |= {"healthy": "green", "degraded": "yellow", "unhealthy": "red"}


@click.command("health")
@click.argument("store_url", required=False, expose_value=False, callback=keep_store)
@click.option("--here", is_flag=True, help="Unhealthy also if no worker of this host, or container, is up.")
@global_options
@click.pass_context
def health_command(ctx: click.Context, here: bool) -> None:
    """Say how the store, its workers and its queues are; status 1 if unhealthy."""
    health = _look(here)
    if output.as_json():
        output.show_json(health)
    else:
        facts = [(name, check.message) for name, check in health.checks.items()]
        colors: dict[str, str | None] = {name: COLORS[check.status] for name, check in health.checks.items()}
        output.show_facts([("status", health.status), *facts], {**colors, "status": COLORS[health.status]})
    ctx.exit(0 if health.works else 1)


def _look(here: bool) -> Health:
    from tickwork.client.health import health_of, unreachable, with_workers_of
    from tickwork.store.opening import name_of_check

    name = name_of_check(settings().config.store or "")

    async def look(client: Client) -> Health:
        health = await health_of(lambda: store_of(client), name, client.config)
        return await with_workers_of(socket.gethostname(), health, client.list_workers, name) if here else health

    try:
        return ask(look)
    except StoreError as error:
        return unreachable(name, str(error))
