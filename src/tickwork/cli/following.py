"""`tickwork task ID --follow`."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.session import ask
from tickwork.model.info import TaskUpdate
from tickwork.model.tasks import Status

if TYPE_CHECKING:
    from tickwork.client.client import Client


def follow_task(task_id: str) -> None:
    """Until it has ended, or Ctrl-C."""
    try:
        status = ask(lambda client: _follow(client, task_id))
    except KeyboardInterrupt:
        return
    if status is not Status.SUCCESS:
        click.get_current_context().exit(1)


async def _follow(client: Client, task_id: str) -> Status | None:
    before: TaskUpdate | None = None
    as_json = output.as_json()
    async with aclosing(client.handle(task_id).follow()) as updates:
        async for update in updates:
            if as_json:
                output.show_json(update, one_line=True)
            else:
                _show(update, before)
            sys.stdout.flush()
            before = update
    return None if before is None else before.status


def _show(update: TaskUpdate, before: TaskUpdate | None) -> None:
    """What a run has told came after its beginning, and before its end."""
    is_running = update.status is Status.RUNNING
    if is_running:
        _show_status(update, before)
    if update.missed:
        click.secho("... lines are missing here: more came than are kept", dim=True)
    for line in update.lines:
        click.echo(output.clean(output.log_line(line)))
    _show_progress(update, before)
    if not is_running:
        _show_status(update, before)


def _show_status(update: TaskUpdate, before: TaskUpdate | None) -> None:
    if before is None or (before.status, before.attempt) != (update.status, update.attempt):
        attempt = f", attempt {update.attempt}" if update.attempt else ""
        click.echo(f"{_stamp(update)} {click.style(update.status, fg=output.status_color(update.status))}{attempt}")


def _show_progress(update: TaskUpdate, before: TaskUpdate | None) -> None:
    shown = None if before is None else (before.progress, before.progress_note)
    if update.progress is not None and (update.progress, update.progress_note) != shown:
        click.echo(f"{_stamp(update)} {update.progress:.0%} {output.clean(update.progress_note)}".rstrip())


def _stamp(update: TaskUpdate) -> str:
    return click.style(output.clock(update.at), dim=True)
