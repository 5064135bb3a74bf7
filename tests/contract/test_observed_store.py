"""A store whose calls are observed keeps the contract, as the store beneath it does."""

from __future__ import annotations

import pytest

from tickwork.observe import LeasesRenewed, StoreCalled, TasksClaimed, TaskSubmitted
from tickwork.observe.bus import Bus
from tickwork.store.memory import MemoryStore
from tickwork.store.observed import observed
from tickwork.testing.contract import *  # noqa: F403
from tickwork.testing.contract import StoreMaker


@pytest.fixture
def make_store() -> StoreMaker:
    bus = Bus()
    bus.subscribe(lambda seen: None, (StoreCalled, TaskSubmitted, TasksClaimed, LeasesRenewed))
    return lambda policy, clock: observed(MemoryStore(policy, clock), bus)
