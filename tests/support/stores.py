"""Stores for contract tests: every kind, with a clock that the test owns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.redis_store import WORKER, ClockedRedisStore, restricted_redis
from tickwork.clock import ManualClock
from tickwork.model.policy import Policy
from tickwork.store.contract import Store
from tickwork.store.memory import MemoryStore
from tickwork.store.sqlite import SqliteStore

KINDS = ("memory", "sqlite", "redis", "redis-partitioned", "redis-6.2", "valkey")
PARTITIONS = 4  # of the kind "redis-partitioned"


@asynccontextmanager
async def open_store(
    kind: str, folder: Path, clock: ManualClock, policy: Policy, user: str = WORKER
) -> AsyncIterator[Store]:
    """`user`, of Redis: `WORKER` or `SERVER`."""
    store: Store
    if kind == "memory":
        store = MemoryStore(policy, clock)
    elif kind == "sqlite":
        store = SqliteStore(str(folder / "tick.db"), "test", policy, clock)
    elif kind == "redis-partitioned":
        store = ClockedRedisStore(clock, restricted_redis(user=user), policy, partitions=PARTITIONS)
    else:
        store = ClockedRedisStore(clock, restricted_redis(kind, user), policy)
    await store.open()
    try:
        yield store
    finally:
        await store.close()
