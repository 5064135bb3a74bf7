"""`tickwork dlq`: dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from tickwork.cli import output
from tickwork.cli.bulk import do_to_all, filter_options_of_status, read_filter, type_option
from tickwork.cli.options import cascade_option, cursor_option, global_options, limit_option
from tickwork.cli.output import Column
from tickwork.cli.pages import find
from tickwork.cli.session import ask, change
from tickwork.cli.steer import delete_all, retry_all, wants_cascade
from tickwork.cli.tasks import first_line, task_command
from tickwork.model.bulk import TaskFilter
from tickwork.model.info import TaskInfo
from tickwork.model.tasks import Status

COLUMNS = (
    Column("ID"),
    Column("TYPE", least=10),
    Column("QUEUE", least=5, drop=2),
    Column("TRIES", drop=3, right=True),
    Column("DIED", drop=1),
    Column("ERROR", least=12, color=lambda cell: "red"),
)


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
@type_option
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
    followers = change(
        lambda client: client.dlq.retry(task_id, cascade=with_followers), "retried a dead letter", task_id
    )
    count = f", {output.many(len(followers), 'dependant')} brought back" if followers else ""
    output.done(f"{task_id}  sent to run{count}", id=task_id, done="sent to run", brought_back=followers)


@dlq_command.command("remove")
@click.argument("task_id", metavar="ID")
@global_options
def remove_command(task_id: str) -> None:
    """Delete a dead letter."""
    change(lambda client: client.dlq.remove(task_id), "removed a dead letter", task_id)
    output.done(f"{task_id}  deleted", id=task_id, done="deleted")


@dlq_command.command("retry-all")
@cascade_option
@filter_options_of_status
@global_options
def retry_all_command(cascade: bool | None, dry_run: bool, yes: bool, **fields: Any) -> None:
    """Run all dead letters again, or those that a filter matches: `tickwork retry --status dead`."""
    do_to_all(retry_all(cascade, "dead letter"), _dead(**fields), dry_run, yes)


@dlq_command.command("clear")
@filter_options_of_status
@global_options
def clear_command(dry_run: bool, yes: bool, **fields: Any) -> None:
    """Delete all dead letters, or those that a filter matches: `tickwork delete --status dead`."""
    do_to_all(delete_all("dead letter"), _dead(**fields), dry_run, yes)


def _dead(**fields: Any) -> TaskFilter:
    wanted = read_filter(status=Status.DEAD, **fields)
    assert wanted is not None
    return wanted
