"""`tickwork cron`."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cron import Cron


@click.command("cron")
@click.argument("line", metavar="LINE")
@click.option("--timezone", default="UTC", show_default=True, metavar="ZONE", help="Time zone of the line.")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many runs to show.")
@global_options
def cron_command(line: str, timezone: str, count: int) -> None:
    """Explain a cron line and show its next runs.

    Quote the line: tickwork cron "*/5 9-17 * * mon-fri" --timezone Europe/Berlin
    """
    cron = Cron(line, timezone)
    runs = cron.upcoming(count)
    if output.as_json():
        output.show_json({"line": line, "timezone": cron.timezone, "description": cron.describe(), "next_runs": runs})
        return
    click.secho(f"{cron.describe()}, {cron.timezone} time", bold=True)
    now = datetime.now(UTC)
    for run in runs:
        click.echo(f"  {run:%a} {output.in_zone(run)}  {output.age(run, now)}")
