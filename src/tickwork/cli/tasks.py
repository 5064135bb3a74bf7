"""`tickwork tasks`, `task` and `why`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tickwork.cli import output
from tickwork.cli.bulk import key_option, queue_option, status_option, type_option
from tickwork.cli.following import follow_task
from tickwork.cli.options import cursor_option, global_options, limit_option, tag_option
from tickwork.cli.output import Column
from tickwork.cli.pages import find
from tickwork.cli.session import ask
from tickwork.model.facts import Fact
from tickwork.model.info import AttemptInfo, Event, Explanation, TaskInfo
from tickwork.model.tasks import DELAYED, Status

if TYPE_CHECKING:
    from tickwork.client.client import Client

STORY_MAX = 1000
SHOWN_MAX = 10  # names of dependants in a list for people
COLUMNS = (
    Column("ID"),
    Column("TYPE", least=10),
    Column("STATUS", color=output.status_color),
    Column("QUEUE", least=5, drop=3),
    Column("PRIO", drop=4, right=True),
    Column("TRY", drop=2, right=True),
    Column("WHEN", drop=1),
    Column("NOTE", least=8, drop=5),
)
STORY_LINES: dict[str, str] = {
    Fact.TASK_SUBMITTED: "was submitted",
    Fact.TASK_RESOLVED: "stopped waiting for a task that has ended",
    Fact.TASK_DUE: "became due",
    Fact.TASK_HASTENED: "was made ready by hand (run now)",
    Fact.TASK_RESCHEDULED: "was moved by hand to another time",
    Fact.TASK_PARKED: "was set aside: the worker that asked may not start it now",
    Fact.TASK_ASSIGNED: "was assigned to {worker}",
    Fact.TASK_UNASSIGNED: "was given back, as its worker did not take it",
    Fact.TASK_CLAIMED: "was claimed by {worker}, attempt {attempt}",
    Fact.TASK_SUCCEEDED: "succeeded after {duration}",
    Fact.TASK_RETRYING: "failed after {duration} and waits for its next attempt",
    Fact.TASK_FAILED: "failed for good after {duration}",
    Fact.TASK_DIED: "failed for good after {duration} and became a dead letter",
    Fact.TASK_SNOOZED: "was snoozed: it runs later",
    Fact.TASK_HELD: "was held by a limit, breaker or switch",
    Fact.TASK_RELEASED: "was released unfinished",
    Fact.TASK_LOST: "was taken back from a lost worker",
    Fact.TASK_CANCEL_ASKED: "was asked to stop",
    Fact.TASK_CANCELLED: "was cancelled",
    Fact.TASK_EXPIRED: "expired: it had not started in time",
    Fact.TASK_RETRIED: "was retried by hand",
}


@click.command("tasks")
@status_option
@type_option
@queue_option
@key_option
@tag_option
@limit_option
@cursor_option
@global_options
def tasks_command(type_: str | None, tags: dict[str, str], cursor: str | None, **query: Any) -> None:
    """List tasks."""

    found = ask(lambda client: find(client, cursor, type=type_, tags=tags or None, **query))
    if output.as_json():
        output.show_json({"tasks": found.page.items, "cursor": found.page.cursor})
        return
    output.show_table(COLUMNS, [_row(task, found.now) for task in found.page], found.empty("no tasks"))
    found.show_rest()


def _row(task: TaskInfo, now: datetime) -> Sequence[object]:
    when = output.age(when_of(task), now)
    return task.id, task.type, task.status, task.queue, task.priority, task.attempt, when, note_of(task)


def when_of(task: TaskInfo) -> datetime:
    """The moment that matters in its status."""
    if task.status in DELAYED:
        return task.scheduled_at
    return task.finished_at or task.started_at or task.submitted_at


def note_of(task: TaskInfo) -> str:
    if task.status is Status.RUNNING and task.progress is not None:
        return f"{task.progress:.0%} {task.progress_note}".rstrip()
    if task.held_by is not None:
        return f"held by a {task.held_by}"
    if task.status is Status.BLOCKED:
        return f"waits for {', '.join(task.waiting_for)}"
    if task.status is Status.SUCCESS:
        return f"in {output.duration(task.execution_time)}" if task.execution_time is not None else ""
    return first_line(task.last_error)


def first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]


async def explanation(client: Client, task_id: str) -> Explanation:
    """Why a task is not running, in the times of this screen."""
    from tickwork.client.explain import of_task

    return await of_task(client._access, task_id, output.moment)


@click.command("why")
@click.argument("task_id", metavar="ID")
@global_options
def why_command(task_id: str) -> None:
    """Say why a task is not running."""
    why = ask(lambda client: explanation(client, task_id))
    if output.as_json():
        import msgspec

        output.show_json({"id": task_id, **msgspec.structs.asdict(why)})
        return
    click.echo(output.clean(str(why)))


@click.command("task")
@click.argument("task_id", metavar="ID")
@click.option("--follow", "-f", is_flag=True, help="Show status, progress and log as they come, until it has ended.")
@global_options
def task_command(task_id: str, follow: bool) -> None:
    """Show everything known about a task, and why it is not running.

    With --follow, --json prints one update a line; the status is 1 if the task ended without success.
    """
    if follow:
        follow_task(task_id)
        return

    async def look(client: Client) -> tuple[TaskInfo, Explanation, list[Event], list[TaskInfo]]:
        info = await client.get_task(task_id)
        story = await client.events.read(0, STORY_MAX, task_id=task_id)
        return info, await explanation(client, task_id), story, await client.dependants(task_id)

    info, why, story, dependants = ask(look)
    if output.as_json():
        import msgspec

        waiting = [{"id": each.id, "status": each.status} for each in dependants]
        document = {**msgspec.structs.asdict(info), "explanation": why, "dependants": waiting, "events": story}
        output.show_json(document)
        return
    _show_facts(info, why, dependants)
    if story:
        output.show_heading("What happened")
        _tell_story(story)
    if info.attempts:
        output.show_heading("Runs before the last one")
        _show_attempts(info.attempts)
    if info.log:
        output.show_heading("Log")
        for line in info.log:
            click.echo(f"  {output.clean(output.log_line(line))}")
    if info.last_error:
        output.show_heading("Last error")
        for line in output.clean_lines(info.last_error.rstrip()):
            click.echo(f"  {line}")


def _show_facts(info: TaskInfo, explanation: Explanation, dependants: list[TaskInfo]) -> None:
    result = info.result
    progress = None if info.progress is None else f"{info.progress:.0%} {info.progress_note}".rstrip()
    output.show_facts(
        [
            ("id", info.id),
            ("type", info.type),
            ("status", info.status),
            ("", explanation),
            ("queue", f"{info.queue}, priority {info.priority}"),
            ("attempt", f"{info.attempt}" + ("" if info.max_retry is None else f" of {info.max_retry + 1}")),
            ("lost workers", info.losses or None),
            ("timeout", None if info.timeout is None else f"{info.timeout:g} s"),
            ("retry", None if info.retry is None else repr(info.retry)),
            ("dedup key", info.dedup_key and f"{info.dedup_key}{_held(info)}"),
            ("expires", output.moment(info.expires_at) if info.started_at is None else None),
            ("retention", None if info.retention is None else output.duration(info.retention)),
            ("serializer", info.serializer if info.serializer != "json" else None),
            ("payload", output.json_text(info.payload, one_line=True)),
            ("result", output.json_text(result.data, one_line=True) if result and result.data is not None else None),
            ("code", f"{result.code} {result.message}".rstrip() if result and result.code else None),
            ("progress", progress),
            ("submitted", output.moment(info.submitted_at)),
            ("due", output.moment(info.scheduled_at) if info.status in DELAYED else None),
            ("started", output.moment(info.started_at)),
            ("finished", output.moment(info.finished_at)),
            ("run time", None if info.execution_time is None else output.duration(info.execution_time)),
            ("worker", info.worker_id),
            ("schedule", info.schedule_id),
            ("depends on", ", ".join(info.depends_on)),
            ("dependants", _some(f"{each.id} ({each.status})" for each in dependants)),
            ("key", info.key),
            ("tags", ", ".join(f"{name}={text}" for name, text in info.tags.items())),
            ("context", output.json_text(info.context, one_line=True) if info.context else None),
            ("cancelling", "asked to stop" if info.cancelling else None),
        ],
        {"status": output.status_color(info.status), "": "cyan"},
    )


def _held(info: TaskInfo) -> str:
    return "" if info.unique is None else f", held while the task is {info.unique}"


def _show_attempts(attempts: Sequence[AttemptInfo]) -> None:
    for attempt in attempts:
        took = "" if attempt.duration is None else f" after {output.duration(attempt.duration)}"
        text = f"attempt {attempt.number} {attempt.end}{took}, on {attempt.worker_id}"
        click.echo(f"  {click.style(output.clock(attempt.started_at), dim=True)}  {output.clean(text)}")
        for line in output.clean_lines((attempt.error or "").rstrip()):
            click.echo(f"            {line}")


def _some(items: Iterable[str]) -> str:
    """The first few of a list that may be long."""
    texts = list(items)
    more = f" and {len(texts) - SHOWN_MAX} more" if len(texts) > SHOWN_MAX else ""
    return ", ".join(texts[:SHOWN_MAX]) + more


def _tell_story(story: list[Event]) -> None:
    before = story[0].at
    for event in story:
        text = STORY_LINES.get(event.kind, event.kind).format(
            worker=event.worker_id, attempt=event.attempt, duration=output.duration(event.duration)
        )
        if event.detail:
            text += f": {first_line(event.detail)}"
        waited = f"+{output.duration((event.at - before).total_seconds())}" if event.at > before else ""
        click.echo(f"  {click.style(output.clock(event.at), dim=True)}  {waited:>8}  {output.clean(text)}")
        before = event.at
