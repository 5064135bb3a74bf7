"""`tickwork queues`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.output import Column
from tickwork.cli.session import ask, change, store_of

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.client.queues import QueueInfo
    from tickwork.store.contract import Pause

COLUMNS = (
    Column("QUEUE", least=12),
    Column("HIGH", right=True),
    Column("NORMAL", right=True),
    Column("LOW", right=True),
    Column("WORKERS", right=True, drop=1),
    Column("STATE", least=8, color=lambda cell: "yellow" if cell.startswith("paused") else None),
)

_name_argument = click.argument("name", metavar="[QUEUE]", required=False)
_type_option = click.option("--type", "type_", metavar="TYPE", help="A task type, in all queues.")


@click.group("queues", invoke_without_command=True)
@global_options
@click.pass_context
def queues_command(ctx: click.Context) -> None:
    """Look after queues: what waits in them, and who may take it.

    Without a command it lists them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@queues_command.command("list")
@global_options
def list_command() -> None:
    """List the queues that have tasks, workers or a pause."""

    async def look(client: Client) -> tuple[list[QueueInfo], list[Pause]]:
        return await client.queues.list(), await (await store_of(client)).queries.paused()

    queues, pauses = ask(look)
    types = [pause for pause in pauses if pause.kind == "type"]
    if output.as_json():
        paused_types = [{"type": pause.name, "note": pause.note} for pause in types]
        output.show_json({"queues": queues, "paused_types": paused_types})
        return
    show_queues(queues)
    for pause in types:
        note = f": {pause.note}" if pause.note else ""
        click.secho(output.clean(f"task type {pause.name} is paused{note}"), fg="yellow")


def show_queues(queues: list[QueueInfo]) -> None:
    rows = [(q.name, q.high, q.normal, q.low, q.workers, _state(q)) for q in queues]
    output.show_table(COLUMNS, rows, "no queue has tasks, workers or a pause")


def _state(queue: QueueInfo) -> str:
    if queue.paused:
        return f"paused: {queue.note}" if queue.note else "paused"
    parked = ", ".join(f"{count} {kind}" for kind, count in queue.parked.items())
    return f"parked: {parked}" if parked else ""


@queues_command.command("pause")
@_name_argument
@_type_option
@click.option("--note", default="", metavar="TEXT", help="The reason, shown with the pause.")
@global_options
def pause_command(name: str | None, type_: str | None, note: str) -> None:
    """Start nothing of a queue or of a type until it is resumed; what runs goes on."""
    kind, what = _target(name, type_)
    if kind == "type":
        change(lambda client: client.queues.pause_type(what, note), "paused a type", what, note)
    else:
        change(lambda client: _pause_queue(client, what, note), "paused a queue", what, note)
    output.done(f"{kind} {what}  paused", **{kind: what}, done="paused", note=note)


async def _pause_queue(client: Client, name: str, note: str) -> None:
    known = [queue.name for queue in await client.queues.list()]
    await client.queues.pause(name, note)
    if name not in known:
        click.echo(f"note: nobody serves queue {output.clean(name)} and it holds nothing", err=True)


@queues_command.command("resume")
@_name_argument
@_type_option
@global_options
def resume_command(name: str | None, type_: str | None) -> None:
    """Start what waits in a queue, or is of a type, again."""
    kind, what = _target(name, type_)
    if kind == "type":
        found = change(lambda client: client.queues.resume_type(what), "resumed a type", what)
    else:
        found = change(lambda client: client.queues.resume(what), "resumed a queue", what)
    word = "resumed" if found else "was not paused"
    output.done(f"{kind} {what}  {word}", **{kind: what}, done=word)


def _target(name: str | None, type_: str | None) -> tuple[str, str]:
    if (name is None) == (type_ is None):
        raise click.UsageError("name a queue, or a type with --type")
    return ("queue", name) if name is not None else ("type", str(type_))
