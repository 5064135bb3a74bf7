"""One Redis server that dies, forgets, hangs, fills up, or loses its connections, under load."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.faults.server_faults import LEASE, Figures, Scale, crew, restart, show
from tests.support.redis import RedisServer

pytestmark = pytest.mark.timeout(120)


async def redis_restarted(seed: int, scale: Scale) -> Figures:
    """A server that keeps all on disk is killed again and again: nothing is lost, and work goes on by itself."""
    kills = 4 if scale == "short" else 60
    resumed: list[float] = []
    with RedisServer(options={"appendonly": "yes", "appendfsync": "always"}) as server:
        async with crew(server.url, seed) as team:
            team.submit_on(3)
            for _ in range(kills):
                await asyncio.sleep(team.chance.uniform(0.3, 0.9))
                up_at = await restart(server, team.chance.uniform(0.05, 0.6))
                resumed.append(await team.started_after(up_at))
            await team.stop_submitting()
            await team.drained()
            figures = await team.judge()
            assert not team.witness.errors, team.witness.errors[:3]
    assert max(resumed) < 1.0, f"work resumed {max(resumed):.2f} s after the server's return"
    assert figures["acked"] > 50 * kills / 4
    return {**figures, "kills": kills, "resumed_max": max(resumed)}


async def test_a_server_that_is_killed_and_restarted_loses_nothing() -> None:
    show("redis_restarted", 1, await redis_restarted(1, "short"))
