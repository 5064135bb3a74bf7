"""`tickwork config`."""

from __future__ import annotations

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.output import Column
from tickwork.cli.session import settings
from tickwork.config.loading import describe, in_words

COLUMNS = (
    Column("OPTION"),
    Column("VALUE", least=16),
    Column("FROM", least=12, color=lambda cell: "bright_black" if cell == "default" else "green"),
)


@click.command("config")
@global_options
def config_command() -> None:
    """Show every option and where its value comes from.

    An application may set options of its own, which overrule these.
    """
    loaded = settings()
    if output.as_json():
        output.show_json({name: {"value": value, "from": origin} for name, value, origin in describe(loaded)})
    else:
        output.show_table(COLUMNS, [(name, in_words(value), origin) for name, value, origin in describe(loaded)], "")
    for warning in loaded.warnings:
        click.echo(click.style("warning: ", fg="yellow") + output.clean(warning), err=True)
