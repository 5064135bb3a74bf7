"""`tickwork limits`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.output import Column
from tickwork.cli.rules import by_option, hint_at_type, note_option, said, who
from tickwork.cli.session import ask, change

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.client.limits import LimitInfo

COLUMNS = (
    Column("OF", least=12),
    Column("LIMIT", least=12),
    Column("LEFT", right=True, drop=3),
    Column("RUNNING", right=True, drop=2),
    Column("WAITING", right=True, color=lambda cell: None if cell == "0" else "yellow"),
    Column("SET", drop=1),
    Column("BY", least=8, drop=4),
)

_of_argument = click.argument("of", metavar="OF")


@click.group("limits", invoke_without_command=True)
@global_options
@click.pass_context
def limits_command(ctx: click.Context) -> None:
    """Look after limits: how many tasks of a type or queue may start and run.

    Without a command it lists them. OF is type:NAME or queue:NAME.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@limits_command.command("list")
@global_options
def list_command() -> None:
    """List the limits that hold, of the code and by hand, and who waits."""
    limits = ask(lambda client: client.limits.list())
    if output.as_json():
        output.show_json({"limits": limits})
        return
    output.show_table(COLUMNS, [_row(limit) for limit in limits], "no limits")
    for limit in limits:
        if limit.keys:
            keys = ", ".join(f"{key or '(none)'} {waiting:,}" for key, waiting in limit.keys.items())
            click.echo(output.clean(f"{limit.of}: most wait for key {keys}"))


def _row(limit: LimitInfo) -> tuple[object, ...]:
    return (
        limit.of,
        limit.text,
        "" if limit.tokens is None else f"{max(limit.tokens, 0.0):.0f}",
        "" if limit.running is None else limit.running,
        limit.waiting,
        "by hand" if limit.origin == "hand" else "in code",
        said(limit.by, limit.note),
    )


@limits_command.command("set")
@_of_argument
@click.option("--rate", metavar="RATE", help="Starts, such as 5/s, 100/m, 1000/h or 10/d.")
@click.option("--burst", type=int, help="Starts at once after a pause.  [default: those of a second]")
@click.option("--concurrency", type=int, help="Runs at a time.")
@click.option("--per-key", is_flag=True, help="For the tasks of each key by themselves.")
@click.option("--none", "no_limit", is_flag=True, help="No limit, whatever the code says.")
@note_option
@by_option
@global_options
def set_command(
    of: str,
    rate: str | None,
    burst: int | None,
    concurrency: int | None,
    per_key: bool,
    no_limit: bool,
    note: str,
    by: str | None,
) -> None:
    """Limit a type or a queue, for all workers, instead of what the code says.

    It replaces the whole limit: what is not said again does not hold any more.

    \b
      tickwork limits set type:mail --rate 100/m --note "their bill"
      tickwork limits set queue:orders --concurrency 5
      tickwork limits set type:report --rate 1/m --per-key
      tickwork limits set type:mail --none
    """
    given = rate is not None or concurrency is not None
    if no_limit and given:
        raise click.UsageError("--none cannot be given together with --rate or --concurrency")
    if not (no_limit or given):
        raise click.UsageError("give --rate, --concurrency or both; or --none for no limit")
    name = who(by)
    per: Literal["key"] | None = "key" if per_key else None

    async def set_it(client: Client) -> tuple[LimitInfo | None, LimitInfo]:
        before = {limit.of: limit for limit in await client.limits.list()}
        await client.limits.set(of, rate=rate, burst=burst, concurrency=concurrency, per=per, note=note, by=name)
        await hint_at_type(client, of)
        after = {limit.of: limit for limit in await client.limits.list()}
        return before.get(of), after[of]

    before, after = change(set_it, "set a limit", of, note)
    instead = f" instead of {before.text}" if before is not None and before.text != after.text else ""
    output.done(
        f"{of}  {after.text}{instead}", of=of, done="set", rate=rate, burst=burst, concurrency=concurrency, per=per,
        note=note, by=name, instead_of=None if before is None else before.text,
    )  # fmt: skip


@limits_command.command("remove")
@_of_argument
@by_option
@global_options
def remove_command(of: str, by: str | None) -> None:
    """Take back what was set by hand: what the code says holds again."""
    found = change(lambda client: client.limits.remove(of, by=who(by)), "removed a limit", of)
    word = "removed" if found else "was not set by hand"
    output.done(f"{of}  {word}", of=of, done=word)
