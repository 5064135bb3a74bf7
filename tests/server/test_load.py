"""The short form of `python -m benchmarks.control`: a real server on a real Redis, with streams open under load."""

from __future__ import annotations

import asyncio

from benchmarks.control import Size, batches, count_stored, fill, load, look, served

from tests.support.redis import RedisServer

SIZE = Size(tasks=2_000, dead=100, schedules=20, workers=5, streams=20, seconds=2.0, rate=200)


def test_nothing_is_lost_while_many_look_on() -> None:
    with RedisServer() as server:
        task = asyncio.run(fill(server.url, SIZE))
        with served(server.url) as (address, _):
            assert all(size > 0 for _, _, _, size in look(address, task))
            assert batches(address, 1.0) > 0
            found = asyncio.run(load(address, SIZE))
        stored = asyncio.run(count_stored(server.url, "load"))
    assert found.answered == found.sent
    assert stored == found.answered
    assert found.heard == found.answered, "each task was told to the stream that was looked at"
    assert 0 < found.most <= 4, "frames in a second, of any stream"
