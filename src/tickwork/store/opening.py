"""From what a user names, a URL, a redis-py client or a store of his own, to a store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, cast

from tickwork.clock import Clock
from tickwork.config import Config
from tickwork.config.urls import mask_url
from tickwork.config.values import nearest
from tickwork.errors import ConfigError
from tickwork.model.policy import Durability, Policy
from tickwork.observe.loggers import Log
from tickwork.store.contract import Capabilities, Store

SCHEMES = ("memory", "sqlite", "redis", "rediss", "redis+sentinel", "redis+cluster")
KNOWN = (
    "memory://, sqlite:///relative.db, sqlite:////absolute.db, redis://host:port/db, rediss:// (TLS), "
    "redis+sentinel://host,host/service/db, redis+cluster://host,host"
)

STORE_OPTIONS = frozenset({
    "namespace", "durability", "partitions", "pool_size", "retention", "retention_max", "dlq", "dlq_max", "dedup",
    "max_losses", "events",
})  # fmt: skip


def policy_of(config: Config) -> Policy:
    return Policy(
        dlq=config.dlq,
        dlq_max=config.dlq_max,
        max_losses=config.max_losses,
        dedup=config.dedup,
        lease_ttl=round(config.lease_ttl * 1000),
        renew_interval=round(config.renew_interval * 1000),
        retention=round(config.retention * 1000),
        retention_max=config.retention_max,
        events=config.events,
    )


def make_store(
    url: str,
    config: Config | None = None,
    clock: Clock | None = None,
    client: Any = None,
    patience: float | None = None,
) -> Store:
    """The store that a scheduler with this URL (or this redis-py client) and config would use, not opened yet.

    `patience` is how long a call waits for a server that cannot be reached, in seconds.
    """
    config = config or Config()
    store = _make_store(url, config, clock, client, patience)
    if config.logger is not None:
        store.contact.log = Log.of(config.logger, "store")
    return store


def kind_of(url: str) -> Literal["memory", "sqlite", "redis"] | None:
    """Which store a URL names; the only place that reads a scheme. What the store can do is in its `capabilities`."""
    if url in ("memory://", "memory:"):
        return "memory"
    if url.startswith("sqlite://"):
        return "sqlite"
    return "redis" if url.startswith(("redis:", "rediss:", "redis+", "rediss+")) else None


async def stored_partitions(url: str, namespace: str, patience: float) -> int | None:
    """How many partitions a namespace says that it has; None where there is no such namespace, or no Redis."""
    if kind_of(url) != "redis":
        return None
    from tickwork.store.redis.net.target import parse
    from tickwork.store.redis.ops import server

    return await server.stored_partitions(parse(url), namespace, patience)


def name_of_check(url: str) -> str:
    """What the health check of a store is called."""
    return "redis" if kind_of(url) == "redis" else "store"


def _make_store(url: str, config: Config, clock: Clock | None, client: Any, patience: float | None) -> Store:
    policy, kind = policy_of(config), kind_of(url)
    if client is not None or kind == "redis":
        return _redis_store(url, config, clock, client, policy, patience)
    if config.partitions > 1:
        raise ConfigError(f"partitions={config.partitions} is for Redis only")
    if kind == "memory":
        from tickwork.store.memory import MemoryStore

        if config.durability != "memory":
            raise ConfigError(f"durability={config.durability!r} is not for memory://, which keeps nothing")
        return MemoryStore(policy, clock)
    if kind == "sqlite":
        from tickwork.store.sqlite import SqliteStore

        path = url.removeprefix("sqlite://")
        if not path.startswith("/") or len(path) < 2:
            raise ConfigError(
                f"store URL {url!r}: a SQLite file is named by sqlite:///relative.db or sqlite:////absolute.db"
            )
        if config.durability not in ("memory", "disk"):
            raise ConfigError(f'durability={config.durability!r} is not for a SQLite file; use "memory" or "disk"')
        return SqliteStore(path[1:], config.namespace, policy, clock, cast("Durability", config.durability))
    guess = "redis://" if "@" in url or re.fullmatch(r"[\w.-]+:\d+(/\d+)?", url) else "sqlite:///"
    scheme, separator, _ = url.partition("://")
    hint = nearest(scheme, SCHEMES) if separator else f"; did you mean {guess}{mask_url(url)}?"
    raise ConfigError(f"store URL {mask_url(url)!r} is of no known kind{hint}; known are {KNOWN}")


def _redis_store(
    url: str, config: Config, clock: Clock | None, client: Any, policy: Policy, patience: float | None
) -> Store:
    from tickwork.store.redis import PATIENCE, RedisStore
    from tickwork.store.redis.net.target import of_client, parse

    if clock is not None:
        raise ConfigError("clock= works with memory:// and sqlite:// only; Redis uses the server's time")
    return RedisStore(
        parse(url) if client is None else of_client(client),
        config.namespace,
        policy,
        partitions=config.partitions,
        pool_size=config.pool_size,
        durability=cast("Durability", config.durability),
        patience=PATIENCE if patience is None else patience,
    )


def own_store(store: Any, clock: Clock | None) -> Store | None:
    """A store object that the user made himself."""
    if not isinstance(getattr(store, "capabilities", None), Capabilities):
        return None
    if clock is not None:
        raise ConfigError("give the clock to the store that you made; a scheduler goes by the clock of its store")
    return cast("Store", store)


def check_own_store(set_in_code: Mapping[str, Any]) -> None:
    """Refuse options that only the store reads, which would be without effect."""
    wrong = sorted(STORE_OPTIONS & set_in_code.keys())
    if wrong:
        raise ConfigError(
            f"{', '.join(wrong)}: options of the store have no effect on one that you made; give them to it, as in "
            "make_store(url, Config(...))"
        )


def redis_client(store: Any) -> Any:
    if hasattr(store, "connection_pool") or hasattr(store, "nodes_manager"):
        return store
    raise ConfigError(f"store must be a URL, a redis-py client or a Store, not {type(store).__name__}")
