"""`tickwork index`: lists by type, queue and key without a look at all tasks."""

from __future__ import annotations

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.session import change


@click.command("index")
@click.argument("switch", metavar="on|off", type=click.Choice(["on", "off"]))
@global_options
def index_command(switch: str) -> None:
    """Keep tasks findable by type, queue and key, or stop it.

    With it, lists by these, such as `tickwork tasks --type mail`, need not look at all tasks. Without a status they
    show the newest first on every store. It makes each submit a little dearer. It holds for all processes of the
    namespace; those that run need not be started again. If it is interrupted, run it again.
    """
    on = switch == "on"
    changed = change(
        lambda client: client.index_tasks(on, output.progress("tasks indexed")), "switched the index", switch
    )
    state = "Tasks are indexed by type, queue and key now." if on else "Tasks are not indexed any more."
    output.done(state if changed else f"There is nothing to do: the index was {switch}.", indexed=on, changed=changed)
