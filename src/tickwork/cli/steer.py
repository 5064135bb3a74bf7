"""`tickwork cancel`, `retry`, `run-now` and `delete`, by ids or all that a filter matches; and `reschedule`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tickwork.cli import output
from tickwork.cli.bulk import Bulk, do_to_all, filter_options, ids_or_filter
from tickwork.cli.options import Duration, cascade_option, global_options, read_time
from tickwork.cli.session import ask, change, store_of
from tickwork.client.dependants import cancelled_with
from tickwork.clock import to_datetime
from tickwork.model.info import Steered
from tickwork.model.tasks import DELAYED

if TYPE_CHECKING:
    from tickwork.client.client import Client

_ids = click.argument("task_ids", metavar="[ID]...", nargs=-1)


@click.command("cancel")
@_ids
@click.option("--force", is_flag=True, help="Also ask the handlers of running tasks to stop.")
@filter_options
@global_options
def cancel_command(task_ids: tuple[str, ...], force: bool, dry_run: bool, yes: bool, **fields: Any) -> None:
    """Cancel waiting tasks; with --force also running ones.

    \b
    By ids, or all that a filter matches:
      tickwork cancel a1 a2
      tickwork cancel --type report --tag customer=7 --dry-run
      tickwork cancel --queue imports --older-than 2d
    """
    wanted = ids_or_filter(task_ids, dry_run, **fields)
    if wanted is None:
        _each(lambda client: client.tasks.cancel(task_ids, force=force), "cancelled", task_ids)
        return
    bulk = Bulk(
        "cancel",
        "cancelled",
        lambda client, which, dry, tell: client.tasks.cancel(which, force=force, dry_run=dry, progress=tell),
    )
    do_to_all(bulk, wanted, dry_run, yes)


@click.command("retry")
@_ids
@cascade_option
@filter_options
@global_options
def retry_command(task_ids: tuple[str, ...], cascade: bool | None, dry_run: bool, yes: bool, **fields: Any) -> None:
    """Run ended tasks again.

    One that depends on others waits again for those that have not ended. A filter without --status means tasks that
    are dead or failed.

    \b
    By ids, or all that a filter matches:
      tickwork retry charge-7 --cascade
      tickwork retry --type charge --older-than 1h
      tickwork retry --status cancelled --tag batch=7
    """
    wanted = ids_or_filter(task_ids, dry_run, **fields)
    if wanted is None:
        with_followers = wants_cascade(task_ids, cascade)
        _each(lambda client: client.tasks.retry(task_ids, cascade=with_followers), "sent to run", task_ids)
        return
    do_to_all(retry_all(cascade), wanted, dry_run, yes)


def retry_all(cascade: bool | None, noun: str = "task") -> Bulk:
    return Bulk(
        "run again",
        "sent to run",
        lambda client, which, dry, tell: client.tasks.retry(which, cascade=bool(cascade), dry_run=dry, progress=tell),
        noun,
    )


@click.command("run-now")
@_ids
@filter_options
@global_options
def run_now_command(task_ids: tuple[str, ...], dry_run: bool, yes: bool, **fields: Any) -> None:
    """Run delayed tasks now, and those that wait for their next attempt.

    \b
    By ids, or all that a filter matches:
      tickwork run-now later
      tickwork run-now --type charge --status retrying
    """
    wanted = ids_or_filter(task_ids, dry_run, **fields)
    if wanted is None:
        _each(lambda client: client.tasks.run_now(task_ids), "sent to run", task_ids)
        return
    bulk = Bulk(
        "run",
        "sent to run",
        lambda client, which, dry, tell: client.tasks.run_now(which, dry_run=dry, progress=tell),
    )
    do_to_all(bulk, wanted, dry_run, yes)


@click.command("reschedule")
@click.argument("task_id", metavar="ID")
@click.option("--at", metavar="TIME", help="The new time, such as 2030-01-31T09:00+01:00.")
@click.option("--in", "delay", type=Duration(), help="The new time, counted from now, as 2h.")
@click.option("--timezone", metavar="ZONE", help="Time zone of --at without an offset.")
@global_options
def reschedule_command(task_id: str, at: str | None, delay: float | None, timezone: str | None) -> None:
    """Move a waiting task to another time.

    It may wait for its time, or for its next attempt. A ready one waits again.

    \b
      tickwork reschedule report-7 --in 2h
      tickwork reschedule report-7 --at 2030-01-31T09:00 --timezone Europe/Berlin
    """
    if (at is None) is (delay is None):
        raise click.UsageError("say the new time with --at or with --in")
    moment = None if at is None else read_time(at, timezone)

    async def move(client: Client) -> datetime | None:
        await client.reschedule(task_id, at=moment, delay=delay)
        record = await client._access.record(task_id)
        return to_datetime(record.due_at) if record.status in DELAYED else None

    due = change(move, "rescheduled a task", task_id)
    when = "now" if due is None else output.moment(due)
    output.done(f"{task_id}  due {when}", id=task_id, done="rescheduled", due_at=due)


@click.command("delete")
@_ids
@filter_options
@global_options
def delete_command(task_ids: tuple[str, ...], dry_run: bool, yes: bool, **fields: Any) -> None:
    """Delete ended tasks.

    \b
    By ids, or all that a filter matches:
      tickwork delete a1 a2
      tickwork delete --status success --older-than 12h --yes
    """
    wanted = ids_or_filter(task_ids, dry_run, **fields)
    if wanted is None:
        _each(lambda client: client.tasks.delete(task_ids), "deleted", task_ids)
        return
    do_to_all(delete_all(), wanted, dry_run, yes)


def delete_all(noun: str = "task") -> Bulk:
    return Bulk(
        "delete",
        "deleted",
        lambda client, which, dry, tell: client.tasks.delete(which, dry_run=dry, progress=tell),
        noun,
    )


def wants_cascade(task_ids: Sequence[str], said: bool | None) -> bool:
    """Whether the tasks that were cancelled with these are to come back too; asked where somebody can answer."""
    if said is not None:
        return said

    async def count(client: Client) -> int:
        store = await store_of(client)
        found = [await store.queries.get(task_id) for task_id in task_ids]
        return len(await cancelled_with(store, *(record for record in found if record is not None)))

    followers = ask(count)
    if not followers:
        return False
    if output.as_json() or not sys.stdin.isatty():
        left = (
            f"Not brought back: {output.many(followers, 'dependant')} cancelled before. Use --cascade to do that too."
        )
        click.echo(left, err=True)
        return False
    return click.confirm(f"Also bring back {output.many(followers, 'dependant')} cancelled before?", err=True)


def _each(act: Callable[[Client], Awaitable[list[Steered]]], word: str, task_ids: Sequence[str]) -> None:
    """Show what became of every task named; what one refuses does not hold up the others."""
    answers: list[dict[str, Any]] = []
    for each in change(act, f"{word} by id", ", ".join(task_ids)):
        answers.append({"id": each.id, "done": word if each.done else None, "error": each.error and str(each.error)})
        answers += [{"id": follower, "done": "brought back", "error": None} for follower in each.brought_back]
    if output.as_json():
        output.show_json({"tasks": answers})
    for answer in answers:
        if answer["error"]:
            click.echo(click.style("error: ", fg="red", bold=True) + output.clean(answer["error"]), err=True)
        elif not output.as_json():
            click.echo(f"{output.clean(answer['id'])}  {answer['done']}")
    if any(answer["error"] for answer in answers):
        click.get_current_context().exit(1)
