"""What `tickwork limits`, `breakers` and `switches` share: who says it, why, and until when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tickwork.cli import output
from tickwork.cli.options import Duration, read_time
from tickwork.config.values import nearest
from tickwork.host import user_at_host

if TYPE_CHECKING:
    from tickwork.client.client import Client

LONGEST = 10 * 366 * 86_400  # seconds
F = TypeVar("F", bound=Callable[..., Any])

note_option = click.option("--note", default="", metavar="TEXT", help="The reason, shown with it.")
by_option = click.option("--by", metavar="NAME", help="Who says so.  [default: user@host]")


def until_options(function: F) -> F:
    for option in (
        click.option("--timezone", metavar="ZONE", help="Time zone of --until without an offset."),
        click.option("--until", metavar="TIME", help="When it ends, such as 2030-01-31T09:00+01:00."),
        click.option("--for", "duration", type=Duration(), help="How long it lasts, as 2h."),
    ):
        function = option(function)
    return function


def read_until(until: str | None, duration: float | None, timezone: str | None) -> datetime | timedelta | None:
    if until is not None and duration is not None:
        raise click.UsageError("say the end with --until or with --for")
    if until is not None:
        at = read_time(until, timezone, "--until")
        if at <= datetime.now(UTC):
            raise click.UsageError(f"--until: {until} is over already")
        return at
    if duration is not None and not 0 < duration <= LONGEST:
        raise click.UsageError("--for must be longer than 0, and no longer than 10 years")
    return None if duration is None else timedelta(seconds=duration)


def who(by: str | None) -> str:
    return user_at_host() if by is None else by


async def hint_at_type(client: Client, of: str) -> None:
    """Say so if no worker that is up knows a type: its name may be misspelled."""
    kind, _, name = of.partition(":")
    known = {each for worker in await client.list_workers("online") for each in worker.task_types}
    if kind == "type" and known and name not in known:
        click.echo(output.clean(f"note: no worker that is up knows type {name}{nearest(name, known)}"), err=True)


def said(by: str, note: str) -> str:
    """By whom, and why, for a column."""
    return f"{by}: {note}" if by and note else by or note


def end(at: datetime | None, now: datetime) -> str:
    return "" if at is None else output.age(at, now)
