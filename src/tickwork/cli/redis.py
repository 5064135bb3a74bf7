"""`tickwork acl` and `tickwork switchover`: what is special to Redis."""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import TYPE_CHECKING

import click

from tickwork.cli import output
from tickwork.cli.options import global_options
from tickwork.cli.session import settings
from tickwork.errors import ConfigError

if TYPE_CHECKING:
    from tickwork.store.redis.net.target import Target
    from tickwork.store.redis.ops.acl import Purpose


def _target() -> Target:
    from tickwork.store.redis.net.target import SCHEMES, parse

    url = settings().config.store or ""
    if url.partition(":")[0] not in SCHEMES:
        raise ConfigError("this command is for Redis: name it with --store redis://... or TICKWORK_STORE")
    return parse(url)


@click.command("acl")
@click.option("--user", metavar="NAME", help="Name of the Redis user.  [default: tickwork-NAMESPACE]")
@click.option(
    "--for", "purpose", type=click.Choice(["worker", "audit", "server"]), default="worker", show_default=True,
    help="audit adds the rights that `doctor` needs to read all tasks, server those to tokens, sessions and journals.",
)  # fmt: skip
@click.option("--password-file", metavar="FILE", help="Create this file for the password, readable by its owner only.")
@click.option("--redis-version", "version", metavar="X.Y", help="Version of the server; it is asked if left out.")
@global_options
def acl_command(user: str | None, purpose: Purpose, password_file: str | None, version: str | None) -> None:
    """Print the smallest Redis ACL line for the namespace.

    The line gives one Redis user the keys, channels and commands that the namespace needs, and nothing else. Give it to
    `redis-cli`. It holds a hash of the password; the password itself is made here and goes into --password-file, or is
    shown once on standard error.
    """
    from tickwork.ids import is_name
    from tickwork.store.redis.ops.acl import acl_line

    target, namespace = _target(), settings().config.namespace
    if user is not None and not is_name(user):
        raise ConfigError(f"--user {user!r}: a name is 1 to 128 letters, digits and . _ : @ -")
    numbers = _version(version) if version else asyncio.run(_ask_version(target))
    name = user or f"tickwork-{namespace}{'' if purpose == 'worker' else f'-{purpose}'}"
    password = secrets.token_urlsafe(24)
    line = acl_line(namespace, name, password, numbers, target.kind == "cluster", purpose, target.access.db)
    if password_file is None:
        click.echo(f"password of {name}: {password}", err=True)
    else:
        _write_secret(password_file, password)
    if output.as_json():
        output.show_json({"user": name, "line": line, "password_file": password_file})
    else:
        click.echo(line)


def _write_secret(path: str, secret: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ConfigError(f"--password-file {path}: {error.strerror}; name a new file") from None
    with open(descriptor, "w") as file:
        file.write(f"{secret}\n")


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    if not all(part.isdecimal() for part in parts):
        raise ConfigError(f"--redis-version {text!r}: write it like 7.0")
    return tuple(map(int, parts))


async def _ask_version(target: Target) -> tuple[int, ...]:
    from tickwork.store.redis.net.wire import Wire
    from tickwork.store.redis.ops.server import read_info

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
    from tickwork.store.redis.ops.switchover import switchover

    def say(text: str) -> None:
        if not output.as_json():
            click.echo(text)

    old, new = asyncio.run(switchover(_target(), say))
    if output.as_json():
        output.show_json({"old": str(old), "new": str(new)})
