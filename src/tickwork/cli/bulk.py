"""Commands on all tasks that a filter matches: counted first, asked about, with word on how far they are."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from msgspec.structs import asdict, replace

from tickwork.cli import output
from tickwork.cli.options import Duration, given, tag_option
from tickwork.cli.session import ask, change
from tickwork.model.bulk import BulkResult, TaskFilter
from tickwork.model.tasks import Status

if TYPE_CHECKING:
    from tickwork.client.bulk import Progress
    from tickwork.client.client import Client

F = TypeVar("F", bound=Callable[..., Any])

type_option = click.option("--type", "type_", metavar="TYPE", help="Only tasks of this type.")
status_option = click.option(
    "--status", type=click.Choice([*map(str, Status), "completed"]), help="Only tasks in this status."
)
queue_option = click.option("--queue", metavar="NAME", help="Only tasks of this queue.")
key_option = click.option("--key", metavar="TEXT", help="Only tasks with this key.")
FILTERS = (
    type_option,
    queue_option,
    key_option,
    tag_option,
    click.option("--schedule", metavar="ID", help="Only tasks that this schedule has fired."),
    click.option("--older-than", type=Duration(), help="Only tasks that were submitted this long ago, as 2d or 12h."),
)
WAYS = (
    click.option("--dry-run", is_flag=True, help="Change nothing; say how many there are."),
    click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
)


class Bulk(NamedTuple):
    """What a command does to many tasks. `act` is given the filter, whether it is a dry run, and whom to tell."""

    verb: str
    done: str
    act: Callable[[Client, TaskFilter, bool, Progress], Awaitable[BulkResult]]
    noun: str = "task"


def filter_options(function: F) -> F:
    """For a command that takes ids, or else a filter."""
    every = click.option("--all", "all_", is_flag=True, help="All tasks to which it can be done, without any filter.")
    return _add(function, (FILTERS[0], status_option, *FILTERS[1:], every, *WAYS))


def filter_options_of_status(function: F) -> F:
    """For a command that is about one status anyway."""
    return _add(function, (*FILTERS, *WAYS))


def _add(function: F, options: tuple[Callable[[F], F], ...]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def read_filter(
    type_: str | None = None, schedule: str | None = None, all_: bool = False, **fields: Any
) -> TaskFilter | None:
    """None if nothing was said."""
    said = given(type=type_, schedule_id=schedule, **fields)
    if all_ and said:
        raise click.UsageError("--all means every task, so it cannot stand beside a filter")
    return TaskFilter(all=all_, **said) if all_ or said else None


def ids_or_filter(task_ids: tuple[str, ...], dry_run: bool, **fields: Any) -> TaskFilter | None:
    """The filter of a command that takes ids or a filter; None if it was given ids."""
    wanted = read_filter(**fields)
    if task_ids and wanted is not None:
        raise click.UsageError("name tasks by their ids or by a filter, not by both")
    if task_ids and dry_run:
        raise click.UsageError("--dry-run is for a filter such as --type")
    if not task_ids and wanted is None:
        raise click.UsageError("name tasks by their ids, or by a filter such as --type or --status; --all means all")
    return wanted


def do_to_all(bulk: Bulk, wanted: TaskFilter, dry_run: bool, yes: bool) -> None:
    if dry_run or not yes:
        found = _run(bulk, wanted, dry_run=True)
        if dry_run or not found.done:
            _show(bulk, replace(found, dry_run=dry_run))
            return
        _confirm(bulk, found.done)
    _show(bulk, _run(bulk, wanted, dry_run=False))


def _confirm(bulk: Bulk, count: int) -> None:
    question = f"{bulk.verb.capitalize()} {output.many(count, bulk.noun)}?"
    if output.as_json() or not somebody_answers():
        raise click.UsageError(f"{question} Nobody can be asked here: --yes says so, --dry-run only counts")
    click.confirm(question, abort=True, err=True)


def somebody_answers() -> bool:
    return sys.stdin.isatty()


def _run(bulk: Bulk, wanted: TaskFilter, dry_run: bool) -> BulkResult:
    report: Callable[[int], None] | None = None
    last = (0, 0)

    def progress(done: int, seen: int) -> None:
        nonlocal last, report
        last = (done, seen)
        if report is None:  # what it took to open the store does not count
            report = output.progress(f"{bulk.noun}s {'counted' if dry_run else bulk.done} so far")
        report(seen if dry_run else done)

    try:
        if dry_run:
            return ask(lambda client: bulk.act(client, wanted, dry_run, progress))
        told = ", ".join(f"{name}={value}" for name, value in asdict(wanted).items() if value)
        what = f"{bulk.done} by a filter"
        return change(lambda client: bulk.act(client, wanted, dry_run, progress), what, f"{bulk.noun}s", told)
    except KeyboardInterrupt:
        if dry_run:
            raise
        done, seen = last
        _tell(bulk, BulkResult(seen, done), interrupted=True)
        click.echo("interrupted: the same command goes on with the rest", err=True)
        click.get_current_context().exit(1)


def _show(bulk: Bulk, result: BulkResult) -> None:
    _tell(bulk, result)
    for reason, refused in result.refused.items():
        examples = ", ".join(refused.examples) + (", ..." if refused.count > len(refused.examples) else "")
        text = f"{output.many(refused.count, bulk.noun)} left alone ({reason}), {examples}: {refused.why}"
        click.echo(click.style("error: ", fg="red", bold=True) + output.clean(text), err=True)
    if result.refused:
        click.get_current_context().exit(1)


def _tell(bulk: Bulk, result: BulkResult, interrupted: bool = False) -> None:
    if output.as_json():
        output.show_json({**asdict(result), "interrupted": interrupted})
        return
    back = f", {output.many(result.brought_back, 'dependant')} brought back" if result.brought_back else ""
    would = " would be" if result.dry_run else ""
    click.echo(f"{output.many(result.done, bulk.noun)}{would} {bulk.done}{back}")
