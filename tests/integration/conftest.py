from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.apps import FAST, Make
from tickwork import Scheduler
from tickwork.clock import ManualClock


@pytest.fixture(params=("memory", "sqlite"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/tick.db"


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    """For what only makes sense with several processes."""
    return f"sqlite:///{tmp_path}/tick.db"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Makes schedulers that are stopped after the test, and audits what they leave behind."""
    apps: list[Scheduler] = []

    def make(store: str | None = None, **options: Any) -> Scheduler:
        app = Scheduler(store or request.getfixturevalue("url"), **{**FAST, **options})
        apps.append(app)
        return app

    yield make
    for app in apps:
        problems = await app.audit()
        await app.shutdown(timeout=0.2)
        assert problems == [], "a test left the store unsound"


@pytest.fixture
async def app(make: Make, url: str) -> Scheduler:
    """One scheduler; the test registers its handlers, then enters it."""
    return make(url)
