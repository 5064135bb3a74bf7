"""`tickwork alerts`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.output import Column
from tickwork.cli.session import ask, now_of

if TYPE_CHECKING:
    from datetime import datetime

    from tickwork.client.client import Client
    from tickwork.model.alerts import Alert

SECOND = timedelta(seconds=1)
COLORS = {"ok": "green", "pending": "yellow", "firing": "red"}
COLUMNS = (
    Column("ALERT", least=16),
    Column("STATE", color=COLORS.get),
    Column("FOR", right=True),
    Column("VALUE", right=True),
    Column("FIRES WHEN", least=16, drop=2),
    Column("LOOKED AT", drop=1),
)
NOBODY_LOOKS = "nobody looks at alert rules; set monitoring=True on the nodes that may lead"


@click.command("alerts")
@global_options
def alerts_command() -> None:
    """Show how the alert rules stand: which fire, and since when.

    Exits with 1 if one fires.
    """

    async def look(client: Client) -> tuple[list[Alert], datetime]:
        return await client.alerts(), await now_of(client)

    alerts, now = ask(look)
    if output.as_json():
        output.show_json({"alerts": alerts})
    else:
        output.show_table(COLUMNS, [_row(alert, now) for alert in alerts], NOBODY_LOOKS)
    if any(alert.state == "firing" for alert in alerts):
        click.get_current_context().exit(1)


def _row(alert: Alert, now: datetime) -> tuple[object, ...]:
    return (
        alert.name,
        alert.state,
        output.duration(max((now - alert.since) // SECOND, 0)),
        "unknown" if alert.value is None else f"{alert.value:g}",
        f"{alert.metric} {alert.operator} {alert.threshold:g}"
        + (f" for {alert.duration:g} s" if alert.duration else ""),
        output.age(alert.looked_at, now),
    )
