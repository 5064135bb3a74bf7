"""`tickwork audit`: who has changed what, and who was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.output import Column
from tickwork.cli.session import ask

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.server.audit import AuditRow

COLUMNS = (
    Column("TIME"),
    Column("WHO", least=10),
    Column("FROM", drop=3),
    Column("WHAT", least=12),
    Column("TARGET", least=12),
    Column("DETAIL", least=12, drop=1),
    Column("RESULT", drop=2),
    Column("COUNT", right=True, drop=4),
)


@click.command("audit")
@click.option(
    "--journal", type=click.Choice(["changes", "submits", "refusals", "sign_ins"]), default="changes",
    show_default=True, help="Which of the journals.",
)  # fmt: skip
@click.option("--who", default="", help="Only those by somebody with this in the name.")
@click.option("--what", default="", help="Only those with this in what was done, such as 'paused'.")
@click.option("--target", default="", help="Only those with this in the name of what it was done to.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many entries.")
@global_options
def audit_command(
    journal: Literal["changes", "submits", "refusals", "sign_ins"], who: str, what: str, target: str, limit: int
) -> None:
    """Show who has changed what, who was refused and who signed in.

    Changes by the API, the dashboard and the command line are in it, the newest first.
    """

    async def read(client: Client) -> list[AuditRow]:
        from tickwork.server.audit import Audit, Wanted

        rows, _ = await Audit(client._access.open_store).read(journal, None, limit, Wanted(who, what, target))
        return rows

    found = ask(read)
    if output.as_json():
        output.show_json({"entries": found})
        return
    rows = [
        (output.moment(each.at), each.who, each.address or each.via, each.what, each.target, each.detail, each.result,
         each.count)
        for each in found
    ]  # fmt: skip
    output.show_table(
        COLUMNS,
        rows,
        "Nothing like that is in this journal." if who or what or target else "Nothing is in this journal.",
    )
