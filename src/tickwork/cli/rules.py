"""What `tickwork limits`, `breakers` and `switches` share: who says it, why, and until when."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click

from tickwork.cli import output
from tickwork.cli.options import Duration, read_time

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
        return read_time(until, timezone, "--until")
    return None if duration is None else timedelta(seconds=duration)


def who(by: str | None) -> str:
    if by is not None:
        return by
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that has no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def said(by: str, note: str) -> str:
    """By whom, and why, for a column."""
    return f"{by}: {note}" if by and note else by or note


def end(at: datetime | None, now: datetime) -> str:
    return "" if at is None else output.age(at, now)
