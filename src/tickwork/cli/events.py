"""`tickwork events`."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options, limit_option
from tickwork.cli.session import ask, store_of
from tickwork.cli.tasks import first_line
from tickwork.model.facts import Fact
from tickwork.model.info import Event

if TYPE_CHECKING:
    from tickwork.client.client import Client

STEP = 500
STEPS_MAX = 200  # of the log that are looked through for events of rare kinds
COLORS: dict[str, str] = {
    Fact.TASK_SUCCEEDED: "green",
    Fact.TASK_RETRYING: "yellow",
    Fact.TASK_LOST: "yellow",
    Fact.TASK_PARKED: "yellow",
    Fact.TASK_FAILED: "red",
    Fact.TASK_DIED: "red",
    Fact.WORKER_LOST: "red",
    Fact.SCHEDULE_STOPPED: "red",
}


def read_kinds(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> frozenset[str] | None:
    """Whole kinds such as task.died, or all of a family such as worker."""
    kinds: set[str] = set()
    for value in values:
        found = {fact.value for fact in Fact if fact == value or fact.startswith(f"{value}.")}
        if not found:
            raise click.BadParameter(f"no kind {value!r}{_nearest(value)}", ctx, param)
        kinds |= found
    return frozenset(kinds) or None


def _nearest(value: str) -> str:
    """By the word behind the dot, if the family is known: that is where most letters differ."""
    from tickwork.config.values import nearest

    family, dot, word = value.partition(".")
    words = {fact.partition(".")[2]: str(fact) for fact in Fact if fact.startswith(f"{family}.")}
    if not dot or not words:
        return nearest(value, [*map(str, Fact), *{fact.partition(".")[0] for fact in Fact}])
    near = nearest(word, words)
    return near.replace("mean '", f"mean '{family}.")


@click.command("events")
@click.option("--follow", "-f", is_flag=True, help="Show new events as they happen, until Ctrl-C.")
@click.option("--task", "task_id", metavar="ID", help="Only events of this task.")
@click.option("--kind", "kinds", metavar="KIND", multiple=True, callback=read_kinds,
              help="Only this kind: task.died, or worker for all of them; may be given several times.")  # fmt: skip
@limit_option
@global_options
def events_command(follow: bool, task_id: str | None, kinds: frozenset[str] | None, limit: int) -> None:
    """Show what has happened; --follow shows what happens.

    With --follow, --json prints one event a line.
    """
    if follow:
        try:
            ask(lambda client: _follow(client, task_id, kinds))
        except KeyboardInterrupt:
            return
    found = ask(lambda client: _latest(client, task_id, kinds, limit))
    if output.as_json():
        output.show_json({"events": found})
        return
    for event in found:
        click.echo(event_line(event))
    if not found:
        click.secho("no events", dim=True)


async def _follow(client: Client, task_id: str | None, kinds: frozenset[str] | None) -> None:
    as_json = output.as_json()
    async for event in client.events.subscribe(task_id=task_id, kinds=kinds and kinds | {Fact.LOG_MISSED}):
        if as_json:
            output.show_json(event, one_line=True)
        else:
            click.echo(event_line(event))
        sys.stdout.flush()


async def _latest(client: Client, task_id: str | None, kinds: frozenset[str] | None, limit: int) -> list[Event]:
    """The last `limit` events, looking back from the end of the log."""
    if task_id is not None:
        story = await client.events.read(0, 10_000, task_id=task_id)
        return [event for event in story if kinds is None or event.kind in kinds][-limit:]
    found: list[Event] = []
    end = await (await store_of(client)).log.last()
    width = STEP
    for _ in range(STEPS_MAX):
        start = max(end - width, 0)
        step = await _between(client, start, end)
        found = [event for event in step if kinds is None or event.kind in kinds] + found
        if len(found) >= limit or start == 0:
            break
        if len(step) < STEP // 10:
            width *= 10  # numbers lie far apart where some were left out; in several partitions they are moments
        end = start
        await asyncio.sleep(0)
    return found[-limit:]


async def _between(client: Client, start: int, end: int) -> list[Event]:
    found: list[Event] = []
    while step := await client.events.read(start, STEP):
        found += [event for event in step if event.seq <= end]
        start = step[-1].seq
        if start >= end:
            break
    return found


def event_line(event: Event) -> str:
    about = f"{event.type} {event.id}" if event.type else event.id
    extra = [f"attempt {event.attempt}"] if event.attempt else []
    extra += [output.duration(event.duration)] if event.duration else []
    extra += [first_line(event.detail)] if event.detail else []
    kind = click.style(f"{output.clean(event.kind):<18}", fg=COLORS.get(event.kind))
    return f"{click.style(output.clock(event.at), dim=True)}  {kind} {output.clean('  '.join([about, *extra]))}"
