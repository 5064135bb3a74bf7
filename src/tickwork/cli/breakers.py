"""`tickwork breakers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.output import Column
from tickwork.cli.rules import by_option, end, hint_at_type, note_option, read_until, said, until_options, who
from tickwork.cli.session import ask, change, now_of

if TYPE_CHECKING:
    from datetime import datetime

    from tickwork.client.breakers import BreakerInfo
    from tickwork.client.client import Client

COLUMNS = (
    Column("OF", least=12),
    Column("STATE", color={"open": "red", "half open": "yellow"}.get),
    Column("FAILURES", right=True, drop=3),
    Column("UNTIL", drop=1),
    Column("WAITING", right=True),
    Column("BY", least=8, drop=2),
)

_of_argument = click.argument("of", metavar="OF")


@click.group("breakers", invoke_without_command=True)
@global_options
@click.pass_context
def breakers_command(ctx: click.Context) -> None:
    """Look after circuit breakers: what is stopped because it fails.

    Without a command it lists those that are not closed. OF is type:NAME or target:EXECUTOR/TARGET.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@breakers_command.command("list")
@global_options
def list_command() -> None:
    """List the breakers that are open or half open."""

    async def look(client: Client) -> tuple[list[BreakerInfo], datetime]:
        return await client.breakers.list(), await now_of(client)

    breakers, now = ask(look)
    if output.as_json():
        output.show_json({"breakers": breakers})
        return
    rows = [
        (each.of, each.state.replace("_", " "), each.failures, end(each.open_until, now), each.waiting,
         said(each.by, each.note) or ("by hand" if each.by_hand else ""))
        for each in breakers
    ]  # fmt: skip
    output.show_table(COLUMNS, rows, "all breakers are closed")


@breakers_command.command("open")
@_of_argument
@note_option
@by_option
@until_options
@global_options
def open_command(
    of: str, note: str, by: str | None, until: str | None, duration: float | None, timezone: str | None
) -> None:
    """Start no task of a type, or to a target, until it is closed; what runs goes on.

    \b
      tickwork breakers open type:charge --note "the bank is down"
      tickwork breakers open target:http/billing --for 30m
    """
    at, name = read_until(until, duration, timezone), who(by)

    async def open_it(client: Client) -> None:
        await client.breakers.open(of, note, name, at)
        await hint_at_type(client, of)

    change(open_it, "opened a breaker", of, note)
    output.done(f"{of}  opened", of=of, done="opened", note=note, by=name)


@breakers_command.command("close")
@_of_argument
@by_option
@global_options
def close_command(of: str, by: str | None) -> None:
    """Start its tasks again, whether somebody or failures have opened it."""
    found = change(lambda client: client.breakers.close(of, by=who(by)), "closed a breaker", of)
    word = "closed" if found else "was not open"
    output.done(f"{of}  {word}", of=of, done=word)
