"""`tickwork health`: for probes of containers that serve no pages."""

from __future__ import annotations

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
@global_options
@click.pass_context
def health_command(ctx: click.Context) -> None:
    """Say how the store, its workers and its queues are; status 1 if unhealthy."""
    health = _look()
    if output.as_json():
        output.show_json(health)
    else:
        facts = [(name, check.message) for name, check in health.checks.items()]
        colors: dict[str, str | None] = {name: COLORS[check.status] for name, check in health.checks.items()}
        output.show_facts([("status", health.status), *facts], {**colors, "status": COLORS[health.status]})
    ctx.exit(0 if health.works else 1)


def _look() -> Health:
    from tickwork.client.health import health_of, unreachable
    from tickwork.store.opening import name_of_check

    name = name_of_check(settings().config.store or "")

    async def look(client: Client) -> Health:
        return await health_of(lambda: store_of(client), name, client.config)

    try:
        return ask(look)
    except StoreError as error:
        return unreachable(name, str(error))
