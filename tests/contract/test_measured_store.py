"""The store of examples/measured_store.py, proved as any third party would prove its own."""

from __future__ import annotations

from typing import cast

import pytest
from examples.measured_store import MeasuredStore

from tickwork.store.contract import Store
from tickwork.store.memory import MemoryStore
from tickwork.testing.contract import *  # noqa: F403
from tickwork.testing.contract import StoreMaker


@pytest.fixture
def make_store() -> StoreMaker:
    return lambda policy, clock: cast("Store", MeasuredStore(MemoryStore(policy, clock)))
