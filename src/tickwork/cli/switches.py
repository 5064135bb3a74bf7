"""`tickwork switches`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.output import Column
from tickwork.cli.rules import by_option, end, hint_at_type, note_option, read_until, until_options, who
from tickwork.cli.session import ask, change, now_of

if TYPE_CHECKING:
    from datetime import datetime

    from tickwork.client.client import Client
    from tickwork.client.switches import SwitchInfo

COLUMNS = (
    Column("OFF", least=12, color=lambda cell: "yellow"),
    Column("SINCE", drop=2),
    Column("UNTIL", drop=1),
    Column("WAITING", right=True),
    Column("BY", least=8, drop=3),
    Column("NOTE", least=8),
)

_of_argument = click.argument("of", metavar="OF")


@click.group("switches", invoke_without_command=True)
@global_options
@click.pass_context
def switches_command(ctx: click.Context) -> None:
    """Look after switches: tasks of a type, key or tag that are stopped.

    Without a command it lists them. OF is type:NAME, key:KEY or tag:NAME=VALUE.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@switches_command.command("list")
@global_options
def list_command() -> None:
    """List what is switched off, by whom and why."""

    async def look(client: Client) -> tuple[list[SwitchInfo], datetime]:
        return await client.switches.list(), await now_of(client)

    switches, now = ask(look)
    if output.as_json():
        output.show_json({"switches": switches})
        return
    rows = [
        (each.of, end(each.since, now), end(each.until, now), each.waiting, each.by, each.note) for each in switches
    ]
    output.show_table(COLUMNS, rows, "nothing is switched off")


@switches_command.command("off")
@_of_argument
@note_option
@by_option
@until_options
@global_options
def off_command(
    of: str, note: str, by: str | None, until: str | None, duration: float | None, timezone: str | None
) -> None:
    """Start no task of a type, a key or a tag until it is switched on; what runs goes on.

    \b
      tickwork switches off type:mail --note "wrong prices"
      tickwork switches off key:acme --for 2h
      tickwork switches off tag:customer=acme --until 2030-01-31T09:00Z
    """
    at, name = read_until(until, duration, timezone), who(by)

    async def switch(client: Client) -> None:
        await client.switches.off(of, note, name, at)
        await hint_at_type(client, of)

    change(switch, "switched off", of, note)
    output.done(f"{of}  switched off", of=of, done="switched off", note=note, by=name)


@switches_command.command("on")
@_of_argument
@by_option
@global_options
def on_command(of: str, by: str | None) -> None:
    """Start them again, with those that wait."""
    found = change(lambda client: client.switches.on(of, by=who(by)), "switched on", of)
    word = "switched on" if found else "was not off"
    output.done(f"{of}  {word}", of=of, done=word)
