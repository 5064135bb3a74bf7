"""`tickwork schedules`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from tickwork.cli import output
from tickwork.cli.options import (
    Duration,
    Json,
    PayloadCommand,
    given,
    global_options,
    payload_or_none_given,
    task_options,
)
from tickwork.cli.output import Column
from tickwork.cli.session import ask, change, now_of, store_of
from tickwork.model.schedules import Misfire, Overlap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from tickwork.client.client import Client
    from tickwork.client.schedules import ScheduleInfo

F = TypeVar("F", bound="Callable[..., Any]")

COLUMNS = (
    Column("ID", least=12),
    Column("TYPE", least=8, drop=4),
    Column("WHEN", least=12),
    Column("ZONE", least=6, drop=3),
    Column("NEXT"),
    Column("LAST", least=6, drop=1, color=lambda cell: output.status_color(cell.partition(" ")[0])),
    Column("STATE", least=6, drop=2, color=lambda cell: "green" if cell == "on" else "yellow"),
)

ASKED_MAX = 200  # last runs that are looked up one by one, of a page

_id_argument = click.argument("schedule_id", metavar="ID")


@click.group("schedules", invoke_without_command=True)
@global_options
@click.pass_context
def schedules_command(ctx: click.Context) -> None:
    """Look after schedules, which submit tasks by a cron line.

    Without a command it lists them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@schedules_command.command("list")
@global_options
def list_command() -> None:
    """List schedules."""

    ask(_show_json_list if output.as_json() else _show_tables)


async def _show_json_list(client: Client) -> None:
    """One document, written item by item."""
    with output.json_list("schedules") as show:
        async for schedule in client.schedules:
            show(schedule)


async def _show_tables(client: Client) -> None:
    """A table for each page."""
    page = await client.schedules.list()
    while True:
        schedules = await with_last_status(client, page.items)
        now = await now_of(client)
        output.show_table(COLUMNS, [_row(schedule, now) for schedule in schedules], "no schedules")
        if page.cursor is None:
            return
        page = await client.schedules.list(cursor=page.cursor)


async def with_last_status(client: Client, schedules: Sequence[ScheduleInfo]) -> list[ScheduleInfo]:
    """Those whose last run is not known to have ended get the status that its task has now."""
    from msgspec.structs import replace

    shown, asked = [], 0
    for schedule in schedules:
        if not schedule.last_status and schedule.last_task_id is not None and asked < ASKED_MAX:
            asked += 1
            record = await (await store_of(client)).queries.get(schedule.last_task_id)
            schedule = replace(schedule, last_status="deleted" if record is None else record.status)
        shown.append(schedule)
    return shown


def _row(schedule: ScheduleInfo, now: datetime) -> Sequence[object]:
    next_run = "" if schedule.next_at is None else output.age(schedule.next_at, now)
    last = ""
    if schedule.last_fire_at is not None:
        last = f"{schedule.last_status or 'not ended'} {output.age(schedule.last_fire_at, now)}"
    return (
        schedule.id, schedule.type, schedule.description, schedule.timezone, next_run, last, state_of(schedule)
    )  # fmt: skip


def state_of(schedule: ScheduleInfo) -> str:
    if schedule.stopped:
        return f"stopped: {schedule.stopped}"
    return "on" if schedule.enabled else "paused"


@schedules_command.command("show")
@_id_argument
@global_options
def show_command(schedule_id: str) -> None:
    """Show a schedule and its next runs."""

    async def look(client: Client) -> tuple[ScheduleInfo, Sequence[datetime]]:
        schedule = await client.schedules.get(schedule_id)
        if not output.as_json():
            (schedule,) = await with_last_status(client, [schedule])
        return schedule, await client.schedules.next_runs(schedule_id)

    found, runs = ask(look)
    if output.as_json():
        import msgspec

        output.show_json({**msgspec.structs.asdict(found), "next_runs": runs})
        return
    from tickwork.cron.zones import find_zone

    zone = find_zone(found.timezone).tz

    def moment(at: datetime | None) -> str:
        """In the zone of its next runs."""
        return "" if at is None else output.in_zone(at.astimezone(zone))

    state = state_of(found)
    output.show_facts(
        [
            ("id", found.id),
            ("name", found.name if found.name != found.id else None),
            ("type", found.type),
            ("state", state),
            ("cron", found.cron),
            ("in words", found.description),
            ("zone", found.timezone),
            ("payload", output.json_text(found.payload, one_line=True)),
            ("queue", f"{found.queue}, priority {found.priority}"),
            ("retries", found.max_retry),
            ("retry", None if found.retry is None else repr(found.retry)),
            ("timeout", None if found.timeout is None else f"{found.timeout:g} s"),
            ("dedup key", found.dedup_key),
            ("key", found.key),
            ("tags", ", ".join(f"{name}={text}" for name, text in found.tags.items())),
            ("context", output.json_text(found.context, one_line=True) if found.context else None),
            ("overlap", found.overlap),
            ("misfire", found.misfire),
            ("on exhausted", found.on_exhausted),
            ("last run", moment(found.last_fire_at)),
            ("last task", found.last_task_id),
            ("last status", found.last_status),
            ("created", moment(found.created_at)),
            ("updated", moment(found.updated_at)),
        ],
        {"state": "green" if state == "on" else "yellow", "last status": output.status_color(found.last_status)},
    )
    if runs:
        output.show_heading("Next runs")
        for run in runs:
            click.echo(f"  {output.in_zone(run)}")


