"""`app.lock`: one holder at a time, whatever becomes of the holders."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.integration.apps import Make, eventually, store_of
from tickwork import ConfigError, LeaseLost, Lock, Scheduler, TickworkError
from tickwork.clock import ManualClock
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.store.contract import Store

KEY = "task:lock:it"


@pytest.fixture
def app(make: Make, url: str, clock: ManualClock) -> Scheduler:
    return make(url, clock=clock)


async def owner(app: Scheduler) -> str | None:
    found = await (await store_of(app)).locks.holder(KEY)
    return None if found is None else found[0]


def holds(lock: Lock) -> bool:
    """A call, or a type checker would believe that it stays as it was."""
    return lock.held


async def die_holding(app: Scheduler, ttl: float) -> int:
    """A holder whose event loop ends without a release, as if its process had been killed."""

    async def take() -> int:
        lock = app.lock("it", ttl=ttl)
        assert await lock.acquire(timeout=0)
        return lock.fence

    return await asyncio.to_thread(lambda: asyncio.run(take()))


# --- holding


async def test_only_one_holds_it(app: Scheduler) -> None:
    async with app.lock("it") as lock:
        assert holds(lock)
        lock.check()
        assert await app.lock("it").acquire(timeout=0) is False
        assert await app.lock("it").acquire(timeout=0.03) is False
        assert await app.lock("it").acquire(timedelta(milliseconds=30)) is False
        assert await app.lock("other").acquire(timeout=0) is True
    assert not holds(lock)
    assert await app.lock("it").acquire(timeout=0) is True


async def test_two_schedulers_exclude_each_other(make: Make, file_url: str) -> None:
    inside = 0
    fences: list[int] = []

    async def work(app: Scheduler) -> None:
        nonlocal inside
        for _ in range(4):
            async with app.lock("it") as lock:
                inside += 1
                fences.append(lock.fence)
                await app.queue_stats()
                assert inside == 1
                inside -= 1

    apps = [make(file_url), make(file_url)]
    await asyncio.gather(*(work(app) for app in apps for _ in range(2)))
    assert len(fences) == 16
    assert fences == sorted(set(fences))


async def test_handlers_exclude_each_other(make: Make, url: str) -> None:
    app = make(url, concurrency=4)
    inside: list[int] = []
    most = 0

    @app.task
    async def report(n: int) -> None:
        nonlocal most
        async with app.lock("report"):
            inside.append(n)
            most = max(most, len(inside))
            await app.queue_stats()
            inside.remove(n)

    async with app:
        for handle in [await report.submit(n) for n in range(4)]:
            await handle.result(timeout=20)
    assert most == 1


async def test_who_waits_gets_it_when_it_is_released(app: Scheduler) -> None:
    first, second = app.lock("it"), app.lock("it")
    await first.acquire()
    waiting = asyncio.ensure_future(second.acquire())
    await eventually(lambda: second._acquiring)
    assert await first.release() is True
    assert await asyncio.wait_for(waiting, 10) is True
    assert second.fence > first.fence


async def test_it_is_renewed_while_it_is_held(app: Scheduler, clock: ManualClock) -> None:
    store = await store_of(app)

    async def renewed() -> bool:
        found = await store.locks.holder(KEY)
        assert found is not None, "it ran out"
        return found[1] == clock.now() + 900

    async with app.lock("it", ttl=0.9) as lock:
        fence = lock.fence
        for _ in range(2):
            clock.advance(0.8)
            await eventually(renewed)
        assert await app.lock("it").acquire(timeout=0) is False
        assert lock.fence == fence


async def test_a_release_ends_the_renewing(app: Scheduler) -> None:
    lock = app.lock("it", ttl=60)
    await lock.acquire()
    renewing = lock._renewing
    assert renewing is not None
    await lock.release()
    await eventually(renewing.cancelled)


async def test_it_can_be_taken_again(app: Scheduler) -> None:
    lock = app.lock("it")
    fences = []
    for _ in range(3):
        async with lock:
            fences.append(lock.fence)
    assert fences == sorted(set(fences))
    assert await lock.release() is False, "it was not held"


async def test_it_may_be_released_inside_the_block(app: Scheduler) -> None:
    async with app.lock("it") as lock:
        assert await lock.release() is True
    assert await owner(app) is None


async def test_an_error_in_the_block_releases_it(app: Scheduler) -> None:
    with pytest.raises(ValueError, match="mine"):
        async with app.lock("it"):
            raise ValueError("mine")
    assert await owner(app) is None


async def test_a_second_acquire_is_refused(app: Scheduler) -> None:
    async with app.lock("it") as lock:
        with pytest.raises(TickworkError, match="lock 'it' is held by this object"):
            await lock.acquire()
        assert lock.held
        other = app.lock("it")
        waiting = asyncio.ensure_future(other.acquire())
        await eventually(lambda: other._acquiring)
        with pytest.raises(TickworkError, match="is being acquired by this object"):
            await other.acquire(timeout=0)
        waiting.cancel()


async def test_only_the_holder_releases(app: Scheduler) -> None:
    async with app.lock("it") as lock:
        assert await app.lock("it").release() is False
        assert lock.held
        assert await owner(app) is not None


# --- what can go wrong


async def test_the_lock_of_a_dead_holder_is_taken_over(app: Scheduler, clock: ManualClock) -> None:
    dead = await die_holding(app, ttl=5)
    lock = app.lock("it")
    waiting = asyncio.ensure_future(lock.acquire())
    clock.advance(4.999)
    assert await app.lock("it").acquire(timeout=0) is False
    clock.advance(0.001)
    assert await asyncio.wait_for(waiting, 10) is True
    assert lock.fence > dead


async def test_a_loss_is_noticed(app: Scheduler, clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    async def hold() -> None:
        async with app.lock("it", ttl=0.9) as lock:
            clock.advance(0.9)
            assert await app.lock("it", ttl=60).acquire(timeout=0), "it ran out"
            await eventually(lambda: "lock it was lost" in caplog.text)
            assert not lock.held
            with pytest.raises(LeaseLost, match="'it' is not held any more"):
                lock.check()

    with pytest.raises(LeaseLost):
        await hold()
    assert await owner(app) is not None, "the next holder keeps it"


async def test_a_loss_that_nobody_noticed_is_told_at_the_end(app: Scheduler, clock: ManualClock) -> None:
    with pytest.raises(LeaseLost):
        async with app.lock("it", ttl=60):
            clock.advance(60)


async def test_a_loss_hides_no_other_error(app: Scheduler, clock: ManualClock) -> None:
    async def fail() -> None:
        async with app.lock("it", ttl=60):
            clock.advance(60)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await fail()


async def test_what_was_lost_can_be_taken_again(app: Scheduler, clock: ManualClock) -> None:
    lock = app.lock("it", ttl=0.9)
    await lock.acquire()
    first = lock.fence
    clock.advance(0.9)
    await eventually(lambda: not lock.held)
    assert await lock.acquire(timeout=0) is True
    assert lock.fence > first
    assert await lock.release() is True


async def test_its_own_clock_ends_the_trust(app: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word from the store: it may be unreachable, or this process may have slept."""
    now = [1000.0]
    monkeypatch.setattr("tickwork.client.lock.time", SimpleNamespace(monotonic=lambda: now[0]))
    async with app.lock("it", ttl=60) as lock:
        now[0] += 59.999
        assert holds(lock)
        now[0] += 0.002
        assert not holds(lock)
        with pytest.raises(LeaseLost):
            lock.check()


