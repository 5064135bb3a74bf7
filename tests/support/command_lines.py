"""Tells whether a command line of `tickwork` in a document or a deployment file could be run as it stands."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tickwork.cli import commands


def parse(words: Sequence[str]) -> dict[str, object]:
    """Parse what follows `tickwork` without running it. A click.UsageError names what does not exist."""
    command: click.Command = commands
    rest = list(words)
    ctx = click.Context(commands, info_name="tickwork")
    taken: list[str] = []
    if rest and rest[0] == "--json":  # the one option that documents put before the command
        rest.pop(0)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        _, found, remaining = command.resolve_command(ctx, rest)
        if found is None:
            raise click.UsageError(f"no command {rest[0]!r}")
        taken.append(rest[0])
        command, rest = found, remaining
    return dict(command.make_context(" ".join(["tickwork", *taken]), rest).params)
