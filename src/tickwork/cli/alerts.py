"""`tickwork alerts`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.output import Column
from tickwork.cli.rules import by_option, note_option, read_until, until_options, who
from tickwork.cli.session import ask, change, now_of

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
    Column("SILENCED", least=12),
)
NOBODY_LOOKS = "nobody looks at alert rules; set monitoring=True on the nodes that may lead"


_name_argument = click.argument("name", metavar="NAME")


@click.group("alerts", invoke_without_command=True)
@global_options
@click.pass_context
def alerts_command(ctx: click.Context) -> None:
    """Show how the alert rules stand, and silence them.

    Without a command it lists them, and exits with 1 if one fires that is not silenced.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@alerts_command.command("list")
@global_options
def list_command() -> None:
    """List the alert rules: which fire, and since when.

    Exits with 1 if one fires that is not silenced.
    """

    async def look(client: Client) -> tuple[list[Alert], datetime]:
        return await client.alerts(), await now_of(client)

    alerts, now = ask(look)
    if output.as_json():
        output.show_json({"alerts": alerts})
    else:
        output.show_table(COLUMNS, [_row(alert, now) for alert in alerts], NOBODY_LOOKS)
    if any(alert.state == "firing" and alert.silenced is None for alert in alerts):
        click.get_current_context().exit(1)


@alerts_command.command("silence")
@_name_argument
@note_option
@by_option
@until_options
@global_options
def silence_command(
    name: str, note: str, by: str | None, until: str | None, duration: float | None, timezone: str | None
) -> None:
    """Tell nobody that a rule fires or is over, until the silence ends.

    If it fires then, it is told then.

    \b
      tickwork alerts silence old_backlog --for 2h --note "big import"
      tickwork alerts silence old_backlog --until 2030-01-31T09:00Z
    """
    at, said_by = read_until(until, duration, timezone), who(by)
    if at is None:
        raise click.UsageError("a silence needs an end: say it with --for or with --until")
    end_at = at

    async def silence(client: Client) -> None:
        await client.silence_alert(name, end_at, note, said_by)

    change(silence, "silenced an alert", name, note)
    output.done(f"{name}  silenced", name=name, done="silenced", note=note, by=said_by)


@alerts_command.command("resume")
@_name_argument
@global_options
def resume_command(name: str) -> None:
    """End the silence of a rule; if it fires, that is told."""
    found = change(lambda client: client.unsilence_alert(name), "ended the silence of an alert", name)
    word = "not silenced any more" if found else "was not silenced"
    output.done(f"{name}  {word}", name=name, done=word)


def _row(alert: Alert, now: datetime) -> tuple[object, ...]:
    return (
        alert.name,
        alert.state,
        output.duration(max((now - alert.since) // SECOND, 0)),
        "unknown" if alert.value is None else f"{alert.value:g}",
        f"{alert.metric} {alert.operator} {alert.threshold:g}"
        + (f" for {alert.duration:g} s" if alert.duration else ""),
        output.age(alert.looked_at, now),
        "" if alert.silenced is None else f"ends {output.age(alert.silenced.until, now)}, by {alert.silenced.by}",
    )
