from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.apps import FAST, Make
from tests.support.redis_store import empty_redis
from tickwork import Scheduler
from tickwork.clock import ManualClock


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that set the clock are not for Redis, whose server has its own; its contract tests do that by a script."""
    items[:] = [item for item in items if not ("[redis" in item.name and "clock" in getattr(item, "fixturenames", ()))]


def url_of(kind: str, folder: Path) -> str:
    if kind == "memory":
        return "memory://"
    return f"sqlite:///{folder}/tick.db" if kind == "sqlite" else empty_redis()


@pytest.fixture(params=("memory", "sqlite", "redis"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture(params=("sqlite", "redis"))
def file_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """For what only makes sense with several processes."""
    return url_of(request.param, tmp_path)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return url_of("sqlite", tmp_path)


@pytest.fixture
def redis_url(tmp_path: Path) -> str:
    return url_of("redis", tmp_path)


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