@schedules_command.command("next")
@_id_argument
@click.option("-n", "count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many runs to show.")
@global_options
def next_command(schedule_id: str, count: int) -> None:
    """Show when a schedule runs next."""
    runs = ask(lambda client: client.schedules.next_runs(schedule_id, count))
    if output.as_json():
        output.show_json({"next_runs": runs})
        return
    for run in runs:
        click.echo(output.in_zone(run))
    if not runs:
        click.secho("it runs only when it is triggered, or not at all while it is paused", dim=True)


@schedules_command.command("pause")
@_id_argument
@global_options
def pause_command(schedule_id: str) -> None:
    """Stop firing a schedule until it is resumed."""
    change(lambda client: client.schedules.pause(schedule_id), "paused a schedule", schedule_id)
    output.done(f"{schedule_id}  paused", id=schedule_id, done="paused")


@schedules_command.command("resume")
@_id_argument
@global_options
def resume_command(schedule_id: str) -> None:
    """Go on with a schedule from its next tick."""
    change(lambda client: client.schedules.resume(schedule_id), "resumed a schedule", schedule_id)
    output.done(f"{schedule_id}  resumed", id=schedule_id, done="resumed")


@schedules_command.command("trigger")
@_id_argument
@global_options
def trigger_command(schedule_id: str) -> None:
    """Run a schedule once now; prints the task's id."""
    task_id = change(lambda client: client.schedules.trigger(schedule_id), "triggered a schedule", schedule_id)
    output.done(task_id, id=schedule_id, done="triggered", task_id=task_id)


@schedules_command.command("delete")
@_id_argument
@global_options
def delete_command(schedule_id: str) -> None:
    """Delete a schedule; tasks it has submitted go on."""
    change(lambda client: client.schedules.delete(schedule_id), "deleted a schedule", schedule_id)
    output.done(f"{schedule_id}  deleted", id=schedule_id, done="deleted")


def schedule_options(function: F) -> F:
    for option in reversed(
        (
            click.option("--timezone", metavar="ZONE", help="Time zone of the cron line."),
            click.option("--name", metavar="TEXT", help="A name for people."),
            click.option(
                "--overlap",
                type=click.Choice([*map(str, Overlap)]),
                help="What to do if the last run has not ended.  [skip]",
            ),
            click.option(
                "--misfire", type=click.Choice([*map(str, Misfire)]), help="Which missed ticks to run.  [latest]"
            ),
            click.option("--misfire-grace", type=Duration(), help="Missed ticks older than this are not run.  [1h]"),
            click.option(
                "--on-exhausted",
                type=click.Choice(["continue", "stop"]),
                help="What to do when a run has used up its retries.",
            ),
        )
    ):
        function = option(function)
    return function


@schedules_command.command("edit")
@_id_argument
@click.option("--type", "type_", metavar="TYPE", help="The type of its tasks.")
@click.option(
    "--payload", metavar="JSON", type=Json(), help="The payload of its tasks; - reads it from standard input."
)
@click.option("--cron", metavar="LINE", help="5 fields, 6 with seconds, or a name such as @daily.")
@schedule_options
@task_options
@global_options
def edit_command(schedule_id: str, type_: str | None, payload: Any, **said: Any) -> None:
    """Change what is named of a schedule, and leave the rest as it is.

    Its history and a pause are kept, and so is its next run if neither --cron nor --timezone is given.

    \b
      tickwork schedules edit nightly --cron "0 4 * * *"
      tickwork schedules edit nightly --payload '{"kind": "full"}' --max-retry 2
    """
    changes = given(type=type_, **said)
    if click.get_current_context().get_parameter_source("payload") is not click.core.ParameterSource.DEFAULT:
        changes["payload"] = payload
    if not changes:
        raise click.UsageError("name what is to be changed, such as --cron or --payload; --help lists the options")
    what = ", ".join(changes)
    _show_put(
        change(lambda client: client.schedules.edit(schedule_id, **changes), "edited a schedule", schedule_id, what)
    )


@schedules_command.command("put", cls=PayloadCommand)
@_id_argument
@click.argument("type_", metavar="TYPE")
@click.argument("payload", metavar="[PAYLOAD_JSON]", type=Json(), required=False)
@click.option(
    "--cron",
    metavar="LINE",
    help="5 fields, 6 with seconds, or a name such as @daily. Without it, only trigger runs it.",
)
@schedule_options
@click.option("--paused", is_flag=True, help="Create it paused.")
@task_options
@global_options
def put_command(schedule_id: str, type_: str, payload: Any, paused: bool, **said: Any) -> None:
    """Create or replace a schedule."""
    options = given(**said)
    payload = payload_or_none_given(payload)
    found = change(
        lambda client: client.schedules.put(schedule_id, type_, payload, enabled=not paused, **options),
        "put a schedule", schedule_id, type_, create=True,
    )  # fmt: skip
    _show_put(found)


def _show_put(found: ScheduleInfo) -> None:
    if output.as_json():
        output.show_json(found)
        return
    when = "" if found.next_at is None else f", next {output.moment(found.next_at)}"
    click.echo(output.clean(f"{found.id}  {found.description}{when}"))