class SlowAnswers:
    """A store that answers after so many seconds of the lock's own clock, one for each time that it is asked."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch, *delays: float) -> None:
        self.now = 1000.0
        self._take, self._delays = store.locks.acquire, list(delays)
        monkeypatch.setattr("tickwork.client.lock.time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(store.locks, "acquire", self._lock)

    async def _lock(self, name: str, owner: str, ttl: int) -> int | None:
        fence = await self._take(name, owner, ttl)
        self.now += self._delays.pop(0)
        return fence


async def test_the_trust_counts_from_before_the_store_was_asked(
    app: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = SlowAnswers(await store_of(app), monkeypatch, 59)
    lock = app.lock("it", ttl=60)
    assert await lock.acquire() is True
    assert holds(lock)
    answers.now += 1
    assert not holds(lock)
    assert await lock.release() is True


@pytest.mark.parametrize("timeout", [None, 300])
async def test_an_answer_that_comes_after_the_ttl_is_asked_for_again(
    app: Scheduler, monkeypatch: pytest.MonkeyPatch, timeout: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    SlowAnswers(await store_of(app), monkeypatch, 60, 61, 0)
    lock = app.lock("it", ttl=60)
    assert await lock.acquire(timeout) is True
    assert lock.held
    assert caplog.text.count("lock it was given too late") == 2
    assert await lock.release() is True


@pytest.mark.parametrize("timeout", [0, 30])
async def test_an_answer_that_comes_after_ttl_and_timeout_gives_nothing(
    app: Scheduler, monkeypatch: pytest.MonkeyPatch, timeout: float
) -> None:
    SlowAnswers(await store_of(app), monkeypatch, 61)
    lock = app.lock("it", ttl=60)
    assert await lock.acquire(timeout) is False
    assert not lock.held
    assert await owner(app) is None, "the store had given it"


async def test_an_outage_that_the_lock_outlived_is_no_loss(app: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await store_of(app)
    extend, broken = store.locks.extend, True

    async def unreliable(name: str, owner: str, ttl: int) -> bool:
        if broken:
            raise StoreUnavailable("no route")
        return await extend(name, owner, ttl)

    monkeypatch.setattr(store.locks, "extend", unreliable)
    async with app.lock("it", ttl=0.3) as lock:
        await eventually(lambda: not lock.held)
        broken = False
        await eventually(lambda: lock.held)


async def test_a_store_that_is_gone_ends_the_renewing(
    app: Scheduler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def closed(*_: object) -> bool:
        raise StoreError("is closed")

    lock = app.lock("it", ttl=0.3)
    await lock.acquire()
    monkeypatch.setattr((await store_of(app)).locks, "extend", closed)
    await eventually(lambda: not lock.held)
    assert [record.message for record in caplog.records] == ["lock it cannot be renewed: is closed"]


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "in-doubt"])
async def test_a_release_that_fails_is_a_loss_only_in_doubt(
    app: Scheduler, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    async def broken(*_: object) -> bool:
        raise StoreUnavailable("no route")

    async def hold() -> None:
        async with app.lock("it", ttl=60) as lock:
            monkeypatch.setattr(store.locks, "release", broken)
            if not trusted:
                lock._trusted_until = 0

    store = await store_of(app)
    if trusted:
        await hold()
    else:
        with pytest.raises(LeaseLost):
            await hold()


@pytest.mark.parametrize("how", ["cancelled", "error"])
async def test_an_acquire_that_was_cut_short_holds_nothing(
    app: Scheduler, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The store may have given the lock before the answer got lost."""
    store = await store_of(app)
    take, given = store.locks.acquire, asyncio.Event()

    async def no_answer(name: str, owner: str, ttl: int) -> int | None:
        assert await take(name, owner, ttl) is not None
        given.set()
        if how == "error":
            raise StoreUnavailable("the line broke")
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    monkeypatch.setattr(store.locks, "acquire", no_answer)
    lock = app.lock("it")
    waiting = asyncio.ensure_future(lock.acquire())
    await given.wait()
    if how == "cancelled":
        waiting.cancel()
    with pytest.raises((asyncio.CancelledError, StoreUnavailable)):
        await waiting
    assert not lock.held
    assert await owner(app) is None


