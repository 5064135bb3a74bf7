"""`tickwork webhooks`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.output import Column
from tickwork.cli.session import ask, change, now_of, settings

if TYPE_CHECKING:
    from datetime import datetime

    from tickwork.client.client import Client
    from tickwork.webhooks.admin import TestAnswer, WebhookInfo

SECOND = timedelta(seconds=1)
SHOWN_MAX = 500  # characters of an answer
COLUMNS = (
    Column("WEBHOOK", least=10),
    Column("ADDRESS", least=16, drop=2),
    Column("STATE", color=lambda cell: "green" if cell == "on" else "red"),
    Column("WAITING", right=True),
    Column("FAILED", right=True),
    Column("FOR", right=True, drop=3),
    Column("NOTE", least=12, drop=1),
)

_name_argument = click.argument("name", metavar="NAME")


@click.group("webhooks", invoke_without_command=True)
@global_options
@click.pass_context
def webhooks_command(ctx: click.Context) -> None:
    """Look after webhooks: whether they are on, what waits, and what has failed.

    Without a command it lists those of the configuration.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command)


@webhooks_command.command("list")
@global_options
def list_command() -> None:
    """List webhooks, the deliveries that wait, and how many have failed in a row."""

    async def look(client: Client) -> tuple[list[WebhookInfo], datetime]:
        from tickwork.webhooks.admin import Webhooks

        return await Webhooks(client._access).list(), await now_of(client)

    hooks, now = ask(look)
    if output.as_json():
        output.show_json({"webhooks": hooks})
        return
    rows = [
        (
            hook.name,
            hook.address,
            "on" if hook.enabled else "off",
            hook.waiting,
            hook.failed or "",
            output.duration(max((now - hook.failing_since) // SECOND, 0)) if hook.failing_since else "",
            hook.note or hook.last_error,
        )
        for hook in hooks
    ]
    output.show_table(COLUMNS, rows, "the configuration has no webhooks")


@webhooks_command.command("test")
@_name_argument
@global_options
def test_command(name: str) -> None:
    """Send a test event now, from this machine, and print the answer.

    Exits with 1 if the endpoint does not take it.
    """

    async def send(client: Client) -> TestAnswer:
        from tickwork.webhooks.admin import Webhooks

        return await Webhooks(client._access).test(name)

    answered = ask(send)
    text = output.clean(answered.body.decode("utf-8", "replace"))[:SHOWN_MAX]
    taken = "has taken the test event" if answered.ok else "has refused the test event"
    output.done(f"webhook {name} {taken}: {answered.status} {text}".rstrip(), webhook=name, status=answered.status,
                ok=answered.ok, answer=text)  # fmt: skip
    if not answered.ok:
        click.get_current_context().exit(1)


@webhooks_command.command("enable")
@_name_argument
@global_options
def enable_command(name: str) -> None:
    """Switch a webhook on again; its events go on where they stopped."""

    async def enable(client: Client) -> bool:
        from tickwork.webhooks.admin import Webhooks

        return await Webhooks(client._access).enable(name)

    word = "is on again" if change(enable, "switched a webhook on", name) else "was on"
    output.done(f"webhook {name} {word}", webhook=name, done=word)


@webhooks_command.command("secret")
@_name_argument
@global_options
def secret_command(name: str) -> None:
    """Print the secret with which the receiver verifies. Hand it over as you would a password."""
    from tickwork.webhooks.admin import secret_of

    secret = secret_of(settings().config, name)
    output.done(secret, webhook=name, secret=secret)
