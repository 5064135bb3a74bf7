"""`tickwork acl` and `tickwork switchover`: what is special to Redis."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.session import settings
from tickwork.errors import ConfigError

if TYPE_CHECKING:
    from tickwork.store.redis.target import Target


def _target() -> Target:
    from tickwork.store.redis.target import SCHEMES, parse

    url = settings().config.store or ""
    if url.partition(":")[0] not in SCHEMES:
        raise ConfigError("this command is for Redis: name it with --store redis://... or TICKWORK_STORE")
    return parse(url)


@click.command("acl")
@click.option("--user", metavar="NAME", help="Name of the Redis user.  [default: tickwork-NAMESPACE]")
@click.option("--redis-version", "version", metavar="X.Y", help="Do not ask the server for its version.")
@global_options
def acl_command(user: str | None, version: str | None) -> None:
    """Print the smallest Redis ACL line for the namespace.

    The line gives one Redis user the keys, channels and commands that the namespace needs, and nothing else. Its
    password is made here and shown once; give the line to `redis-cli`, and the password to your processes.
    """
    from tickwork.ids import is_name
    from tickwork.store.redis.acl import acl_line

    target, namespace = _target(), settings().config.namespace
    if user is not None and not is_name(user):
        raise ConfigError(f"--user {user!r}: a name is 1 to 128 letters, digits and . _ : @ -")
    numbers = _version(version) if version else asyncio.run(_ask_version(target))
    name, password = user or f"tickwork-{namespace}", secrets.token_urlsafe(24)
    line = acl_line(namespace, name, password, numbers, target.kind == "cluster")
    if output.as_json():
        output.show_json({"user": name, "password": password, "line": line})
    else:
        click.echo(line)


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    if not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--redis-version {text!r}: write it like 7.0")
    return tuple(map(int, parts))


async def _ask_version(target: Target) -> tuple[int, ...]:
    from tickwork.store.redis.server import read_info
    from tickwork.store.redis.wire import Wire

    wire = Wire(target, 1, patience=2.0)
    try:
        return _version(read_info(await wire.call("", "INFO", "server")).get("redis_version", "7.0"))
    finally:
        await wire.close()


@click.command("switchover")
@global_options
def switchover_command() -> None:
    """Change the master under Sentinel on purpose, losing nothing.

    Writes are held, the replicas catch up, the sentinels elect, and the old master follows the new one before anybody
    writes again. Callers see a pause of some seconds.
    """
    from tickwork.store.redis.switchover import switchover

    def say(text: str) -> None:
        if not output.as_json():
            click.echo(text)

    old, new = asyncio.run(switchover(_target(), say))
    if output.as_json():
        output.show_json({"old": str(old), "new": str(new)})
