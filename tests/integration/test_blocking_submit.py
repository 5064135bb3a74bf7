"""`app.sync.submit` on Redis: over a connection of the calling thread, without the background thread; and when not."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.apps import doubling
from tests.support.blocking import PATIENCE, Hops, be_patient, wait_until
from tests.support.redis import Proxy, RedisServer
from tickwork import Middleware, Scheduler, TaskExists
from tickwork.client.sync import SyncHandle
from tickwork.observe import StoreCalled, TaskSubmitted
from tickwork.store.redis import RedisStore
from tickwork.store.redis.net import sockets
from tickwork.store.redis.scripts import compose


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> Hops:
    return Hops(monkeypatch)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch)


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def app(server: RedisServer) -> Iterator[Scheduler]:
    app = doubling(server.url)
    ready(app)
    yield app
    app.sync.close()


def ready(app: Scheduler) -> None:
    """Have two tasks submitted, the second of them by the short way: the store is open, and its counters have begun."""

    def is_short() -> bool:
        began = time.monotonic()
        handle = app.sync.submit("double", 1)
        if any(each.used_at >= began for each in store_of(app).core.sockets._idle):
            return True
        handle.cancel()
        app.sync.delete(handle.id)
        return False

    app.sync.submit("double", 0)
    wait_until(is_short, "a submit without the background thread")


def scripts_called(server: RedisServer) -> int:
    stats = server.info("commandstats")
    return sum(int(stats[name].partition("calls=")[2].partition(",")[0]) for name in stats if "evalsha" in name)


def clients(server: RedisServer) -> int:
    """Connections but the one that asks."""
    return len(server.command("CLIENT", "LIST").splitlines()) - 1


# --- the short way


def test_a_submit_needs_neither_the_background_thread_nor_a_second_call(
    app: Scheduler, server: RedisServer, hops: Hops
) -> None:
    before = scripts_called(server)
    assert hops.of(lambda: [app.sync.submit("double", number) for number in range(10)]) == 0
    assert scripts_called(server) - before == 10
    assert app.sync.queue_stats().normal_count == 12


def test_a_function_and_its_options(app: Scheduler, hops: Hops) -> None:
    double = app.task("twice")(lambda n: 2 * n)
    assert hops.of(lambda: double.sync.submit(1)) == 0
    assert hops.of(lambda: app.sync.submit(double, 1)) == 0
    assert hops.of(lambda: double.sync.options(queue="mail", priority=10, tags={"a": "b"}).submit(1)) == 0
    assert hops.of(lambda: app.sync.submit(double.options(id="mine"), 1)) == 0
    assert app.sync.get_task("mine").type == "twice"


def test_a_worker_runs_it_at_once(server: RedisServer, hops: Hops) -> None:
    app = doubling(server.url)
    app.sync.start()
    ready(app)
    assert hops.of(lambda: app.sync.submit("double", 1)) == 0
    assert app.sync.submit("double", 21).result(PATIENCE) == 42
    app.sync.shutdown()


def test_threads_at_the_same_time(server: RedisServer) -> None:
    app = doubling(server.url, pool_size=4)
    ready(app)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda number: app.sync.submit("double", number, id=f"it-{number}"), range(300)))
    assert app.sync.status().tasks == {"ready": 302}
    assert app.sync.audit() == []
    pool_of = store_of(app).core.sockets
    assert 1 <= len(pool_of._all) <= 4
    app.sync.close()


def test_after_the_event_loop_that_opened_the_store_has_ended(server: RedisServer, hops: Hops) -> None:
    app = doubling(server.url)

    async def use() -> None:
        await app.submit("double", 1)
        await app.submit("double", 2)

    asyncio.run(use())
    assert hops.of(lambda: app.sync.submit("double", 3, id="it")) == 0
    assert app.sync.get_task("it").status == "ready"
    app.sync.close()


# --- what takes the long way


@pytest.mark.parametrize(
    "options", [{"delay": 60}, {"dedup_key": "k"}, {"expires": 60}, {"depends_on": ["first"]}], ids=str
)
def test_options_take_the_long_way(app: Scheduler, hops: Hops, options: Any) -> None:
    app.sync.submit("double", 1, id="first")
    assert hops.of(lambda: app.sync.submit("double", 1, id="it", **options)) == 1
    assert app.sync.get_task("it").id == "it"


def test_a_schedule_takes_the_long_way(app: Scheduler) -> None:
    handle = app.sync.submit("double", 1, cron="@daily", id="nightly")
    assert handle.id == "nightly"
    assert [schedule.id for schedule in app.sync.schedules.list()] == ["nightly"]


def test_an_id_that_is_taken_is_refused_on_the_long_way(app: Scheduler, hops: Hops) -> None:
    app.sync.submit("double", 1, id="it")

    def again() -> None:
        with pytest.raises(TaskExists):
            app.sync.submit("double", 2, id="it")

    assert hops.of(again) == 1
    there = app.sync.submit("double", 2, id="it", if_exists="return")
    assert (there.id, there.created) == ("it", False)
    assert app.sync.get_task("it").payload == {"n": 1}


def test_middleware_takes_the_long_way(server: RedisServer, hops: Hops) -> None:
    seen: list[int] = []

    class Seeing(Middleware):
        async def submit(self, call: Any, next: Any) -> Any:
            seen.append(len(call.tasks))
            return await next(call)

    app = doubling(server.url)
    app.use(Seeing())
    for number in range(2):
        app.sync.submit("double", number)
    assert hops.of(lambda: app.sync.submit("double", 1)) == 1
    assert seen == [1, 1, 1]
    app.sync.close()


def test_a_durable_store_takes_the_long_way(server: RedisServer, hops: Hops) -> None:
    server.command("CONFIG", "SET", "appendonly", "yes")
    server.command("CONFIG", "SET", "appendfsync", "always")
    app = doubling(server.url, durability="disk")
    for number in range(2):
        app.sync.submit("double", number)
    assert hops.of(lambda: app.sync.submit("double", 1)) == 1
    app.sync.close()


def test_the_background_thread_is_refused(app: Scheduler) -> None:
    async def inside() -> None:
        app.sync.submit("double", 1)

    with pytest.raises(RuntimeError, match="use await there"):
        app.sync.run(inside())


# --- observers and time limits


def test_observers_are_told_as_of_any_submit(server: RedisServer, hops: Hops) -> None:
    told: list[Any] = []
    app = doubling(server.url)
    app.observe(told.append, TaskSubmitted, StoreCalled)
    ready(app)
    assert hops.of(lambda: app.sync.submit("double", 1, id="it")) == 0
    app.sync.close()
    for observer in app._observers._all:
        observer.end()
    assert [each.id for each in told if isinstance(each, TaskSubmitted)][2:] == ["it"]
    assert [each.method for each in told if isinstance(each, StoreCalled)][-1] == "submit"
    assert all(each.seconds > 0 for each in told if isinstance(each, StoreCalled))


@pytest.mark.parametrize(("store_timeout", "limit"), [(60, 15), (2, 0.5)])
def test_a_store_timeout_bounds_it(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, store_timeout: float, limit: float
) -> None:
    """If it cannot be done in this thread, the background thread has the whole time."""
    limits: list[float | None] = []
    call = sockets.SocketPool.call

    def spy(pool: Any, key: str, commands: list[bytes], most: float | None = None) -> Any:
        limits.append(most)
        return call(pool, key, commands, most)

    monkeypatch.setattr(sockets.SocketPool, "call", spy)
    app = doubling(server.url, store_timeout=store_timeout)
    ready(app)
    assert set(limits) == {limit}
    app.sync.close()


# --- faults


def store_of(app: Scheduler) -> RedisStore:
    assert isinstance(app._store, RedisStore)
    return app._store


def test_a_lost_reply_makes_one_task(server: RedisServer) -> None:
    with Proxy(server.port) as proxy:
        app = doubling(f"redis://{proxy.host}:{proxy.port}/0")
        ready(app)
        proxy.cut_replies(1, after=compose("submit_one", store_of(app).core.server.modern).sha.encode())
        assert app.sync.submit("double", 1, id="it").id == "it"
        assert proxy.cuts_left == 0
        submitted = [event for event in app.sync.events.read(0) if event.id == "it"]
        assert len(submitted) == 1
        assert app.sync.audit() == []
        app.sync.close()


def test_a_server_that_restarts(server: RedisServer, app: Scheduler, hops: Hops) -> None:
    server.kill()
    server.start()
    assert app.sync.submit("double", 1, id="after").id == "after"
    assert app.sync.get_task("after").status == "ready"
    wait_until(lambda: hops.of(lambda: app.sync.submit("double", 1)) == 0, "a submit without the background thread")


def test_a_server_that_has_forgotten_its_scripts(server: RedisServer, app: Scheduler, hops: Hops) -> None:
    server.command("SCRIPT", "FLUSH")
    assert hops.of(lambda: app.sync.submit("double", 1)) == 0


def test_a_namespace_that_was_lost(server: RedisServer, app: Scheduler) -> None:
    server.command("FLUSHALL")
    app.sync.submit("double", 1, id="after")
    assert app.sync.status().tasks == {"ready": 1}


def test_while_the_server_does_not_answer_only_the_long_way_is_tried(
    server: RedisServer, app: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets.SocketPool, "answer_time", 0.05)
    monkeypatch.setattr(sockets, "PAUSE", PATIENCE)
    server.pause()
    with ThreadPoolExecutor(1) as pool:
        submitted: Future[SyncHandle[Any]] = pool.submit(app.sync.submit, "double", 1, id="it")
        wait_until(lambda: store_of(app).core.sockets._pause_until, "the short way was given up")
        server.resume()
        assert submitted.result(PATIENCE).id == "it"
    asked = scripts_called(server)
    app.sync.submit("double", 1)
    assert scripts_called(server) == asked + 1
    assert len(store_of(app).core.sockets._all) == 0
    assert app.sync.status().tasks == {"ready": 4}


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals for threads there")
def test_an_interrupted_submit_leaves_no_reply_to_the_next(
    server: RedisServer, app: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.sync.submit("double", 1, id="known")
    main = threading.get_ident()
    server.pause()

    def waits_for_a_reply() -> bool:
        code = sys._current_frames()[main].f_code
        return code.co_filename == sockets.__file__ and code.co_name == "call"

    def interrupt() -> None:
        """Again and again: a signal that comes just before the call into the kernel does not end that."""
        wait_until(waits_for_a_reply, "the main thread waits for a reply")
        while not interrupted.wait(0.05):
            signal.pthread_kill(main, signal.SIGINT)

    def on_signal(number: int, frame: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    interrupted = threading.Event()
    interrupter = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, on_signal)  # it may be ignored
    try:
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            app.sync.submit("double", 1, id="interrupted")
        interrupter.join()
    finally:
        signal.signal(signal.SIGINT, before)
    server.resume()
    with pytest.raises(TaskExists):  # by the reply to the call before it would have been created
        app.sync.submit("double", 1, id="known")
    assert app.sync.status().tasks in ({"ready": 3}, {"ready": 4})


def test_closing_leaves_no_connection(server: RedisServer) -> None:
    app = doubling(server.url)
    ready(app)
    app.sync.submit("double", 1)
    assert clients(server) >= 1
    app.sync.close()
    wait_until(lambda: clients(server) == 0, "all connections are closed")
    app.sync.submit("double", 1, id="opened-again")
    app.sync.close()


def test_a_call_under_way_when_the_store_is_closed_closes_its_connection(
    server: RedisServer, app: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_of = store_of(app).core.sockets
    app.sync.submit("double", 1)
    server.pause()
    with ThreadPoolExecutor(1) as pool:
        submitted: Future[SyncHandle[Any]] = pool.submit(app.sync.submit, "double", 1, id="it")
        wait_until(lambda: not pool_of._idle, "the connection is in use")
        app.sync.close()
        server.resume()
        assert submitted.result(PATIENCE).id == "it"
    wait_until(lambda: clients(server) == 0, "all connections are closed")


def test_more_threads_than_connections_take_the_long_way(
    server: RedisServer, hops: Hops, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = doubling(server.url, pool_size=1)
    ready(app)
    app.sync.submit("double", 1)
    pool_of = store_of(app).core.sockets
    server.pause()
    with ThreadPoolExecutor(2) as pool:
        first: Future[SyncHandle[Any]] = pool.submit(app.sync.submit, "double", 1)
        wait_until(lambda: not pool_of._idle, "the connection is in use")
        before = hops.count
        second: Future[SyncHandle[Any]] = pool.submit(app.sync.submit, "double", 1)
        wait_until(lambda: hops.count > before, "the other one has asked the background thread")
        server.resume()
        assert {first.result(PATIENCE).id, second.result(PATIENCE).id}
    app.sync.close()
