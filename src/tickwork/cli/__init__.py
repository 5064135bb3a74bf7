"""The command `tickwork`: what it is called with, which module answers, and what its exit status means.

Every command lives in a module of its own that is imported when it is called for, so that a small one starts at once.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from tickwork import __version__
from tickwork.cli.options import global_options
from tickwork.errors import ConfigError, HandlerNotFound, PayloadError, StoreError, TickworkError

WRONG, MISTAKE, UNREACHABLE = 1, 2, 3
CANNOT_WRITE = (errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EBADF)

# Heading: command: the module it lives in, and the first line of its help (a test compares).
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Run": {
        "up": ("run", "Run an application: its handlers and its share of the scheduling."),
        "worker": ("run", "Run an application's handlers only; leave the scheduling to others."),
        "server": ("server", "Serve the API and the dashboard of a store."),
        "demo": ("demo", "Run a small shop on a SQLite file, live on the screen."),
        "bench": ("bench", "Measure what a store does on this machine."),
    },
    "Submit and steer": {
        "submit": ("submit", "Submit a task, or a schedule with --cron."),
        "cancel": ("steer", "Cancel waiting tasks; with --force also running ones."),
        "retry": ("steer", "Run ended tasks again."),
        "run-now": ("steer", "Run delayed tasks now, and those that wait for their next attempt."),
        "reschedule": ("steer", "Move a waiting task to another time."),
        "delete": ("steer", "Delete ended tasks."),
        "dlq": ("dlq", "Look after dead letters: tasks whose retries are spent."),
        "schedules": ("schedules", "Look after schedules, which submit tasks by a cron line."),
        "queues": ("queues", "Look after queues: what waits in them, and who may take it."),
        "limits": ("limits", "Look after limits: how many tasks of a type or queue may start and run."),
        "breakers": ("breakers", "Look after circuit breakers: what is stopped because it fails."),
        "switches": ("switches", "Look after switches: tasks of a type, key or tag that are stopped."),
        "webhooks": ("webhooks", "Look after webhooks: whether they are on, what waits, and what has failed."),
    },
    "Look": {
        "top": ("top", "Show what happens on a store, live on the screen."),
        "tasks": ("tasks", "List tasks."),
        "task": ("tasks", "Show everything known about a task, and why it is not running."),
        "why": ("tasks", "Say why a task is not running."),
        "stats": ("stats", "Count tasks by status and queue."),
        "report": ("report", "Show how many tasks ended how, and how long they waited and ran."),
        "failures": ("report", "Show failed attempts, grouped by what went wrong where."),
        "workers": ("workers", "Look after workers: what they do, and whether they take tasks."),
        "alerts": ("alerts", "Show how the alert rules stand, and silence them."),
        "events": ("events", "Show what has happened; --follow shows what happens."),
        "index": ("index", "Keep tasks findable by type, queue and key, or stop it."),
    },
    "Check": {
        "doctor": ("doctor", "Check the store, the workers and the schedules; say what to do."),
        "health": ("health", "Say how the store, its workers and its queues are; status 1 if unhealthy."),
        "migrate": ("migrate", "Move the data of an older version of Tickwork to the layout of this one."),
        "tokens": ("tokens", "Look after tokens: who may call the API and the dashboard."),
        "audit": ("audit", "Show who has changed what, who was refused and who signed in."),
        "acl": ("redis", "Print the smallest Redis ACL line for the namespace."),
        "switchover": ("redis", "Change the master under Sentinel on purpose, losing nothing."),
        "config": ("settings", "Show every option and where its value comes from."),
        "cron": ("cron", "Explain a cron line and show its next runs."),
    },
}
HOMES = {name: home for commands in COMMANDS.values() for name, home in commands.items()}

EPILOG = """\b
Exit status:
  0  all is well
  1  something is wrong: not found, a task failed, doctor found a problem,
     health found the store unhealthy
  2  a mistake in the command, the configuration or the payload
  3  the store cannot be reached

\b
The store is --store, else TICKWORK_STORE, else `store` in --config FILE
(or tickwork.yaml), else the file tickwork.db in the working directory.
"""


class Commands(click.Group):
    """Imports a command when it is called for, and turns every error into a line and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(HOMES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in HOMES:
            return None
        module = import_module(f"tickwork.cli.{HOMES[name][0]}")
        command: click.Command = getattr(module, f"{name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in HOMES and not args[0].startswith("-"):
            from tickwork.config.values import nearest

            ctx.fail(f"no command {args[0]!r}{nearest(args[0], HOMES)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        longest = max(map(len, HOMES))
        for heading, commands in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(longest), text) for name, (_, text) in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise OutputGone from None  # which click would turn into status 1

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        """As a program: never a traceback for what the user, the store or a task did wrong."""
        if not extra.pop("standalone_mode", True):
            return super().main(args, prog_name, standalone_mode=False, **extra)
        for name, number in (("stdout", 1), ("stderr", 2)):
            if getattr(sys, name) is None:  # closed, as by `>&-`: the next file that is opened must not take its place
                setattr(sys, name, os.fdopen(_null(number), "w"))
        try:
            status = super().main(args, prog_name, standalone_mode=False, **extra)
            sys.stdout.flush()
        except click.UsageError as error:
            status = _report(error.format_message(), MISTAKE)
            if error.ctx is not None:
                click.echo(f"Try '{error.ctx.command_path} --help'.", err=True)
        except click.ClickException as error:
            error.show()
            status = error.exit_code
        except click.Abort:
            status = _report("aborted", WRONG)
        except TickworkError as error:
            status = _report(str(error), exit_status(error))
        except (OutputGone, BrokenPipeError):
            _null(sys.stdout.fileno())
            status = 0
        except OSError as error:
            if error.errno not in CANNOT_WRITE or error.filename is not None:
                raise
            _null(sys.stdout.fileno())
            status = _report(f"the output cannot be written: {error.strerror}", WRONG)
        sys.exit(status if isinstance(status, int) else 0)


class OutputGone(Exception):
    """Whoever read our output has gone, as `head` does."""


def _null(number: int) -> int:
    """Let an open file lead nowhere: Python would complain once more at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    return number


def exit_status(error: TickworkError) -> int:
    if isinstance(error, StoreError):
        return UNREACHABLE
    return MISTAKE if isinstance(error, ConfigError | PayloadError | HandlerNotFound) else WRONG


def _report(text: str, status: int) -> int:
    from tickwork.cli.output import clean_lines

    for line in clean_lines(text):
        click.echo(click.style("error: ", fg="red", bold=True) + line, err=True)
    return status


@click.command(
    cls=Commands, epilog=EPILOG, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="tickwork %(version)s")
@global_options
@click.pass_context
def commands(ctx: click.Context) -> None:
    """A distributed task scheduler: immediate, delayed and recurring tasks on one store.

    Start with `tickwork demo`, then `tickwork up MODULE:APP`.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> None:
    commands(prog_name="tickwork")
