"""`tickwork migrate`: data of an older version, for this one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.session import unopened_store


@click.command("migrate")
@click.option(
    "--take-over", is_flag=True,
    help="Do it although workers of the older version are up. They stop by themselves, and what they run is run again.",
)  # fmt: skip
@global_options
def migrate_command(take_over: bool) -> None:
    """Move the data of an older version of Tickwork to the layout of this one.

    Stop the processes of the older version first. Nothing is lost if this is interrupted: run it again, and it goes on
    where it was. Until it is done, the namespace cannot be used.
    """
    moved = asyncio.run(_migrate(take_over, output.progress("entries moved")))
    if moved:
        output.done("The namespace has the layout of this version now.", migrated=True)
    else:
        output.done("There is nothing to do: the namespace has the layout of this version.", migrated=False)


async def _migrate(take_over: bool, report: Callable[[int], None]) -> bool:
    store = await unopened_store()
    try:
        return await store.migrate(take_over, report)
    finally:
        await store.close()
