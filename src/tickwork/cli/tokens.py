"""`tickwork tokens`: who may call the API and the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import Duration, global_options
from tickwork.cli.output import Column
from tickwork.cli.session import ask, command_line_caller, tell_audit
from tickwork.server.callers import EVERY, Role

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.server.tokens import NewToken, TokenInfo, Tokens

COLUMNS = (
    Column("ID"),
    Column("NAME", least=10),
    Column("ROLE"),
    Column("NAMESPACES", drop=2),
    Column("MADE BY", drop=3),
    Column("EXPIRES"),
    Column("LAST USED", drop=1),
)


@click.group("tokens")
@global_options
def tokens_command() -> None:
    """Look after tokens: who may call the API and the dashboard."""


def _tokens(client: Client) -> Tokens:
    from tickwork.server.tokens import Tokens

    return Tokens(client._access.open_store)


@tokens_command.command("create")
@click.argument("name")
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True, help="What it may do.")
@click.option("--expires", type=Duration(), metavar="TIME", help="When it ends, such as 30d; never if left out.")
@click.option("--for", "namespaces", multiple=True, metavar="NAMESPACE", help="Namespaces it is for; all if left out.")
@global_options
def create_command(name: str, role: str, expires: float | None, namespaces: tuple[str, ...]) -> None:
    """Make a token, and show it this once.

    It is kept as a hash: nobody can read it from the store.

    \b
      tickwork tokens create ines --role operator --expires 90d
    """

    async def make(client: Client) -> NewToken:
        caller = command_line_caller()
        made = await _tokens(client).make(name, Role(role), caller, namespaces or (EVERY,), expires)
        await tell_audit(client, "made a token", name, f"{role} of {', '.join(namespaces or (EVERY,))}")
        return made

    made = ask(make, create=True)
    if output.as_json():
        output.show_json({"token": made.token, "id": made.info.id, "name": name, "role": role})
        return
    click.echo(made.token)
    click.echo("It is shown this once. Programs send it as the header Authorization: Bearer TOKEN.", err=True)


@tokens_command.command("list")
@global_options
def list_command() -> None:
    """List tokens, without their secrets."""

    async def read(client: Client) -> list[TokenInfo]:
        return await _tokens(client).infos()

    found = ask(read)
    if output.as_json():
        output.show_json({"tokens": found})
        return
    rows = [
        (each.id, each.name, each.role, ", ".join(each.namespaces), each.made_by,
         output.moment(each.expires_at) if each.expires_at else "never",
         output.moment(each.used_at) if each.used_at else "not yet")
        for each in found
    ]  # fmt: skip
    output.show_table(COLUMNS, rows, "There is no token. `tickwork tokens create NAME --role admin` makes one.")


@tokens_command.command("revoke")
@click.argument("token_id", metavar="ID")
@global_options
def revoke_command(token_id: str) -> None:
    """End a token, its sessions and its event streams, within five seconds."""

    async def revoke(client: Client) -> TokenInfo:
        ended = await _tokens(client).revoke(token_id)
        await tell_audit(client, "revoked a token", ended.name, token_id)
        return ended

    ended = ask(revoke)
    output.done(f"{token_id}  revoked ({ended.name})", id=token_id, done="revoked")
