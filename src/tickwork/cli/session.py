"""How a command reaches the store: which one, checked before it is touched, opened for one question."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tickwork.clock import to_datetime
from tickwork.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.config import Config
    from tickwork.config.loading import Loaded
    from tickwork.server.callers import Caller
    from tickwork.store.contract import Store

T = TypeVar("T")

DEFAULT_STORE = "sqlite:///tickwork.db"
BY_DEFAULT = "default of the command line"
PATIENCE = 3.0  # seconds for a Redis that does not answer: somebody sits and waits


def said(name: str) -> Any:
    """A global option, wherever on the command line it stood."""
    return click.get_current_context().meta.get(f"tickwork.{name}")


def said_options() -> dict[str, Any]:
    return {name: said(name) for name in ("store", "namespace") if said(name)}


def settings() -> Loaded:
    """The configuration that a command goes by when it has no application."""
    from tickwork.config.loading import load

    loaded = load(said_options(), file=said("config"), default_file=True)
    if loaded.config.store is None:
        loaded = load({"store": DEFAULT_STORE, **said_options()}, file=said("config"), default_file=True)
        loaded.origins["store"] = BY_DEFAULT
    return loaded


def ask(question: Callable[[Client], Awaitable[T]], *, create: bool = False) -> T:
    """Open the store, ask, close. Only with `create` may that make a file, or a namespace in it."""
    import asyncio

    return asyncio.run(_ask(question, create))


def change(
    question: Callable[[Client], Awaitable[T]], what: str, target: str, detail: str = "", *, create: bool = False
) -> T:
    """As `ask`, for what changes something: `what` was done to `target` is told in the audit log."""

    async def told(client: Client) -> T:
        answer = await question(client)
        await tell_audit(client, what, target, detail)
        return answer

    return ask(told, create=create)


async def tell_audit(client: Client, what: str, target: str, detail: str = "") -> None:
    """The change is done by then; if it cannot be told, somebody should know."""
    from tickwork.server.audit import append

    caller = command_line_caller()
    try:
        await append(await store_of(client), "submits" if what.startswith("submitted") else "changes", caller, what,
                     target, detail)  # fmt: skip
    except StoreError as error:
        click.echo(f"note: this change is not in the audit log: {error}", err=True)


async def _ask(question: Callable[[Client], Awaitable[T]], create: bool) -> T:
    from tickwork.client.client import Client
    from tickwork.handlers.registry import Registry

    store, config = await _unopened(create)

    async def opened() -> Store:
        return store

    try:
        await store.open()
        return await question(Client(opened, Registry(), config))
    finally:
        await store.close()


def command_line_caller() -> Caller:
    """Whoever can reach the store by a command may do everything there."""
    from tickwork.host import user_at_host
    from tickwork.server.callers import Caller, Role

    return Caller(user_at_host(), Role.ADMIN, via="command line", address=user_at_host().rpartition("@")[2])


async def unopened_store() -> Store:
    """The store that a command goes by, as it is: it must be there, but is not opened."""
    store, _ = await _unopened(create=False)
    return store


async def _unopened(create: bool) -> tuple[Store, Config]:
    from tickwork.store.opening import kind_of, make_store

    loaded = settings()
    config, url = loaded.config, loaded.config.store or DEFAULT_STORE
    create = create and loaded.origins["store"] != BY_DEFAULT  # a file that nobody named, nobody may be looking at
    check_store(url, config.namespace, create)
    if kind_of(url) == "redis":
        config = await meet(url, config, create)
    return make_store(url, config, patience=PATIENCE), config


async def store_of(client: Client) -> Store:
    """For what only a command line asks of a store."""
    return await client._access.open_store()


async def now_of(client: Client) -> datetime:
    """By the clock of the store, as all its times are."""
    return to_datetime((await store_of(client)).now())


async def meet(url: str, config: Config, create: bool) -> Config:
    """A namespace of a Redis says itself how many partitions it has; one that is not there is not made by looking."""
    from msgspec.structs import replace

    from tickwork.store.opening import stored_partitions
    from tickwork.store.redis.net.target import parse

    partitions = await stored_partitions(url, config.namespace, PATIENCE)
    if partitions is None and not create:
        raise StoreError(
            f"Redis at {parse(url).url} has no namespace {config.namespace!r} of Tickwork; name one with --namespace "
            "or TICKWORK_NAMESPACE, or start one with `tickwork up MODULE:APP`"
        )
    return replace(config, partitions=partitions or config.partitions)


def check_store(url: str, namespace: str, create: bool = False) -> None:
    """Refuse what a second process cannot see, and, unless it may be made, what is not there yet."""
    from tickwork.store.opening import kind_of

    if kind_of(url) == "memory":
        raise ConfigError(
            "each process has its own memory:// store, so this command would see nothing of another's; "
            "use sqlite:///FILE with --store or TICKWORK_STORE"
        )
    path = sqlite_path(url)
    if path is None or create:
        return
    if not os.path.exists(path):
        raise StoreError(
            f"there is no SQLite file {path}; name the store with --store URL or TICKWORK_STORE, "
            "or start one with `tickwork up MODULE:APP`"
        )
    versions = schema_versions(path)
    if namespace not in versions:
        known = ", ".join(sorted(versions)) or "none"
        raise StoreError(f"SQLite file {path} has no namespace {namespace!r} of Tickwork (it has: {known})")


def sqlite_path(url: str) -> str | None:
    """The file of a SQLite URL, None for other stores."""
    return url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else None


def schema_versions(path: str) -> dict[str, int]:
    """The namespaces of a file and the version of their tables. Reads only: the file may be somebody else's."""
    import sqlite3

    from tickwork.store.sqlite.files import uri_of

    try:
        db = sqlite3.connect(uri_of(path, "ro"), uri=True, timeout=5)
        try:
            return dict(db.execute("SELECT namespace, version FROM tickwork_schema"))
        finally:
            db.close()
    except sqlite3.Error as error:
        if "no such table" in str(error):
            return {}
        raise StoreError(f"SQLite file {path}: {error}") from None
