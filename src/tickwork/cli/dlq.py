"""`tickwork dlq`: dead letters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import cascade_option, cursor_option, global_options, limit_option
from tickwork.cli.output import Column
from tickwork.cli.pages import find
from tickwork.cli.session import ask
from tickwork.cli.tasks import first_line, task_command, wants_cascade
from tickwork.client import steering
from tickwork.model.info import Steered, TaskInfo
from tickwork.model.tasks import Status

if TYPE_CHECKING:
    from tickwork.client.client import Client

AT_ONCE = 500  # in one call, after which the progress bar moves
COLUMNS = (
    Column("ID"),
    Column("TYPE", least=10),
    Column("QUEUE", least=5, drop=2),
    Column("TRIES", drop=3, right=True),
    Column("DIED", drop=1),
    Column("ERROR", least=12, color=lambda cell: "red"),
)

_type_option = click.option("--type", "type_", metavar="TYPE", help="Only tasks of this type.")
_yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


@click.group("dlq", invoke_without_command=True)
@global_options
@click.pass_context
def dlq_command(ctx: click.Context) -> None:
    """Look after dead letters: tasks whose retries are spent.

    Without a command it lists them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@dlq_command.command("list")
@_type_option
@limit_option
@cursor_option
@global_options
def list_command(type_: str | None = None, limit: int = 50, cursor: str | None = None) -> None:
    """List dead letters."""

    found = ask(lambda client: find(client, cursor, status=Status.DEAD, type=type_, limit=limit))
    if output.as_json():
        output.show_json({"tasks": found.page.items, "cursor": found.page.cursor})
        return
    rows = [
        (task.id, task.type, task.queue, task.attempt, _died(task, found.now), first_line(task.last_error))
        for task in found.page
    ]
    output.show_table(COLUMNS, rows, found.empty("no dead letters"))
    found.show_rest()


def _died(task: TaskInfo, now: datetime) -> str:
    return "" if task.finished_at is None else output.age(task.finished_at, now)


@dlq_command.command("show")
@click.argument("task_id", metavar="ID")
@global_options
@click.pass_context
def show_command(ctx: click.Context, task_id: str) -> None:
    """Show everything known about a dead letter."""
    ask(lambda client: client.dlq.get(task_id))
    ctx.invoke(task_command, task_id=task_id)


@dlq_command.command("retry")
@click.argument("task_id", metavar="ID")
@cascade_option
@global_options
def retry_command(task_id: str, cascade: bool | None) -> None:
    """Run a dead letter again, with fresh counters."""
    with_followers = wants_cascade([task_id], cascade)
    followers = ask(lambda client: client.dlq.retry(task_id, cascade=with_followers))
    count = f", {output.many(len(followers), 'dependant')} brought back" if followers else ""
    output.done(f"{task_id}  sent to run{count}", id=task_id, done="sent to run", brought_back=followers)


@dlq_command.command("remove")
@click.argument("task_id", metavar="ID")
@global_options
def remove_command(task_id: str) -> None:
    """Delete a dead letter."""
    ask(lambda client: client.dlq.remove(task_id))
    output.done(f"{task_id}  deleted", id=task_id, done="deleted")


@dlq_command.command("retry-all")
@_type_option
@_yes_option
@cascade_option
@global_options
def retry_all_command(type_: str | None, yes: bool, cascade: bool | None) -> None:
    """Run all dead letters again."""
    _do_to_all(
        type_,
        yes,
        "run again",
        "sent to run",
        lambda client, ids: steering.retry(client._access, ids, Status.DEAD, cascade=bool(cascade)),
    )


@dlq_command.command("clear")
@_type_option
@_yes_option
@global_options
def clear_command(type_: str | None, yes: bool) -> None:
    """Delete all dead letters."""
    _do_to_all(type_, yes, "delete", "deleted", lambda client, ids: steering.delete(client._access, ids, Status.DEAD))


def _do_to_all(
    type_: str | None,
    yes: bool,
    verb: str,
    word: str,
    act: Callable[[Client, list[str]], Awaitable[list[Steered]]],
) -> None:
    """Find them first, so that what dies meanwhile, perhaps of being run again, is left alone."""
    ids = ask(lambda client: _all_ids(client, type_))
    kind = f" of type {type_}" if type_ else ""
    if ids and not yes:
        click.confirm(f"{verb.capitalize()} {output.many(len(ids), 'dead letter')}{kind}?", abort=True, err=True)

    async def go(client: Client) -> int:
        count = 0
        with click.progressbar(length=len(ids), label=word, hidden=output.as_json()) as bar:
            for start in range(0, len(ids), AT_ONCE):
                batch = ids[start : start + AT_ONCE]
                # Somebody else may have been faster, or a task depends on one that cannot run again.
                count += sum(each.done for each in await act(client, batch))
                bar.update(len(batch))
        return count

    count = ask(go) if ids else 0
    output.done(f"{output.many(count, 'dead letter')}{kind} {word}", count=count, done=word)


async def _all_ids(client: Client, type_: str | None) -> list[str]:
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await client.list_tasks(Status.DEAD, type=type_, limit=1000, cursor=cursor)
        ids += [task.id for task in page]
        if (cursor := page.cursor) is None:
            return ids[::-1]  # the oldest first: a task on which another depends died before that one
