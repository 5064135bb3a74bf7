"""`app.sync.submit` on SQLite: committed by the calling thread, without the background thread; and when not."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.apps import doubling
from tests.support.blocking import PATIENCE, Hops, wait_until
from tickwork import Middleware, Scheduler, StoreError, TaskExists, TaskNotFound
from tickwork.client.sync import SyncHandle
from tickwork.store.sqlite import SqliteStore


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> Hops:
    return Hops(monkeypatch)


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Scheduler]:
    app = doubling(sqlite_url)
    app.sync.submit("double", 0, id="first")  # opens the store
    yield app
    app.sync.close()


def store_of(app: Scheduler) -> SqliteStore:
    assert isinstance(app._store, SqliteStore)
    return app._store


def test_a_submit_is_committed_by_the_thread_that_calls(app: Scheduler, hops: Hops) -> None:
    writer = store_of(app).core.writer
    commit, threads = writer.commit, set[int]()

    def noted() -> None:
        threads.add(threading.get_ident())
        commit()

    writer.commit = noted  # type: ignore[method-assign]
    assert hops.of(lambda: [app.sync.submit("double", number) for number in range(10)]) == 0
    writer.commit = commit  # type: ignore[method-assign]
    assert threads == {threading.get_ident()}
    assert app.sync.queue_stats().normal_count == 11


OPTIONS: list[dict[str, Any]] = [
    {"delay": 60}, {"dedup_key": "k"}, {"expires": 60}, {"depends_on": ["first"]}, {"durability": "disk"},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_make_no_difference(app: Scheduler, hops: Hops, options: dict[str, Any]) -> None:
    assert hops.of(lambda: app.sync.submit("double", 1, id="it", **options)) == 0
    assert app.sync.get_task("it").id == "it"


def test_a_refusal_is_that_of_any_submit(app: Scheduler) -> None:
    with pytest.raises(TaskExists):
        app.sync.submit("double", 1, id="first")
    with pytest.raises(TaskNotFound):
        app.sync.submit("double", 1, depends_on=["nobody"])
    with pytest.raises(StoreError, match="no replicas"):
        app.sync.submit("double", 1, durability="replicated")
    assert app.sync.submit("double", 1, id="first", if_exists="return").id == "first"
    assert app.sync.audit() == []


def test_middleware_takes_the_background_thread(sqlite_url: str, hops: Hops) -> None:
    class Plain(Middleware):
        async def submit(self, call: Any, next: Any) -> Any:
            return await next(call)

    app = doubling(sqlite_url)
    app.use(Plain())
    app.sync.submit("double", 0)
    assert hops.of(lambda: app.sync.submit("double", 1)) == 1
    app.sync.close()


def test_a_limit_of_time_holds_while_another_thread_uses_the_connection(sqlite_url: str, hops: Hops) -> None:
    app = doubling(sqlite_url, store_timeout=30.0)
    app.sync.submit("double", 0)
    inside = store_of(app).core.write._inside
    with inside, ThreadPoolExecutor(1) as pool:
        waiting: Future[SyncHandle[Any]] = pool.submit(lambda: app.sync.submit("double", 1, id="it"))
        wait_until(lambda: hops.count == 2, "it was left to the background thread")
        inside.release()
        waiting.result(PATIENCE)
        inside.acquire()
    assert app.sync.get_task("it").id == "it"
    app.sync.close()


def test_a_worker_of_the_same_process_runs_it(sqlite_url: str) -> None:
    app = doubling(sqlite_url)
    app.sync.start()
    assert [app.sync.submit("double", number).result(PATIENCE) for number in (1, 21)] == [2, 42]
    app.sync.shutdown()


def test_many_threads_and_no_descriptor_is_left(sqlite_url: str) -> None:
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    app = doubling(sqlite_url)
    app.sync.submit("double", 0)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda number: app.sync.submit("double", number), range(300)))
    assert app.sync.status().tasks == {"ready": 301}
    assert app.sync.audit() == []
    app.sync.close()
    if before:
        wait_until(lambda: set(os.listdir("/proc/self/fd")) <= before, "all was closed")


def test_it_works_again_after_a_close(app: Scheduler, hops: Hops) -> None:
    app.sync.close()
    assert hops.of(lambda: app.sync.submit("double", 1)) > 0, "it opens the store"
    assert hops.of(lambda: app.sync.submit("double", 2)) == 0
