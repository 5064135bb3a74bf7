"""`submit_timeout`: how long a whole submit waits for a store that does not answer."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.apps import eventually
from tests.support.redis import RedisServer
from tickwork import Scheduler, StoreFull, StoreUnavailable, Task, TickworkError
from tickwork.handlers.middleware import Middleware, SubmitCall, SubmitNext
from tickwork.store.bounded import PAUSE, SubmitLimit
from tickwork.store.contract import Receipt

LIMIT = 1.5
MUCH = 4.5  # seconds; without the limit it would be 5 or 15, and twice as much where the store is not open yet


@contextmanager
def refused() -> Iterator[None]:
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"did not answer within 1.5 s \(submit_timeout\)"):
        yield
    assert time.monotonic() - began < MUCH


def every_way(app: Scheduler) -> dict[str, Callable[[], Any]]:
    ship: Any = app.task("ship")(lambda number: None)

    async def blocking(call: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.to_thread(call, *args)

    async def of_a_list() -> None:
        (answer,) = await app.submit_tasks([Task(type="ship", payload=1)])
        assert isinstance(answer, TickworkError)
        raise answer

    return {
        "submit": lambda: app.submit("ship", 1),
        "submit_many": lambda: app.submit_many("ship", [1, 2]),
        "submit_tasks": of_a_list,
        "call": lambda: app.call("ship", 1),
        "cron": lambda: app.submit("ship", 1, cron="@daily"),
        "put": lambda: app.schedules.put("s", "ship", 1, cron="@daily"),
        "sync.submit": lambda: blocking(app.sync.submit, "ship", 1),
        "sync.submit_many": lambda: blocking(app.sync.submit_many, "ship", [1]),
        "f.submit": lambda: ship.submit(1),
        "f.sync.submit": lambda: blocking(ship.sync.submit, 1),
        "f.sync.call": lambda: blocking(ship.sync.call, 1),
    }


WAYS = list(every_way(Scheduler("memory://")))


@pytest.fixture(scope="module")
def silent_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server
        server.resume()


@pytest.mark.parametrize("way", WAYS)
async def test_a_redis_that_does_not_answer(silent_server: RedisServer, way: str) -> None:
    silent_server.resume()
    app = Scheduler(silent_server.url, submit_timeout=LIMIT)
    submit = every_way(app)[way]
    await app.status()
    await asyncio.to_thread(app.sync.submit, "ship", 1)
    silent_server.pause()
    with refused():
        await submit()
    silent_server.resume()
    await app.shutdown()


@pytest.mark.parametrize("way", WAYS)
async def test_a_redis_that_does_not_answer_the_first_call(silent_server: RedisServer, way: str) -> None:
    silent_server.pause()
    app = Scheduler(silent_server.url, submit_timeout=LIMIT)
    submit = every_way(app)[way]
    with refused():
        await submit()
    silent_server.resume()
    await app.submit("ship", 1)
    await app.shutdown()


async def test_a_sqlite_file_that_another_keeps(tmp_path: Path) -> None:
    app = Scheduler(f"sqlite:///{tmp_path}/a.db", submit_timeout=LIMIT)
    ways = every_way(app)
    await app.status()
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for way in ("submit", "put", "sync.submit"):
        with refused():
            await ways[way]()
    other.execute("ROLLBACK")
    other.close()
    await ways["submit"]()
    await app.shutdown()


async def test_only_submits_have_it(tmp_path: Path) -> None:
    """Whoever asks or steers goes by `store_timeout`, or by what the store has by itself."""
    app = Scheduler(f"sqlite:///{tmp_path}/a.db", submit_timeout=0.2)
    await app.submit("ship", id="it", delay=60)
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(1.0, lambda: other.execute("ROLLBACK"))
    release.start()
    await app.cancel("it")
    release.join()
    other.close()
    await app.shutdown()


async def test_a_longer_one_waits_longer_than_the_store_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Scheduler(f"sqlite:///{tmp_path}/a.db", submit_timeout=60, store_timeout=0.3)
    await app.status()
    calls = failures_of(app, monkeypatch)
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    submitting = asyncio.ensure_future(app.submit("ship", id="it"))
    await eventually(lambda: len(calls) >= 2, timeout=30)
    assert not submitting.done()
    other.execute("ROLLBACK")
    other.close()
    assert (await submitting).id == "it"
    assert (await app.get_task("it")).status == "ready"
    await app.shutdown()


def failures_of(app: Scheduler, monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """What the store refused, as the submit was told."""
    seen: list[BaseException] = []
    run = SubmitLimit.run

    async def spy(self: SubmitLimit, call: Callable[[], Any]) -> Any:
        async def noting() -> Any:
            try:
                return await call()
            except StoreUnavailable as error:
                seen.append(error)
                raise

        return await run(self, noting)

    monkeypatch.setattr(SubmitLimit, "run", spy)
    return seen


class TestALimit:
    async def test_that_is_longer_than_the_default_tries_again_until_it_is_over(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tickwork.store.bounded.PAUSE", 0.01)
        tries: list[int] = []
        limit = SubmitLimit(16, "redis://x", time.monotonic() - 15.5)  # half a second is left

        async def away() -> None:
            tries.append(1)
            raise StoreUnavailable("no route")

        with pytest.raises(StoreUnavailable, match=r"^no route; tried for 16 s \(submit_timeout\)$"):
            await limit.run(away)
        assert len(tries) > 1

    async def test_that_is_not_longer_takes_the_first_no(self) -> None:
        async def away() -> None:
            raise StoreUnavailable("no route")

        with pytest.raises(StoreUnavailable, match=r"^no route$"):
            await SubmitLimit(15, "redis://x").run(away)

    async def test_does_not_wait_for_room(self) -> None:
        async def full() -> None:
            raise StoreFull("no room")

        began = time.monotonic()
        with pytest.raises(StoreFull):
            await SubmitLimit(600, "redis://x").run(full)
        assert time.monotonic() - began < PAUSE * 100

    async def test_begins_anew_with_each_part_that_was_taken(self) -> None:
        limit = SubmitLimit(0.5, "redis://x", time.monotonic() - 0.2)

        async def take() -> int:
            return 1

        for _ in range(3):
            limit._ends_at -= 0.25  # as if a quarter of a second had gone by
            assert await limit.run(take) == 1
        assert limit._ends_at > time.monotonic()

    async def test_leaves_errors_of_the_call_alone(self) -> None:
        async def slow() -> None:
            raise TimeoutError("mine")

        with pytest.raises(TimeoutError, match="mine"):
            await SubmitLimit(600, "redis://x").run(slow)


async def test_a_middleware_is_called_once_though_the_store_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    class Counting(Middleware):
        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            seen.append(len(call.tasks))
            return await next(call)

    app = Scheduler(f"sqlite:///{tmp_path}/a.db", submit_timeout=60, store_timeout=0.3)
    app.use(Counting())
    await app.status()
    calls = failures_of(app, monkeypatch)
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    submitting = asyncio.ensure_future(app.submit("ship"))
    await eventually(lambda: calls, timeout=30)
    other.execute("ROLLBACK")
    other.close()
    await submitting
    assert seen == [1]
    await app.shutdown()


def test_the_default_costs_a_submit_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the store is open."""
    app = Scheduler(f"sqlite:///{tmp_path}/a.db")
    app.sync.submit("ship")
    monkeypatch.setattr("tickwork.scheduler.SubmitLimit", None)
    app.sync.submit("ship")
    app.sync.submit_many("ship", [1, 2])
    app.sync.close()