# --- what is asked for


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 129, "a/b", None, 5])
def test_bad_names_are_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match="a lock's name must be"):
        Scheduler("memory://").lock(name)


@pytest.mark.parametrize("ttl", [0, 0.0001, -1, float("nan"), "5m", True])
def test_a_ttl_is_a_time(ttl: Any) -> None:
    with pytest.raises(ConfigError, match="ttl must"):
        Scheduler("memory://").lock("it", ttl=ttl)


async def test_prefix_and_ttl_are_options(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock, lock_prefix="mine/", lock_ttl=900)
    store = await store_of(app)
    for ttl, length in ((None, 900_000), (5, 5000), (timedelta(minutes=1), 60_000)):
        async with app.lock("it", ttl=ttl):
            found = await store.locks.holder("mine/it")
        assert found is not None
        assert found[1] == clock.now() + length


async def test_a_lock_lasts_as_long_as_a_lease_unless_said(app: Scheduler, clock: ManualClock) -> None:
    async with app.lock("it"):
        found = await (await store_of(app)).locks.holder(KEY)
    assert found is not None
    assert found[1] == clock.now() + round(1000 * app.config.lease_ttl)


def test_its_options_have_an_effect(caplog: pytest.LogCaptureFixture) -> None:
    Scheduler("memory://", lock_prefix="x:", lock_ttl=5)
    assert caplog.text == ""


