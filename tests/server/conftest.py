from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.server.serving import Client, Server, serving, url_of
from tickwork.clock import ManualClock

START = 1_900_000_000_000  # 2030-03-17T17:46:40Z


@pytest.fixture
def url(tmp_path: Path) -> str:
    return url_of("sqlite", tmp_path)


@pytest.fixture(params=("memory", "sqlite", "redis"))
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
async def server(url: str) -> AsyncIterator[Server]:
    async with serving(url) as found:
        yield found


@pytest.fixture
async def timed(url: str, clock: ManualClock) -> AsyncIterator[Server]:
    """The same, by a clock that the test sets."""
    async with serving(url, clock=clock) as found:
        yield found


@pytest.fixture
async def admin(server: Server) -> Client:
    return await server.as_role("admin")
