"""The tests that every store must pass, for those who write one. They need pytest and pytest-asyncio in its auto mode.

In a test module of yours, import all of them and say how to make your store:

    from tickwork.testing.contract import *

    @pytest.fixture
    def make_store() -> StoreMaker:
        return lambda policy, clock: MyStore(policy, clock)

The store has to go by the clock that it is given. Each test gets a new store, which is opened before and closed after
it; then its audit must find nothing wrong.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tickwork.clock import ManualClock
from tickwork.model.policy import Policy
from tickwork.store.contract import Store
from tickwork.testing.contract.assigning import *  # noqa: F403
from tickwork.testing.contract.bench import START, Bench
from tickwork.testing.contract.control import *  # noqa: F403
from tickwork.testing.contract.deadlines import *  # noqa: F403
from tickwork.testing.contract.dependants import *  # noqa: F403
from tickwork.testing.contract.ends import *  # noqa: F403
from tickwork.testing.contract.fairness import *  # noqa: F403
from tickwork.testing.contract.gates import *  # noqa: F403
from tickwork.testing.contract.history import *  # noqa: F403
from tickwork.testing.contract.lanes import *  # noqa: F403
from tickwork.testing.contract.late_leaders import *  # noqa: F403
from tickwork.testing.contract.leases import *  # noqa: F403
from tickwork.testing.contract.lists import *  # noqa: F403
from tickwork.testing.contract.locks import *  # noqa: F403
from tickwork.testing.contract.log import *  # noqa: F403
from tickwork.testing.contract.many import *  # noqa: F403
from tickwork.testing.contract.marks import *  # noqa: F403
from tickwork.testing.contract.members import *  # noqa: F403
from tickwork.testing.contract.queries import *  # noqa: F403
from tickwork.testing.contract.rescheduling import *  # noqa: F403
from tickwork.testing.contract.retention import *  # noqa: F403
from tickwork.testing.contract.schedules import *  # noqa: F403
from tickwork.testing.contract.standing import *  # noqa: F403
from tickwork.testing.contract.submit import *  # noqa: F403
from tickwork.testing.contract.table import *  # noqa: F403
from tickwork.testing.contract.unique import *  # noqa: F403
from tickwork.testing.contract.waiters import *  # noqa: F403

StoreMaker = Callable[[Policy, ManualClock], Store]


@pytest.fixture
def policy() -> Policy:
    return Policy()


@pytest.fixture
async def bench(make_store: StoreMaker, policy: Policy) -> AsyncIterator[Bench]:
    clock = ManualClock(START)
    store = make_store(policy, clock)
    await store.open()
    try:
        yield Bench(store, clock)
        assert await store.queries.audit() == [], "a test left the store unsound"
    finally:
        await store.close()
