from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.redis_store import WORKER, ClockedRedisStore
from tests.support.stores import KINDS, open_store
from tickwork.clock import ManualClock
from tickwork.model.policy import Policy
from tickwork.testing.contract.bench import START, Bench


@pytest.fixture
def policy() -> Policy:
    return Policy()


@pytest.fixture
def redis_user() -> str:
    """With the rights of a worker; what those do not suffice for names another."""
    return WORKER


@pytest.fixture(params=KINDS)
async def bench(
    request: pytest.FixtureRequest, tmp_path: Path, policy: Policy, redis_user: str
) -> AsyncIterator[Bench]:
    clock = ManualClock(START)
    async with open_store(request.param, tmp_path, clock, policy, redis_user) as store:
        yield Bench(store, clock, store.keep_together if isinstance(store, ClockedRedisStore) else lambda: None)
        assert await store.queries.audit() == [], "a test left the store unsound"
