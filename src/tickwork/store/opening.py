"""From a URL to a store."""

from __future__ import annotations

from tickwork.clock import Clock
from tickwork.config import Config, mask_url
from tickwork.errors import ConfigError
from tickwork.model import Policy
from tickwork.store.base import Store

KNOWN = "memory://, sqlite:///relative.db, sqlite:////absolute.db"


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


def make_store(url: str, config: Config, clock: Clock | None = None) -> Store:
    """The store of that URL, not opened yet."""
    policy = policy_of(config)
    if url in ("memory://", "memory:"):
        from tickwork.store.memory import MemoryStore

        return MemoryStore(policy, clock)
    if url.startswith("sqlite://"):
        from tickwork.store.sqlite import SqliteStore

        path = url.removeprefix("sqlite://")
        if not path.startswith("/") or len(path) < 2:
            raise ConfigError(
                f"store URL {url!r}: a SQLite file is named by sqlite:///relative.db or sqlite:////absolute.db"
            )
        if config.durability not in ("memory", "disk"):
            raise ConfigError(f'durability={config.durability!r} is not for a SQLite file; use "memory" or "disk"')
        return SqliteStore(path[1:], config.namespace, policy, clock, config.durability)
    hint = "" if "://" in url else f"; did you mean sqlite:///{url}?"
    raise ConfigError(f"store URL {mask_url(url)!r} is of no known kind{hint}; known are {KNOWN}")
