"""`store_timeout`: how long a caller waits for a store that does not answer."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.apps import FAST, Gate, eventually
from tests.support.redis import RedisServer
from tickwork import Scheduler, StoreUnavailable
from tickwork.testing import run

LIMIT = 1.5
MUCH = 4.0  # seconds; without the limit it would be 5 or 15


@contextmanager
def refused() -> Iterator[None]:
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"did not answer within 1.5 s \(store_timeout\)"):
        yield
    assert time.monotonic() - began < MUCH


async def test_a_redis_that_does_not_answer() -> None:
    with RedisServer() as server:
        app = Scheduler(server.url, store_timeout=LIMIT)
        await app.submit("ship", id="before")
        server.pause()
        with refused():
            await app.submit("ship", id="it")
        with refused():
            await asyncio.to_thread(app.sync.submit, "ship", id="it")
        with refused():
            await app.lock("one").acquire()
        with refused():
            await app.status()
        server.resume()
        await app.submit("ship", id="after")
        await app.shutdown()


async def test_a_redis_that_is_down_at_the_first_call() -> None:
    with RedisServer() as server:
        url = server.url
        await asyncio.to_thread(server.kill)
        app = Scheduler(url, store_timeout=LIMIT)
        with refused():
            await app.submit("ship")
        with refused():
            await asyncio.to_thread(app.sync.submit, "ship")
        await asyncio.to_thread(server.start)
        await app.submit("ship", id="it")
        await app.shutdown()


async def test_a_sqlite_file_that_another_keeps(tmp_path: Path) -> None:
    app = Scheduler(f"sqlite:///{tmp_path}/a.db", store_timeout=LIMIT)
    await app.submit("ship", id="before")
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with refused():
        await app.submit("ship", id="it")
    assert (await app.get_task("before")).id == "before", "who only reads need not wait"
    other.execute("ROLLBACK")
    other.close()
    await app.submit("ship", id="after")
    await app.shutdown()


async def test_waiting_for_a_result_has_a_limit_of_its_own(url: str) -> None:
    app = Scheduler(url, store_timeout=LIMIT, **FAST)
    gate = Gate()

    @app.task
    async def slow() -> int:
        await gate.pass_through()
        return 7

    async with app:
        handle = await slow.submit()
        waiting = asyncio.ensure_future(handle.result(timeout=20))
        await eventually(lambda: gate.inside)
        await asyncio.sleep(LIMIT + 0.2)
        gate.open()
        assert await waiting == 7


async def test_workers_are_patient_all_the_same() -> None:
    with RedisServer() as server:
        app = Scheduler(server.url, store_timeout=LIMIT, **{**FAST, "lease_ttl": 10.0})
        gate = Gate()

        @app.task
        async def slow() -> int:
            await gate.pass_through()
            return 7

        async with app:
            handle = await slow.submit()
            await eventually(lambda: gate.inside)
            server.pause()
            gate.open()
            await asyncio.sleep(LIMIT + 0.5)
            server.resume()

            async def ended() -> bool:
                try:
                    return (await handle.info()).status.ended
                except StoreUnavailable:
                    return False

            await eventually(ended)
            info = await handle.info()
            assert (info.status, info.attempt, info.losses) == ("success", 1, 0)
            assert not app.exhausted


async def test_a_test_on_a_store_of_its_own_leaves_the_named_one_alone(tmp_path: Path) -> None:
    """Also where calls are bounded: the bound is around the store that is used just now."""
    path = tmp_path / "production.db"
    app = Scheduler(f"sqlite:///{path}", store_timeout=LIMIT)
    async with run(app, start=False):
        handle = await app.submit("ship")
        assert (await handle.info()).status == "ready"
    assert not path.exists()
