"""`app.sync`: the same calls for code that blocks."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.apps import FAST, ROOT, Make, eventually
from tickwork import (
    ConfigError,
    PayloadError,
    ResultTimeout,
    Scheduler,
    Status,
    Task,
    TaskCancelled,
    TaskContext,
    TaskFailed,
    TaskNotFound,
)
from tickwork.client.breakers import Breakers
from tickwork.client.dead_letters import DeadLetters
from tickwork.client.events import Events
from tickwork.client.handle import Handle
from tickwork.client.limits import Limits
from tickwork.client.queues import Queues
from tickwork.client.schedules import Schedules
from tickwork.client.switches import Switches
from tickwork.client.sync import Sync, SyncHandle
from tickwork.client.sync_parts import (
    SyncBreakers,
    SyncDeadLetters,
    SyncEvents,
    SyncLimits,
    SyncQueues,
    SyncSchedules,
    SyncSwitches,
)


@pytest.fixture
def app(make: Make, url: str) -> Scheduler:
    app = make(url)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    @app.task(max_retry=0)
    async def fail() -> None:
        raise ValueError("no")

    return app


async def test_from_several_threads(app: Scheduler) -> None:
    def work(n: int) -> int:
        handle = app.sync.submit("double", n)
        result: int = handle.result(timeout=10)
        assert app.sync.get_task(handle.id).status is Status.SUCCESS
        return result

    async with app:
        with ThreadPoolExecutor(8) as pool:
            loop = asyncio.get_running_loop()
            results = await asyncio.gather(*(loop.run_in_executor(pool, work, n) for n in range(60)))
    assert results == [2 * n for n in range(60)]


async def test_the_first_use_from_many_sides_at_once(app: Scheduler) -> None:
    """The store is opened once, whichever thread or loop comes first."""
    barrier = threading.Barrier(9)

    def work(n: int) -> str:
        barrier.wait(10)
        return app.sync.submit("double", n).id

    async def work_here() -> str:
        await asyncio.to_thread(barrier.wait, 10)
        return (await app.submit("double", 0)).id

    here = asyncio.ensure_future(work_here())
    with ThreadPoolExecutor(8) as pool:
        loop = asyncio.get_running_loop()
        there = [loop.run_in_executor(pool, work, n) for n in range(8)]
        ids = await asyncio.gather(here, *there)
    assert len(set(ids)) == 9
    assert (await app.status()).tasks == {"ready": 9}


async def test_opening_from_two_loops_at_once(make: Make, file_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make(file_url)
    opened: list[int] = []
    open_store = app._store.open

    async def slow_open() -> None:
        opened.append(1)
        await asyncio.sleep(0.1)  # so that the second comes while the first is at it
        await open_store()

    monkeypatch.setattr(app._store, "open", slow_open)
    other = asyncio.ensure_future(asyncio.to_thread(lambda: app.sync.queue_stats()))
    here = asyncio.ensure_future(app.queue_stats())
    await asyncio.gather(here, other)
    assert len(opened) >= 1


async def test_inside_a_running_loop(app: Scheduler) -> None:
    async with app:
        handle = app.sync.submit("double", 4)  # blocks this loop for a moment
        assert handle.info().id == handle.id
        with pytest.raises(RuntimeError, match=r"would stop the very event loop that.*await handle.result"):
            handle.result(5)
        assert await eventually(lambda: app.sync.get_task(handle.id).status is Status.SUCCESS)


async def test_waiting_in_another_loop_is_fine(app: Scheduler) -> None:
    async def elsewhere() -> Any:
        return app.sync.submit("double", 5).result(10)

    async with app:
        assert await asyncio.to_thread(lambda: asyncio.run(elsewhere())) == 10


async def test_from_inside_handlers(app: Scheduler) -> None:
    @app.task
    def in_thread() -> int:
        result: int = app.sync.submit("double", 6).result(10)
        return result

    @app.task
    async def on_loop() -> str:
        try:
            app.sync.submit("double", 7).result(10)
        except RuntimeError as error:
            return str(error)
        return "no error"

    async with app:
        assert await (await in_thread.submit()).result(10) == 12
        assert "the very event loop that runs the worker" in await (await on_loop.submit()).result(10)


def test_a_scheduler_that_was_not_started_is_a_client(url: str) -> None:
    app = Scheduler(url, **FAST)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    handle = app.sync.submit("double", 1, delay=60, tags={"a": "b"})
    assert handle.info().tags == {"a": "b"}
    assert [info.id for info in app.sync.list_tasks("pending")] == [handle.id]
    with pytest.raises(ResultTimeout, match="it is pending"):
        handle.result(timeout=0.01)
    handle.cancel()
    with pytest.raises(TaskCancelled):
        handle.result(timeout=1)
    assert app.sync.queue_stats().delayed_count == 0
    assert app.sync.status().running is False
    many = app.sync.submit_many("double", [1, 2, 3])
    assert len({handle.id for handle in many}) == 3
    with pytest.raises(PayloadError, match="Expected `int`, got `str`"):
        app.sync.submit("double", "x")
    with pytest.raises(TaskNotFound):
        app.sync.get_task("nobody")
    app.sync.close()


def test_every_way_to_submit_gives_a_blocking_handle(url: str) -> None:
    app = Scheduler(url, **FAST)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    for handle in (
        app.sync.submit_task(Task(type="double", payload=1, id="by-record")),
        app.sync.submit(double, 1, delay=timedelta(hours=1)),
        app.sync.submit("double", 1, cron="@daily", id="nightly"),
    ):
        assert "Sync" in repr(handle)
    assert app.sync.get_task("by-record").payload == {"n": 1}
    schedule = app.sync.schedules.get("nightly")
    assert schedule.cron == "@daily"
    app.sync.close()


async def test_dlq_schedules_and_queues(app: Scheduler) -> None:
    def work() -> None:
        handle = app.sync.submit("fail")
        with pytest.raises(TaskFailed, match="ValueError: no"):
            handle.result(10)
        assert [info.id for info in app.sync.dlq.list()] == [handle.id]
        assert app.sync.dlq.get(handle.id).id == handle.id
        assert app.sync.dlq.clear() == 1
        app.sync.schedules.put("nightly", "double", 1, cron="@daily")
        assert [schedule.id for schedule in app.sync.schedules.list()] == ["nightly"]
        app.sync.schedules.pause("nightly")
        assert app.sync.schedules.get("nightly").enabled is False
        task_id = app.sync.schedules.trigger("nightly")
        assert app.sync.get_task(task_id).type == "double"
        app.sync.schedules.delete("nightly")
        app.sync.queues.pause("slow", "note")
        assert [queue.name for queue in app.sync.queues.list() if queue.paused] == ["slow"]
        assert app.sync.queues.resume("slow") is True
        kinds = [event.kind for event in app.sync.events.read(task_id=handle.id)]
        assert kinds == ["task.submitted", "task.claimed", "task.died", "task.deleted"]
        assert app.sync.explain(task_id)
        assert [worker.id for worker in app.sync.list_workers()] == [app.id]
        assert app.sync.audit() == []

    async with app:
        await asyncio.to_thread(work)


def test_a_node_run_by_blocking_code(url: str) -> None:
    """Start, use and stop without ever writing await."""
    app = Scheduler(url, **FAST)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    app.sync.start()
    assert app.sync.submit("double", 21).result(10) == 42
    app.sync.shutdown()
    app.sync.start()
    assert app.sync.submit("double", 1).result(10) == 2
    app.sync.stop()


def test_closing_lets_go_of_thread_and_file(tmp_path: Path) -> None:
    def ours() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name.startswith("tickwork")}

    before = ours()
    app = Scheduler(f"sqlite:///{tmp_path}/tick.db", **FAST)
    app.sync.queue_stats()
    assert ours() - before, "it has threads of its own"
    app.sync.close()
    deadline = threading.Event()
    for _ in range(500):
        if ours() <= before:
            break
        deadline.wait(0.01)
    assert ours() <= before
    app.sync.queue_stats()  # and it may be used again
    app.sync.close()


def test_a_script_ends_by_itself(tmp_path: Path) -> None:
    """Nobody has to close anything for a program to end."""
    code = f"""