def test_before_it_is_acquired_there_is_no_fence() -> None:
    lock = Scheduler("memory://").lock("it")
    with pytest.raises(TickworkError, match="no fence before it is acquired"):
        _ = lock.fence
    with pytest.raises(LeaseLost, match="was not acquired"):
        lock.check()
    assert (lock.held, lock.name, repr(lock)) == (False, "it", "<Lock it>")
    assert isinstance(lock, Lock)


# --- without an event loop


def test_sync(url: str) -> None:
    app = Scheduler(url)
    with app.sync.lock("it") as lock:
        assert (lock.held, repr(lock)) == (True, "<SyncLock it held>")
        lock.check()
        other = app.sync.lock("it")
        assert other.acquire(timeout=0) is False
        assert other.release() is False
    assert not lock.held
    assert other.acquire(timeout=5) is True
    assert other.fence > lock.fence
    assert other.release() is True
    with pytest.raises(LeaseLost):
        other.check()
    app.sync.close()


def test_threads_exclude_each_other(url: str) -> None:
    app = Scheduler(url)
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(3):
            with app.sync.lock("it"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                app.sync.queue_stats()
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (most, inside) == ([1], [0])
    app.sync.close()


def test_a_loss_is_told_to_blocking_code(url: str, clock: ManualClock) -> None:
    app = Scheduler(url, clock=clock)

    def lose(error: Exception | None = None) -> None:
        with app.sync.lock("it", ttl=60):
            clock.advance(60)
            if error is not None:
                raise error

    with pytest.raises(LeaseLost):
        lose()
    with pytest.raises(ValueError, match="mine"):
        lose(ValueError("mine"))
    app.sync.close()


async def test_waiting_on_the_workers_loop_is_refused(app: Scheduler) -> None:
    async with app:
        with pytest.raises(RuntimeError, match=r"waiting for a lock here .* use `async with app.lock"):
            app.sync.lock("it").acquire()


def test_a_thread_that_is_stopped_while_it_waits_leaves_no_lock(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop strikes when the wait is over, which may be just after the lock was given."""
    app = Scheduler(url)
    lock, call = app.sync.lock("it"), app.sync.run

    def struck(work: Coroutine[Any, Any, Any]) -> Any:
        call(work)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(app.sync, "run", struck)
    with pytest.raises(KeyboardInterrupt):
        lock.acquire()
    assert not lock.held
    assert app.sync.lock("it").acquire(timeout=0) is True
    app.sync.close()
