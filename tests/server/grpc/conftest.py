from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.server.grpc.calling import Api, Grpc, calling


@pytest.fixture
async def api(url: str) -> AsyncIterator[Api]:
    async with calling(url) as found:
        yield found


@pytest.fixture
async def caller(api: Api) -> Grpc:
    return await api.as_role("admin")