from tickwork import Scheduler
app = Scheduler("sqlite:///{tmp_path}/tick.db")
print(app.sync.submit("any", {{"a": 1}}).info().status)
"""
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, cwd=ROOT, check=False
    )
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "ready\n", "")


async def test_names_that_do_not_exist(app: Scheduler) -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        app.sync.nonsense  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="nonsense"):
        app.sync.dlq.nonsense  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ConfigError):
        app.sync.submit("double", 1, priority=11)


def test_a_handle_on_a_task_of_before(app: Scheduler) -> None:
    handle = app.sync.submit("double", 1, delay=60)
    again = app.sync.handle(handle.id)
    assert again.info().id == handle.id
    again.cancel()
    assert handle.info().status is Status.CANCELLED
    app.sync.close()


def coroutines_of(origin: type) -> dict[str, Any]:
    found = inspect.getmembers(origin, inspect.iscoroutinefunction)
    return {name: function for name, function in found if not name.startswith("_")}


PAIRS = [
    (Scheduler, Sync),
    (DeadLetters, SyncDeadLetters),
    (Schedules, SyncSchedules),
    (Queues, SyncQueues),
    (Limits, SyncLimits),
    (Breakers, SyncBreakers),
    (Switches, SyncSwitches),
    (Events, SyncEvents),
]


@pytest.mark.parametrize(("origin", "blocking"), PAIRS)
def test_every_coroutine_is_there_with_the_same_arguments(origin: type, blocking: type) -> None:
    expected = coroutines_of(origin)
    assert expected
    for name, function in expected.items():
        counterpart = vars(blocking)[name]
        assert not inspect.iscoroutinefunction(counterpart)
        if (blocking, name) != (Sync, "close"):  # which only lets go of the store and of the thread
            found, wanted = inspect.signature(counterpart), inspect.signature(function)
            assert list(found.parameters.values()) == list(wanted.parameters.values()), name


def test_what_a_blocking_method_is_made_of_is_the_method_of_its_name() -> None:
    for origin, blocking in PAIRS:
        for name, counterpart in vars(blocking).items():
            made_of = getattr(counterpart, "__wrapped__", None)
            assert made_of is None or made_of is getattr(origin, name), name


def test_a_function_is_submitted_from_blocking_code(app: Scheduler) -> None:
    @app.task
    async def repeat(ctx: TaskContext, text: str, times: int = 2) -> str:
        return text * times

    app.sync.start()
    try:
        assert repeat.sync.submit("ab").result(10) == "abab"
        assert repeat.sync.submit("a", times=3).result(10) == "aaa"
        assert [each.result(10) for each in repeat.sync.submit_many(["a", {"text": "b", "times": 1}])] == ["aa", "b"]
        later = repeat.options(priority=9).sync.options(delay=60).submit("a").info()
        assert (later.status, later.priority) == (Status.PENDING, 9)
        with pytest.raises(PayloadError, match="'text' is missing"):
            repeat.sync.submit()  # type: ignore[call-arg]
    finally:
        app.sync.shutdown()


def test_jobs_and_tasks_as_records_get_handles_for_blocking_code(make: Make) -> None:
    app = make("memory://")

    @app.task
    async def work(n: int) -> int:
        return n

    app.sync.start()
    try:
        assert app.sync.submit_task(Task(type="work", payload=3)).result(10) == 3
        assert app.sync.schedule_after(lambda: 5, 0).result(10) == 5
        assert app.sync.schedule(lambda: 6, datetime.now(UTC)).result(10) == 6
    finally:
        app.sync.shutdown()


def test_events_one_after_the_other(app: Scheduler) -> None:
    app.sync.start()
    try:
        handle = app.sync.submit("double", 2)
        assert handle.result(10) == 4
        begun = app.sync.events.subscribe(kinds=["task.submitted"])
        second = app.sync.submit("double", 3)
        assert next(begun).id == second.id, "it begins with the call"
        begun.close()
        followed = app.sync.events.subscribe(after=0, task_id=handle.id)
        kinds = [next(followed).kind for _ in range(3)]
        assert kinds == ["task.submitted", "task.claimed", "task.succeeded"]
        followed.close()
        with pytest.raises(StopIteration):
            next(followed)
        for event in app.sync.events.subscribe(after=0, kinds=["task.succeeded"]):
            assert event.id == handle.id
            break
        assert app.sync.events.last() > 0
    finally:
        app.sync.shutdown()


def test_a_task_is_followed_by_blocking_code(app: Scheduler) -> None:
    gate = threading.Event()

    @app.task
    def walk(ctx: TaskContext) -> None:
        ctx.logger.info("left")
        assert gate.wait(60)
        ctx.logger.info("right")
        ctx.progress(1.0)

    app.sync.start()
    try:
        handle = walk.sync.submit()
        left = handle.follow()
        while not next(left).lines:  # it waits, and then it runs
            pass
        left.close()
        with pytest.raises(StopIteration):
            next(left)
        assert handle.info().status is Status.RUNNING
        updates = handle.follow()
        seen = [next(updates)]
        gate.set()
        seen += updates
        assert [line.split(" ", 1)[1] for update in seen for line in update.lines] == ["INFO left", "INFO right"]
        assert (seen[-1].status, seen[-1].progress) == (Status.SUCCESS, 1.0)
        with pytest.raises(TaskNotFound):
            next(app.sync.handle("nobody").follow())
    finally:
        gate.set()
        app.sync.shutdown()


async def test_a_task_is_not_followed_in_the_loop_that_works(app: Scheduler) -> None:
    async with app:
        handle = app.sync.handle((await app.submit("double", 2)).id)
        with pytest.raises(RuntimeError, match=r"waiting for updates here would stop.*async for update in"):
            handle.follow()


def test_a_blocking_handle_has_all_that_a_handle_has() -> None:
    names = {name for name, value in vars(Handle).items() if not name.startswith("_") and callable(value)}
    assert names <= vars(SyncHandle).keys()
    for name in names:
        found, wanted = (inspect.signature(getattr(kind, name)).parameters for kind in (SyncHandle, Handle))
        assert list(found.values()) == list(wanted.values()), name


async def test_events_are_not_waited_for_in_the_loop_that_works(app: Scheduler) -> None:
    async with app:
        with pytest.raises(RuntimeError, match=r"waiting for events here would stop.*use `async for`"):
            next(app.sync.events.subscribe())


def sockets() -> int:
    """How many are open in this process."""
    gc.collect()
    links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return sum(os.path.islink(link) and os.readlink(link).startswith("socket:") for link in links)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_loop_for_each_request_leaves_no_connections_behind(redis_url: str) -> None:
    app = Scheduler(redis_url)
    before = sockets()
    for number in range(30):
        asyncio.run(_submit(app, number))
    assert sockets() - before <= 6, "those of one loop, or two"
    asyncio.run(app.shutdown())
    assert sockets() <= before


async def _submit(app: Scheduler, number: int) -> None:
    await app.submit("double", number)


async def test_a_shutdown_closes_the_connections_of_the_background_thread_too(redis_url: str) -> None:
    app, before = Scheduler(redis_url), sockets()
    await app.submit("double", 1)
    await asyncio.to_thread(app.sync.submit, "double", 2)
    await app.shutdown()
    await eventually(lambda: sockets() <= before, what="all connections are closed")


def test_who_waits_in_sync_is_told_when_it_is_closed(file_url: str) -> None:
    app = Scheduler(file_url)
    handle, ended = app.sync.submit("nobody"), threading.Event()

    def wait() -> None:
        try:
            handle.result(timeout=60)
        except BaseException:
            ended.set()

    threading.Thread(target=wait, daemon=True).start()
    app.sync.close()
    assert ended.wait(10)
