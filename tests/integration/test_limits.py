"""Limits, breakers and switches, as workers keep them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from tests.integration.apps import Make
from tests.support.waiting import wait_until
from tickwork import RateLimited, Scheduler, TaskContext, TaskInfo
from tickwork.model.gates import MARK, Book, Switch, read_book, switch_gate, write_book
from tickwork.model.tasks import ParkReason, Status
from tickwork.observe import SubmitRejected
from tickwork.store.contract import Store
from tickwork.store.contract.gates import RESERVED
from tickwork.worker.run import Run
from tickwork.worker.worker import Worker


class Watch:
    """Counts runs at a time, and when each began."""

    def __init__(self) -> None:
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.begun: list[float] = []

    async def run(self, name: str, seconds: float = 0.02) -> None:
        self.begun.append(time.monotonic())
        self.running[name] += 1
        self.most[name] = max(self.most[name], self.running[name])
        await asyncio.sleep(seconds)
        self.running[name] -= 1


async def _store(app: Scheduler) -> Store:
    return await app._open()


async def _write(app: Scheduler, change: Callable[[Book], Book]) -> None:
    store = await _store(app)
    text = await store.marks.get(MARK)
    book = read_book(text)
    assert await store.marks.swap(MARK, text, write_book(replace(change(book), version=book.version + 1)))


async def _ended(app: Scheduler, count: int, timeout: float = 30) -> None:
    store = await _store(app)
    done = 0

    async def look() -> None:
        nonlocal done
        done = (await store.queries.stats()).statuses[Status.SUCCESS]

    await _until(look, lambda: done >= count, timeout)


async def _until(look: Callable[[], Awaitable[None]], condition: Callable[[], bool], timeout: float = 30) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        await look()
        await asyncio.sleep(0.02)


async def test_no_more_run_at_a_time_than_a_limit_allows(app: Scheduler) -> None:
    watch = Watch()

    @app.task(concurrency=2)
    async def mail() -> None:
        await watch.run("mail")

    @app.task
    async def other() -> None:
        await watch.run("other")

    for _ in range(20):
        await mail.submit()
        await other.submit()
    async with app:
        await _ended(app, 40)
    assert watch.most["mail"] == 2
    assert watch.most["other"] > 2


async def test_two_nodes_keep_one_limit(make: Make, file_url: str) -> None:
    watch = Watch()
    apps = [make(file_url) for _ in range(2)]
    for app in apps:

        @app.task("mail", concurrency=3)
        async def mail() -> None:
            await watch.run("mail")

    async with apps[0], apps[1]:
        for _ in range(40):
            await apps[0].submit("mail")
        await _ended(apps[0], 40)
    assert watch.most["mail"] == 3


async def test_each_key_has_a_limit_of_its_own(app: Scheduler) -> None:
    watch = Watch()

    @app.task(concurrency=1, per="key")
    async def mail(ctx: TaskContext, to: str) -> None:
        await watch.run(to)
        await watch.run("all")

    async with app:
        for _ in range(5):
            for to in ("a", "b", "c"):
                await mail.options(key=to).submit(to)
        await _ended(app, 15)
    assert {to: watch.most[to] for to in "abc"} == {"a": 1, "b": 1, "c": 1}
    assert watch.most["all"] > 1


async def test_no_more_begin_than_a_rate_allows(app: Scheduler) -> None:
    watch = Watch()

    @app.task(rate="50/s", burst=5)
    async def mail() -> None:
        await watch.run("mail", 0)

    async with app:
        for _ in range(60):
            await mail.submit()
        await _ended(app, 60)
    took = watch.begun[-1] - watch.begun[0]
    assert took >= (60 - 5 - 1) / 50 * 0.98, "no more than the rate and one burst"
    for at in watch.begun:
        in_a_second = sum(at <= other < at + 0.5 for other in watch.begun)
        assert in_a_second <= 25 + 5 + 2


async def test_tasks_that_are_held_do_not_keep_others_waiting(app: Scheduler) -> None:
    done: list[str] = []

    @app.task(rate="1/h", burst=1)
    async def rare() -> None:
        done.append("rare")

    @app.task
    async def plain() -> None:
        done.append("plain")

    async with app:
        handles = [await rare.submit() for _ in range(50)]
        for _ in range(20):
            await plain.submit()
        await wait_until(lambda: done.count("plain") == 20)
        assert done.count("rare") == 1
        store = await _store(app)
        found = [await store.queries.get(handle.id) for handle in handles]
        waits = [record for record in found if record is not None and not record.status.ended]
        assert len(waits) == 49
        assert all(record.attempt == 0 for record in waits)
        held = [record for record in waits if record.parked is ParkReason.LIMITED]
        assert (await app.get_task(held[0].id)).held_by == "limit"


async def test_a_breaker_opens_and_costs_no_task_a_retry_while_it_is_open(app: Scheduler) -> None:
    broken, runs = True, list[str]()

    @app.task(breaker=(3, 0.4), max_retry=9)
    async def call(ctx: TaskContext) -> None:
        runs.append(ctx.task_id)
        if broken:
            raise OSError("no answer")

    async with app:
        handles = [await call.submit() for _ in range(12)]
        store = await _store(app)
        opened: list[str] = []

        async def look() -> None:
            opened[:] = [state.name for state in await store.gates.opened()]

        await _until(look, lambda: opened == ["breaker:type:call"])
        await wait_until(lambda: len(runs) >= 14, what="some tries")
        before = len(runs)
        assert before <= 12 + 10, "one try in each timeout"
        broken = False
        await _ended(app, 12)
        infos = [await app.get_task(handle.id) for handle in handles]
        assert sum(info.retry_count for info in infos) == len(runs) - 12
        await _until(look, lambda: opened == [])


async def test_a_switch_stops_tasks_of_a_key_a_tag_and_a_type(app: Scheduler) -> None:
    done: list[str] = []

    @app.task
    async def mail(to: str) -> None:
        done.append(to)

    @app.task
    async def stopped() -> None:
        done.append("stopped")

    names = ("key:acme", "tag:customer=bad", "type:stopped")
    await _write(app, lambda book: replace(book, switches={name: Switch(1, "me", "it is broken") for name in names}))
    async with app:
        await mail.options(key="acme").submit("acme")
        await mail.options(tags={"customer": "bad"}).submit("bad")
        await stopped.submit()
        await mail.options(key="other", tags={"customer": "good"}).submit("good")
        await wait_until(lambda: done == ["good"])
        store = await _store(app)
        crowded: list[str] = []

        async def look() -> None:
            crowded[:] = sorted(name for name, _ in await store.gates.crowded(10))

        await _until(look, lambda: crowded == ["switch:key:acme", "switch:tag:customer=bad"])
        assert done == ["good"]
        await _write(app, lambda book: replace(book, switches={}))
        for name in names:
            await store.gates.reset(switch_gate(name))
        await wait_until(lambda: sorted(done) == ["acme", "bad", "good", "stopped"])


async def test_a_switch_that_was_thrown_for_a_time_is_lifted_then(app: Scheduler) -> None:
    done: list[str] = []

    @app.task
    async def mail() -> None:
        done.append("mail")

    store = await _store(app)
    switch = Switch(store.now(), "me", "for a moment", store.now() + 400)
    await _write(app, lambda book: replace(book, switches={"type:mail": switch}))
    async with app:
        await mail.submit()
        await wait_until(lambda: done == ["mail"])
        assert read_book(await store.marks.get(MARK)).switches == {}


async def test_a_task_that_was_held_until_its_deadline_does_not_run(app: Scheduler) -> None:
    done: list[str] = []

    @app.task(rate="1/h", burst=1)
    async def rare(name: str) -> None:
        done.append(name)

    async with app:
        await rare.submit("first")
        await wait_until(lambda: done == ["first"])
        late = await rare.options(expires=0.3).submit("late")
        info = await app.get_task(late.id)

        async def look() -> None:
            nonlocal info
            info = await app.get_task(late.id)

        await _until(look, lambda: info.status is Status.CANCELLED)
    assert done == ["first"]


async def test_submits_over_the_rate_are_refused_and_counted(make: Make, url: str) -> None:
    app = make(url, rate_limit=(5.0, 3))
    rejected: list[SubmitRejected] = []
    app.observe(rejected.append, SubmitRejected)

    @app.task
    async def mail() -> None: ...

    async with app:
        for _ in range(3):
            await mail.submit()
        with pytest.raises(RateLimited) as refused:
            await mail.submit()
        assert 0 < refused.value.retry_after <= 0.2
        await wait_until(lambda: [seen.types for seen in rejected] == [("mail",)])
        await asyncio.sleep(refused.value.retry_after)
        await mail.submit()
        await _ended(app, 4)


async def test_a_list_of_tasks_is_taken_whole_or_not_at_all(make: Make, url: str) -> None:
    app = make(url, rate_limit=(1.0, 10))

    @app.task
    async def mail(to: int) -> None: ...

    async with app:
        await app.submit_many("mail", range(8))
        with pytest.raises(RateLimited):
            await app.submit_many("mail", range(8))
        await _ended(app, 8)
        assert len(await app.list_tasks()) == 8


async def test_a_type_has_a_rate_of_submits_of_its_own(app: Scheduler) -> None:
    @app.task(submit_rate="1/h")
    async def rare() -> None: ...

    @app.task
    async def plain() -> None: ...

    async with app:
        await rare.submit()
        with pytest.raises(RateLimited):
            await rare.submit()
        await plain.submit()
        with pytest.raises(RateLimited):
            await asyncio.to_thread(app.sync.submit, "rare")
        await _ended(app, 2)


# --- what waits goes on as soon as it may


async def test_a_limit_of_runs_at_a_time_is_used_to_the_full(app: Scheduler) -> None:
    done: list[int] = []

    @app.task(concurrency=3)
    async def brief(number: int) -> None:
        await asyncio.sleep(0.005)
        done.append(number)

    async with app:
        await app.submit_many("brief", range(200))
        await wait_until(lambda: len(done) == 200, 20)
        claims = sum(event.kind == "task.claimed" for event in await app.events.read(limit=5000))
    assert claims <= 3 * 200, "each is claimed once to be held, and once to run; few are refused again"


@pytest.mark.parametrize("more", [{}, {"concurrency": 1000}], ids=["rate", "rate and concurrency"])
async def test_a_small_burst_does_not_slow_a_rate_down(app: Scheduler, more: Any) -> None:
    began: list[float] = []

    @app.task(rate="50/s", burst=2, **more)
    async def brief() -> None:
        began.append(time.monotonic())

    async with app:
        await app.submit_many("brief", [None] * 100)
        await wait_until(lambda: len(began) == 100, 20)
    assert began[-1] - began[0] >= 98 / 50 - 0.2


async def test_slow_runs_do_not_keep_a_rate_from_being_used(app: Scheduler) -> None:
    """There is room for all of them, and none of them ends."""
    began: list[int] = []
    over = asyncio.Event()

    @app.task(rate="20/s", burst=2, concurrency=30)
    async def slow(number: int) -> None:
        began.append(number)
        await over.wait()

    app.configure(concurrency=40)
    async with app:
        await app.submit_many("slow", range(30))
        await wait_until(lambda: len(began) == 30, 20)
        over.set()


async def test_tasks_that_were_cancelled_while_they_waited_take_no_room(app: Scheduler) -> None:
    done: list[int] = []
    go = asyncio.Event()

    @app.task(concurrency=1)
    async def mail(number: int) -> None:
        await go.wait()
        done.append(number)

    async with app:
        handles = await app.submit_many("mail", range(12))
        store = await _store(app)
        crowd: list[tuple[str, int]] = []

        async def look() -> None:
            crowd[:] = await store.gates.crowded(1)

        await _until(look, lambda: [count for _, count in crowd] == [11])
        for handle in handles[1:-1]:
            await handle.cancel()
        began = time.monotonic()
        go.set()
        await wait_until(lambda: len(done) == 2)
    assert time.monotonic() - began < RESERVED / 1000, "no room was kept for those that are gone"


async def test_a_held_task_that_is_moved_to_another_time_stays_there(app: Scheduler) -> None:
    done: list[str] = []

    @app.task(concurrency=1)
    async def mail(name: str) -> None:
        while name == "first" and "go" not in done:
            await asyncio.sleep(0.005)
        done.append(name)

    async with app:
        await mail.submit("first")
        moved = await mail.submit("moved")

        async def look() -> None:
            infos[:] = [await app.get_task(moved.id)]

        infos: list[TaskInfo] = []
        await _until(look, lambda: [info.held_by for info in infos] == ["limit"])
        await moved.reschedule(delay=36_000)
        done.append("go")
        last = await mail.submit("last")
        await last.result(10)
        assert (await app.get_task(moved.id)).status is Status.PENDING
    assert done == ["go", "first", "last"]


async def test_a_run_whose_lease_is_lost_gives_its_room_back(app: Scheduler) -> None:
    """It was ended from elsewhere, so nobody takes back what it holds."""
    done: list[str] = []
    tokens: list[str] = []

    @app.task(concurrency=1)
    async def mail(name: str, ctx: TaskContext) -> None:
        tokens.append(ctx.token)
        while name == "first":
            await asyncio.sleep(0.01)
        done.append(name)

    async with app:
        first = await mail.submit("first")
        await wait_until(lambda: tokens)
        await mail.submit("second")
        await app.update_task_status(first.id, "failed", "by hand", token=tokens[0])
        await wait_until(lambda: done == ["second"])


async def test_a_task_that_cannot_be_started_gives_its_room_back(
    app: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was let through, and fails before its run begins."""
    done: list[str] = []
    context = Worker._context

    def breaks_once(worker: Worker, run: Run, timeout: float) -> TaskContext:
        monkeypatch.setattr(Worker, "_context", context)
        raise RuntimeError("a defect")

    @app.task(concurrency=1, max_retry=0)
    async def mail(name: str, ctx: TaskContext) -> None:
        done.append(name)

    monkeypatch.setattr(Worker, "_context", breaks_once)
    async with app:
        await mail.submit("first")
        await wait_until(lambda: Worker._context is context)
        await mail.submit("second")
        await wait_until(lambda: done == ["second"])


async def test_a_deadline_that_counts_from_a_new_time_moves_along(app: Scheduler) -> None:
    done: list[str] = []

    @app.task(concurrency=5)
    async def mail(name: str) -> None:
        done.append(name)

    late = await mail.options(delay=3600, expires=3).submit("late")
    await late.reschedule(delay=0.2)
    async with app:
        await wait_until(lambda: done == ["late"])
