"""Where handlers run, how they are stopped, and what a node does with those that will not stop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration import child_handlers
from tests.integration.apps import FAST, Gate, Make, eventually, facts, hold_claims, status_of, store_of
from tickwork import NotCancellable, Scheduler, Status, TaskCancelled, TaskContext, TaskFailed, TickworkError
from tickwork.host import process_started
from tickwork.model.members import Worker as Member
from tickwork.model.tasks import Lease, Spec
from tickwork.node import loop_watch
from tickwork.store.contract import Extended, Heard
from tickwork.testing import wait_for
from tickwork.worker.worker import Worker


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers that do not obey are given up after a tenth of a second."""
    monkeypatch.setattr(Worker._stop_run, "__defaults__", (0.1,))
    monkeypatch.setattr("tickwork.worker.worker.CANCEL_GRACE", 0.1)


@pytest.fixture
async def release() -> AsyncIterator[threading.Event]:
    """Ends handlers that nothing else would end, also those of a test that fails."""
    event = threading.Event()
    yield event
    event.set()


async def leaked(app: Scheduler) -> int:
    return sum(worker.leaked for worker in await app.list_workers())


def processes(app: Scheduler, *names: str) -> None:
    for name in names:
        app.registry.register(name, getattr(child_handlers, name), run_in="process")


async def said(path: Path) -> int:
    """The pid that a child wrote into the file."""
    await eventually(path.exists, what="the child has started")
    return int(path.read_text())


# --- where


async def test_where_handlers_run(app: Scheduler) -> None:
    here = threading.get_ident()

    @app.task
    async def on_loop() -> list[int]:
        return [os.getpid(), threading.get_ident()]

    @app.task
    def in_thread() -> list[int]:
        return [os.getpid(), threading.get_ident()]

    @app.task(run_in="thread")
    async def async_in_thread() -> list[int]:
        await asyncio.sleep(0)
        return [os.getpid(), threading.get_ident()]

    processes(app, "who", "who_async")
    async with app:
        assert await (await on_loop.submit()).result(10) == [os.getpid(), here]
        for function in (in_thread, async_in_thread):
            pid, thread = await (await function.submit()).result(10)
            assert pid == os.getpid()
            assert thread != here
        pids = {await (await app.submit(name)).result(20) for name in ("who", "who_async")}
        assert os.getpid() not in pids


async def test_a_sync_function_cannot_run_on_the_loop(make: Make) -> None:
    app = make("memory://")
    with pytest.raises(ValueError, match='is not async, so it cannot run in "loop"'):
        app.registry.register("it", child_handlers.who, run_in="loop")
    with pytest.raises(ValueError, match="must be a function at the top level of a module"):
        app.registry.register("it", lambda: None, run_in="process")
    with pytest.raises(ValueError, match="run_in must be one of loop, thread, process, not 'fiber'"):
        app.registry.register("it", child_handlers.who, run_in="fiber")  # type: ignore[arg-type]


async def test_an_async_function_behind_a_plain_decorator(app: Scheduler) -> None:
    """It looks like a blocking function, and what it returns turns out to be awaitable."""
    app.registry.register("here", child_handlers.behind_a_decorator)
    app.registry.register("there", child_handlers.behind_a_decorator, run_in="process")

    @app.task(timeout=0.2, max_retry=0)
    @child_handlers.plainly
    async def slow() -> None:
        await asyncio.sleep(60)

    async with app:
        assert await (await app.submit("here", 1)).result(10) == 1
        assert await (await app.submit("there", 2)).result(20) == 2
        with pytest.raises(TaskFailed, match=r"timed out after 0\.2 s"):
            await (await app.submit("slow")).result(10)


async def test_a_decorated_function_in_a_process(make: Make) -> None:
    app = make("memory://")
    app.registry.register("decorated", child_handlers.decorated.entry.function, run_in="process")
    async with app:
        handle = await app.submit("decorated", {"n": 3}, tags={"a": "b"})
        result = await handle.result(20)
        assert result["pid"] != os.getpid()
        assert {**result, "pid": 0} == {"n": 3, "pid": 0, "id": handle.id, "attempt": 1, "tags": {"a": "b"}}
        info = await handle.info()
        assert (info.progress, info.progress_note) == (0.5, "half")
        assert info.log[0].endswith("INFO in process x")


async def test_verdicts_and_errors_cross_the_process_border(app: Scheduler) -> None:
    processes(app, "fail")
    async with app:
        for how, status, attempts, text in (
            ("SystemExit", Status.DEAD, 2, "SystemExit: 3"),
            ("KeyboardInterrupt", Status.DEAD, 2, "KeyboardInterrupt"),
            ("Quit", Status.DEAD, 2, "Quit: base"),
            ("plain", Status.DEAD, 2, "ValueError: plain"),
            ("surrogate", Status.DEAD, 2, "FileNotFoundError: name \\udcff"),
            ("retry", Status.DEAD, 2, "not yet"),
            ("abort", Status.DEAD, 1, "never"),
            ("abort with a number", Status.DEAD, 1, "404"),
            ("abort with a surrogate", Status.DEAD, 1, "no file \\udc80"),
            ("abort without text", Status.DEAD, 1, "its str() raised ValueError"),
            ("own abort", Status.DEAD, 1, "aborted by the handler"),
            ("own retry", Status.DEAD, 2, "503"),
            ("result", Status.DEAD, 1, "its return value cannot be stored"),
            ("snooze", Status.PENDING, 0, ""),
            ("snooze until", Status.PENDING, 0, ""),
        ):
            handle = await app.submit("fail", how, max_retry=1)
            info = await wait_for(app, handle.id, status, timeout=20)
            assert (info.attempt, text in (info.last_error or "")) == (attempts, True), f"{how}: {info.last_error}"
        assert (await handle.info()).scheduled_at.year == 2100


# --- timeouts


async def test_a_timeout_ends_a_coroutine(app: Scheduler) -> None:
    ended: list[bool] = []

    @app.task(timeout=0.1, max_retry=1)
    async def sleepy(ctx: TaskContext) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(ctx.cancelled)

    async with app:
        handle = await sleepy.submit()
        with pytest.raises(TaskFailed, match=r"timed out after 0.1 s"):
            await handle.result(10)
        info = await handle.info()
        assert (info.attempt, ended) == (2, [True, True])
        assert info.execution_time is not None
        assert 0.1 <= info.execution_time < 2
        assert await facts(app, handle.id) == [
            "task.submitted", "task.claimed", "task.retrying", "task.due", "task.claimed", "task.died",
        ]  # fmt: skip
        assert await leaked(app) == 0


@pytest.mark.usefixtures("soon")
async def test_a_coroutine_that_swallows_its_cancellation(make: Make, url: str, release: threading.Event) -> None:
    app = make(url, concurrency=2, renew_interval=0.05)

    @app.task(timeout=0.05, max_retry=0)
    async def stubborn() -> str:
        while not release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                pass
        return "late"

    @app.task
    async def quick() -> int:
        return 1

    async with app:
        handle = await stubborn.submit()
        with pytest.raises(TaskFailed, match=r"timed out after 0\.05 s"):
            await handle.result(10)
        await eventually(lambda: leaked(app), what="the leak is reported")
        gate = Gate()

        @app.task
        async def held() -> None:
            await gate.pass_through()

        await held.submit()
        await held.submit()
        await eventually(lambda: gate.inside == 2, what="the slot of the leaked handler is free")
        gate.open()
        release.set()
        await eventually(lambda: _none_leaked(app), what="a leaked handler that ends is not counted any more")
        assert await status_of(app, handle.id) is Status.DEAD, "a late end changes nothing"
        assert await (await quick.submit()).result(10) == 1


async def _none_leaked(app: Scheduler) -> bool:
    return await leaked(app) == 0


async def test_a_timeout_frees_the_slot_of_a_stuck_thread(make: Make, url: str, release: threading.Event) -> None:
    app = make(url, concurrency=2, renew_interval=0.05)

    @app.task(timeout=0.05, max_retry=0)
    def stuck() -> None:
        release.wait(30)  # no line of Python until it returns

    @app.task
    def quick() -> int:
        return 1

    async with app:
        handle = await stuck.submit()
        with pytest.raises(TaskFailed, match=r"timed out after 0\.05 s"):
            await handle.result(10)
        assert await (await quick.submit()).result(10) == 1
        await eventually(lambda: leaked(app), what="the leak is reported")
        release.set()
        await eventually(lambda: _none_leaked(app), what="the thread has ended")


async def test_a_timeout_ends_a_thread_that_runs_python(make: Make, url: str) -> None:
    app = make(url, renew_interval=0.05)
    threads: list[threading.Thread] = []

    @app.task(timeout=0.05, max_retry=0)
    def spin() -> None:
        threads.append(threading.current_thread())
        while True:
            time.sleep(0.001)

    async with app:
        with pytest.raises(TaskFailed, match="timed out"):
            await (await spin.submit()).result(10)
        await eventually(lambda: not threads[0].is_alive(), what="the thread was stopped")


async def test_a_timeout_ends_a_coroutine_in_a_thread(make: Make, url: str) -> None:
    """Its loop waits for sockets, where no exception from outside reaches it."""
    app = make(url, concurrency=2, renew_interval=0.05)
    begun: list[str] = []  # a thread that starts late is told before it has begun
    tidied: list[str] = []

    @app.task(run_in="thread", timeout=0.8, max_retry=0)
    async def waits() -> None:
        begun.append("begun")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)  # what it has open is closed in its own loop
            tidied.append("tidied up")
            raise

    async with app:
        for handle in [await waits.submit() for _ in range(2)]:
            with pytest.raises(TaskFailed, match=r"timed out after 0\.8 s"):
                await handle.result(10)
        assert begun
        await eventually(lambda: len(tidied) == len(begun), what="both were told")
        await eventually(lambda: _none_leaked(app), what="both threads have ended")
        assert not app.exhausted


async def test_a_timeout_kills_a_busy_process(make: Make, url: str, tmp_path: Path) -> None:
    app = make(url)
    processes(app, "spin", "hold")
    async with app:
        waiting = await app.submit("hold", str(tmp_path / "other"))
        other = await said(tmp_path / "other")
        handle = await app.submit("spin", str(tmp_path / "pid"), timeout=4, max_retry=0)
        pid = await said(tmp_path / "pid")
        with pytest.raises(TaskFailed, match="timed out after 4 s"):
            await handle.result(30)
        await eventually(lambda: not process_started(pid), what="the process is gone")
        (tmp_path / "other").unlink()
        assert await waiting.result(10) == other, "its neighbour lives on"
        assert await leaked(app) == 0


async def test_no_timeout_is_no_limit(make: Make, url: str) -> None:
    app = make(url, timeout=0.02)

    @app.task(timeout=0)
    async def free(ctx: TaskContext) -> None:
        await asyncio.sleep(0.05)

    async with app:
        await (await free.submit()).result(10)


# --- cancelling what runs


async def test_a_running_task_is_cancelled_only_by_force(app: Scheduler) -> None:
    gate = Gate()

    @app.task
    async def work() -> None:
        await gate.pass_through()

    async with app:
        handle = await work.submit()
        await eventually(lambda: gate.inside)
        with pytest.raises(NotCancellable, match=r"is running; force=True \(--force\) asks its handler to stop"):
            await handle.cancel()
        assert gate.inside == 1
        await handle.cancel(force=True)
        with pytest.raises(TaskCancelled, match="cancelled by request"):
            await handle.result(10)
        assert gate.inside == 0
        story = await facts(app, handle.id)
        assert story == ["task.submitted", "task.claimed", "task.cancel_asked", "task.cancelled"]


async def test_forced_cancel_of_a_thread(app: Scheduler) -> None:
    seen: list[str] = []

    @app.task
    def polite(ctx: TaskContext) -> None:
        seen.append("started")
        while not ctx.cancelled:
            time.sleep(0.001)
        seen.append("noticed")

    async with app:
        handle = await polite.submit()
        await eventually(lambda: seen)
        await handle.cancel(force=True)
        with pytest.raises(TaskCancelled):
            await handle.result(10)


async def test_forced_cancel_of_a_coroutine_in_a_thread(app: Scheduler) -> None:
    seen: list[str] = []

    @app.task(run_in="thread")
    async def waits() -> None:
        seen.append("started")
        try:
            await asyncio.sleep(60)
        finally:
            seen.append("cancelled")

    async with app:
        handle = await waits.submit()
        await eventually(lambda: seen)
        await handle.cancel(force=True)
        with pytest.raises(TaskCancelled):
            await handle.result(10)
        await eventually(lambda: seen == ["started", "cancelled"], what="its coroutine was cancelled")


async def test_forced_cancel_of_a_process(app: Scheduler, tmp_path: Path) -> None:
    processes(app, "spin")
    async with app:
        handle = await app.submit("spin", str(tmp_path / "pid"))
        pid = await said(tmp_path / "pid")
        await handle.cancel(force=True)
        with pytest.raises(TaskCancelled):
            await handle.result(10)
        await eventually(lambda: not process_started(pid), what="the process is gone")


async def test_success_wins_over_a_late_cancel(app: Scheduler) -> None:
    @app.task
    async def deaf() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done all the same"
        return "not cancelled"

    async with app:
        handle = await deaf.submit()
        await wait_for(app, handle.id, "running")
        await handle.cancel(force=True)
        assert await handle.result(10) == "done all the same"


async def test_a_failure_after_a_cancel_is_a_cancel(app: Scheduler) -> None:
    @app.task(max_retry=5)
    async def angry() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("in the way out")

    async with app:
        handle = await angry.submit()
        await wait_for(app, handle.id, "running")
        await handle.cancel(force=True)
        with pytest.raises(TaskCancelled):
            await handle.result(10)


# --- children that die


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("segfault", "the process was killed by SIGSEGV"),
        ("kill", "the process was killed by SIGKILL"),
        ("exit", "the process called exit with status 7"),
        ("exit 0", "the process ended without a result"),
    ],
)
async def test_a_child_that_dies_fails_its_attempt_at_once(make: Make, tmp_path: Path, how: str, text: str) -> None:
    app = make("memory://")
    processes(app, "die", "hold", "who")
    async with app:
        neighbour = await app.submit("hold", str(tmp_path / "pid"))
        pid = await said(tmp_path / "pid")
        await (await app.submit("who")).result(20)  # a second child is warm
        started = time.monotonic()
        handle = await app.submit("die", how, max_retry=0)
        with pytest.raises(TaskFailed, match=text):
            await handle.result(10)
        assert time.monotonic() - started < 8, "it does not wait for the next renewal"
        (tmp_path / "pid").unlink()
        assert await neighbour.result(10) == pid
        assert (await neighbour.info()).attempt == 1


# --- handlers that raise what is no Exception


class Quit(BaseException):
    pass


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


ODD: list[tuple[BaseException, str]] = [
    (SystemExit(3), "SystemExit: 3"),
    (KeyboardInterrupt(), "KeyboardInterrupt"),
    (Quit("odd"), "Quit: odd"),
    (GeneratorExit(), "GeneratorExit"),
    (NoText(), "NoText"),
    (ExceptionGroup("both", [ValueError("a"), TypeError("b")]), "ExceptionGroup: both"),
    (FileNotFoundError(2, "gone", "name \udcff"), "FileNotFoundError"),
    (ValueError("nul \x00 and ☃"), "nul \x00 and ☃"),
    (ValueError("x" * 100_000), "ValueError: xxx"),
]


@pytest.mark.parametrize(("error", "text"), ODD, ids=[type(error).__name__ for error, _ in ODD])
@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_odd_errors_fail_the_attempt_and_not_the_node(
    app: Scheduler, run_in: str, error: BaseException, text: str
) -> None:
    if run_in == "loop":

        @app.task("odd", max_retry=1)
        async def raise_on_loop() -> None:
            raise error

    else:

        @app.task("odd", max_retry=1)
        def raise_in_thread() -> None:
            raise error

    @app.task
    async def fine() -> int:
        return 1

    async with app:
        handle = await app.submit("odd")
        with pytest.raises(TaskFailed):
            await handle.result(10)
        info = await handle.info()
        assert info.attempt == 2
        assert text in (info.last_error or "")
        assert len(info.last_error or "") <= 8000
        assert await (await fine.submit()).result(10) == 1


async def test_a_cancellation_from_inside_is_a_failure(app: Scheduler) -> None:
    @app.task(max_retry=0)
    async def entangled() -> None:
        inner = asyncio.ensure_future(asyncio.sleep(60))
        inner.cancel()
        await inner

    async with app:
        with pytest.raises(TaskFailed, match="the handler was cancelled from inside"):
            await (await entangled.submit()).result(10)


async def test_the_error_names_the_handlers_own_line(app: Scheduler) -> None:
    @app.task(max_retry=0)
    async def broken() -> None:
        raise LookupError("here")

    async with app:
        handle = await broken.submit()
        await wait_for(app, handle.id, "dead")
        error = (await handle.info()).last_error or ""
    assert error.startswith("LookupError: here\n")
    assert "test_running.py" in error
    assert "in broken" in error
    assert "worker.py" not in error, "frames of Tickwork itself are of no use to the reader"


@pytest.mark.parametrize("how", ["raise", "abort", "retry"])
async def test_the_error_tells_the_same_story_wherever_the_handler_ran(app: Scheduler, how: str) -> None:
    places = ("loop", "thread", "process", "async in a process")
    for place in places:
        function = child_handlers.load if place in ("thread", "process") else child_handlers.load_async
        run_in: Any = "process" if "process" in place else place
        app.registry.register(place.replace(" ", "-"), function, run_in=run_in, max_retry=0)
    stories = {}
    async with app:
        for place in places:
            handle = await app.submit(place.replace(" ", "-"), how)
            await wait_for(app, handle.id, "dead")
            stories[place] = (await handle.info()).last_error or ""
    for place, text in stories.items():
        assert "KeyError: 'the missing key'" in text, place
        for own in ("worker.py", "local.py", "child.py", "runners.py"):
            assert own not in text, place
    assert stories["loop"].splitlines()[0] == {
        "raise": "Broken: could not load", "abort": "cannot be loaded", "retry": "cannot be loaded now"
    }[how]  # fmt: skip
    assert stories["loop"] == stories["async in a process"]
    assert stories["thread"] == stories["process"]
    assert ("while loading orders" in stories["process"]) == (how == "raise")


async def test_the_real_reason_of_a_task_group_is_told(app: Scheduler) -> None:
    @app.task(max_retry=0)
    async def fan_out() -> None:
        async def part() -> None:
            raise ValueError("the real reason")

        async with asyncio.TaskGroup() as group:
            group.create_task(part())

    async with app:
        with pytest.raises(TaskFailed, match="the real reason"):
            await (await fan_out.submit()).result(10)


# --- tasks that cannot be started


async def test_a_task_that_cannot_be_prepared_ends_and_the_worker_goes_on(
    make: Make, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = make(url)

    @app.task
    async def work(ctx: TaskContext) -> int:
        return ctx.attempt

    store = await store_of(app)
    await store.tasks.submit([Spec(id="odd", type="work", nonce="n", timeout=1e12, max_retry=5)])
    async with app:
        info = await wait_for(app, "odd", "dead")
        assert (info.attempt, (info.last_error or "").partition(":")[0]) == (1, "the task could not be started")
        assert await facts(app, "odd") == ["task.submitted", "task.claimed", "task.died"]
        assert await (await work.submit()).result(10) == 1
        assert not app.exhausted
    assert "task odd (work) could not be started" in caplog.text


# --- run() where it cannot work


async def test_run_inside_a_loop_is_refused_before_anything_starts(make: Make, url: str) -> None:
    app = make(url)
    with pytest.raises(TickworkError, match=r"here one runs already; use `async with app:`"):
        app.run()
    assert not (await app.status()).running


async def test_run_outside_of_the_main_thread_is_refused_before_anything_starts(make: Make, url: str) -> None:
    app = make(url)
    with pytest.raises(TickworkError, match=r"signals, which only the main thread gets; .* app\.sync\.start"):
        await asyncio.to_thread(app.run)
    async with app:
        assert (await app.status()).running, "and it can still be started"


# --- the heart


async def test_how_busy_a_worker_is_is_known_long_before_its_next_beat(make: Make, url: str) -> None:
    app = make(url, lease_ttl=120, renew_interval=60, concurrency=2)
    gate = Gate()

    @app.task
    async def work() -> None:
        await gate.pass_through()

    async def running() -> int:
        (worker,) = await app.list_workers()
        return worker.running

    async def is_busy() -> bool:
        return await running() == 2

    async def is_idle() -> bool:
        return await running() == 0

    async with app:
        assert await running() == 0
        for _ in range(2):
            await work.submit()
        await eventually(is_busy)
        gate.open()
        await eventually(is_idle)


def block(until: Callable[[], object], seconds: float) -> None:
    """As a handler does that calls what is not async."""
    deadline = time.monotonic() + seconds
    while not until() and time.monotonic() < deadline:
        time.sleep(0.01)


async def test_a_handler_that_blocks_the_loop_is_named_once(
    make: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_watch, "PATIENCE", 0.1)
    app = make("memory://")

    def warnings() -> list[str]:
        return [record.getMessage() for record in caplog.records if "event loop" in record.getMessage()]

    @app.task
    async def blocks() -> None:
        block(warnings, 10)
        block(lambda: False, 0.5)  # for several more looks

    @app.task
    async def awaits() -> None:
        await asyncio.sleep(0.5)

    async with app:
        await (await awaits.submit()).result(10)
        assert warnings() == []
        handle = await blocks.submit()
        await handle.result(20)
        await (await awaits.submit()).result(10)
    (warning,) = warnings()
    assert warning.startswith(f"task {handle.id} (blocks) keeps the event loop busy for more than 0.1 s, in ")
    assert "test_running.py:" in warning
    assert "block()" in warning, "the innermost line of the user's own code"


async def test_a_blocked_loop_that_no_handler_blocks_is_told_too(
    make: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_watch, "PATIENCE", 0.1)
    app = make("memory://")
    gate = Gate()

    @app.task
    async def work() -> None:
        await gate.pass_through()

    def told() -> list[str]:
        return [record.getMessage() for record in caplog.records if "has not answered" in record.getMessage()]

    async with app:
        await work.submit()
        await eventually(lambda: gate.inside)
        block(told, 10)
        gate.open()
    (line,) = told()
    assert "block()" in line


@asynccontextmanager
async def node_in_a_thread(url: str, **options: Any) -> AsyncIterator[Scheduler]:
    """A second node with an event loop of its own, which the test cannot block."""
    app = Scheduler(url, **{**FAST, **options})
    started: concurrent.futures.Future[asyncio.Event] = concurrent.futures.Future()

    async def run() -> None:
        stop = asyncio.Event()
        async with app:
            started.set_result(stop)
            await stop.wait()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    stop = await asyncio.wrap_future(started)
    try:
        yield app
    finally:
        loop.call_soon_threadsafe(stop.set)
        await asyncio.to_thread(thread.join)
        loop.close()


async def test_a_handler_that_blocks_the_loop_keeps_its_lease(make: Make, file_url: str) -> None:
    short: dict[str, Any] = {"lease_ttl": 1.2, "renew_interval": 0.3}
    ran: list[float] = []

    async with node_in_a_thread(file_url, queues=["none"], **short) as leader:
        await eventually(lambda: leader._node and leader._node.candidate.leads)
        app = make(file_url, **short)

        @app.task(timeout=30)
        async def block() -> str:
            ran.append(time.monotonic())
            time.sleep(2.5)  # noqa: ASYNC251 - the point of this test
            return "done"

        async with app:
            handle = await block.submit()
            assert await handle.result(10) == "done"
            info = await handle.info()
            assert (len(ran), info.attempt, info.losses) == (1, 1, 0)
            assert await facts(app, handle.id) == ["task.submitted", "task.claimed", "task.succeeded"]
            workers = await app.list_workers()
            assert all(worker.lost_at is None for worker in workers)


async def test_a_worker_is_a_member_for_no_longer_than_its_leases_last(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a worker that is killed would count as cut off for a moment, and no loss would be counted."""
    monkeypatch.setattr("tickwork.node.heart.SHOW_INTERVAL", 0.01)
    app = make("memory://", lease_ttl=30, renew_interval=0.5)
    gate, store = Gate(), await store_of(app)
    beat, extend, calls = store.members.beat, store.tasks.extend, list[tuple[str, int | None]]()

    async def seen_beat(worker: Member, ttl: int | None = None) -> Heard:
        calls.append(("beat", ttl))
        return await beat(worker, ttl)

    async def seen_extend(leases: list[Lease], lease_ttl: int) -> list[Extended]:
        calls.append(("extend", lease_ttl))
        return await extend(leases, lease_ttl)

    monkeypatch.setattr(store.members, "beat", seen_beat)
    monkeypatch.setattr(store.tasks, "extend", seen_extend)
    monkeypatch.setattr(store, "sibling", lambda: store)

    @app.task
    async def work() -> None:
        await gate.pass_through()

    async with app:
        await work.submit()
        await eventually(lambda: [name for name, _ in calls].count("extend") >= 2, what="its lease was renewed twice")
        gate.open()
    assert calls[0] == ("beat", None), "it joins before it has any lease"
    behind = [name for (before, _), (name, _) in itertools.pairwise(calls) if before == "extend"]
    assert set(behind) == {"beat"}, "it renews first, then it beats"
    assert max(ttl or 0 for name, ttl in calls if name == "beat") <= 28_500, "by that it is a member for less"
    shown = [name for (before, _), (name, _) in itertools.pairwise(calls) if before != "extend" and name == "beat"]
    assert shown, "a worker that became busy says so at once"


async def test_a_worker_without_a_heart_loses_its_task(make: Make, file_url: str) -> None:
    """The other side of the test before: were nobody beating, the lease would run out and the task start again."""
    short: dict[str, Any] = {"lease_ttl": 0.5, "renew_interval": 0.1}
    gate = Gate()
    async with node_in_a_thread(file_url, queues=["none"], **short) as leader:
        await eventually(lambda: leader._node and leader._node.candidate.leads)
        app = make(file_url, **short)

        @app.task
        async def work() -> str:
            await gate.pass_through()
            return "done"

        async with app:
            handle = await work.submit()
            await eventually(lambda: gate.entered == 1)
            assert app._node is not None
            assert app._node.heart is not None
            await app._node.heart.stop()
            await eventually(lambda: gate.entered == 2, what="it was taken back and started again")
            gate.open()
            assert await handle.result(10) == "done"
            info = await handle.info()
            assert info.attempt == 1
            story = await facts(app, handle.id)
            assert "task.lost" in story
            assert story.count("task.succeeded") == 1


# --- slots


@pytest.mark.parametrize("run_in", ["loop", "thread"])
async def test_a_task_that_comes_back_here_stops_its_first_run(make: Make, url: str, run_in: str) -> None:
    """It was taken back from this very node, which claims it again before it has heard of that."""
    app = make(url, concurrency=2)
    inside: list[int] = []
    starts: list[int] = []

    async def hold(ctx: TaskContext) -> None:
        starts.append(ctx.fence)
        inside.append(ctx.fence)
        try:
            await asyncio.sleep(60)
        finally:
            inside.remove(ctx.fence)

    def hold_in_thread(ctx: TaskContext) -> None:
        starts.append(ctx.fence)
        inside.append(ctx.fence)
        try:
            while not ctx.cancelled:
                time.sleep(0.005)
        finally:
            inside.remove(ctx.fence)

    app.registry.register("hold", hold if run_in == "loop" else hold_in_thread)
    async with app:
        handle = await app.submit("hold", timeout=60)
        await eventually(lambda: inside)
        store = await store_of(app)
        await store.tasks.reclaim(10, gone=(app.id,))
        await eventually(lambda: len(starts) == 2)
        await eventually(lambda: inside == starts[1:], what="the first run has ended, the second goes on")
        assert (await handle.info()).status is Status.RUNNING
        await handle.cancel(force=True)
        await eventually(lambda: not inside)


@pytest.mark.parametrize("worker_count", [1, 2])
async def test_slots_are_used_and_never_exceeded(make: Make, url: str, worker_count: int) -> None:
    app = make(url, concurrency=3, worker_count=worker_count)
    gate = Gate()

    @app.task
    async def work() -> None:
        await gate.pass_through()

    async with app:
        handles = await work.submit_many([None] * 40)
        await eventually(lambda: gate.inside == 3 * worker_count)
        running = (await app.list_tasks("running")).items
        by_worker = [info.worker_id or "" for info in running]
        workers = await app.list_workers()
        assert sorted(by_worker) == sorted(worker.id for worker in workers for _ in range(3))
        assert len(workers) == worker_count
        assert (await app.queue_stats()).worker_count == worker_count
        gate.open()
        for handle in handles:
            await handle.result(10)
    assert gate.most == 3 * worker_count
    assert gate.entered == 40


async def test_threads_never_exceed_the_slots(make: Make, url: str) -> None:
    app = make(url, concurrency=3)
    lock, inside, most = threading.Lock(), [0], [0]

    @app.task
    def work() -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.005)
        with lock:
            inside[0] -= 1

    async with app:
        for handle in await work.submit_many([None] * 30):
            await handle.result(10)
    assert most[0] == 3


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_as_many_leaked_as_slots_drains_the_node(
    make: Make, url: str, kind: str, release: threading.Event
) -> None:
    app = make(url, concurrency=2, renew_interval=0.05)

    if kind == "thread":

        @app.task("stuck", timeout=0.05, max_retry=0)
        def stuck() -> None:
            release.wait(30)

    else:

        @app.task("stuck", timeout=0.05, max_retry=0)
        async def stuck_on_loop() -> None:
            while not release.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    pass

    @app.task
    async def quick() -> int:
        return 1

    async with app:
        first = await app.submit("stuck")
        await wait_for(app, first.id, "dead")
        assert await (await quick.submit()).result(10) == 1, "one leak of two slots does no harm"
        second = await app.submit("stuck")
        await wait_for(app, second.id, "dead")
        await asyncio.wait_for(app.wait_stopped(), 5)
        assert app.exhausted
        late = await quick.submit()
        with pytest.raises(TimeoutError):
            await late.result(0.3)
        assert await status_of(app, late.id) is Status.READY, "a node without a sound slot takes no more work"
        release.set()
        assert await late.result(10) == 1, "when the stuck ones have ended, it goes on"


@pytest.mark.usefixtures("soon")
async def test_a_claim_that_arrives_when_every_slot_is_stuck_is_given_back(
    make: Make, url: str, release: threading.Event
) -> None:
    app = make(url, concurrency=2)
    arrived, go_on = hold_claims(app, "quick")
    ran: list[int] = []

    async def stuck() -> None:
        while not release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                pass

    app.task("first", timeout=0.05, max_retry=0)(stuck)
    app.task("second", timeout=0.5, max_retry=0)(stuck)

    @app.task
    async def quick() -> None:
        ran.append(1)

    async with app:
        first, second = await app.submit("first"), await app.submit("second")
        await wait_for(app, first.id, "dead")
        late = await quick.submit()
        await asyncio.wait_for(arrived.wait(), 10)
        await asyncio.wait_for(app.wait_stopped(), 10)
        go_on.set()
        await wait_for(app, second.id, "dead")
        await wait_for(app, late.id, "ready")
        release.set()
        await late.result(10)
    assert ran == [1]


@pytest.mark.usefixtures("soon")
async def test_threads_that_obey_are_no_leak(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make("memory://", concurrency=1, scan_interval=30)
    counted: list[int] = []
    check = Worker.check_leaks

    def count_and_check(worker: Worker) -> None:
        counted.append(worker.leaked)
        check(worker)

    monkeypatch.setattr(Worker, "check_leaks", count_and_check)

    @app.task(timeout=0.05, max_retry=0)
    def spin() -> None:
        while True:
            time.sleep(0.001)

    async with app:
        for _ in range(3):
            with pytest.raises(TaskFailed):
                await (await spin.submit()).result(10)
            await eventually(lambda: _no_leaks(app), what="the thread has obeyed")
        assert app._node is not None
        for worker in app._node.workers:
            worker.check_leaks()
        assert set(counted) == {0}
        assert not app.exhausted


async def test_a_thread_that_tidies_up_is_no_leak_at_a_renewal(make: Make, release: threading.Event) -> None:
    app = make("memory://", concurrency=1)
    tidying = threading.Event()

    @app.task(run_in="thread", timeout=0.05, max_retry=0)
    async def tidy() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            tidying.set()
            while not release.is_set():
                await asyncio.sleep(0.001)
            raise

    async with app:
        handle = await tidy.submit()
        await eventually(tidying.is_set, what="the handler was asked to stop")
        assert app._node is not None
        for worker in app._node.workers:
            assert worker.leaked == 1
            worker.renewed([], [])  # what each heartbeat does
        release.set()
        with pytest.raises(TaskFailed, match="timed out"):
            await handle.result(10)
        assert not app.exhausted


async def _no_leaks(app: Scheduler) -> bool:
    assert app._node is not None
    return not any(worker.leaked for worker in app._node.workers)


# --- shutdown


async def test_shutdown_waits_for_what_runs(make: Make, url: str) -> None:
    app = make(url)
    gate = Gate()

    @app.task
    async def work() -> str:
        await gate.pass_through()
        return "done"

    await app.start()
    first, second = await work.submit(), await work.options(delay=0.05).submit()
    await eventually(lambda: gate.inside == 2)
    third = await work.submit()
    await eventually(lambda: gate.inside == 3)
    stopping = asyncio.ensure_future(app.shutdown(timeout=10))
    await eventually(lambda: app._node is None)
    late = await work.submit()
    assert not stopping.done()
    gate.open()
    await asyncio.wait_for(stopping, 2)
    for handle in (first, second, third):
        assert await status_of(app, handle.id) is Status.SUCCESS
    assert await status_of(app, late.id) is Status.READY, "a node that stops takes no more work"
    assert gate.entered == 3
    assert await app.list_workers() == []


@pytest.mark.parametrize("kind", ["loop", "stubborn", "thread", "process"])
async def test_shutdown_gives_back_what_does_not_end(
    make: Make, url: str, tmp_path: Path, kind: str, release: threading.Event
) -> None:
    app = make(url)
    entered = threading.Event()
    pid = tmp_path / "pid"

    if kind == "loop":

        @app.task("work", max_retry=0)
        async def on_loop() -> None:
            entered.set()
            await asyncio.sleep(60)

    elif kind == "stubborn":

        @app.task("work", max_retry=0)
        async def stubborn() -> None:
            entered.set()
            while not release.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    pass

    elif kind == "thread":

        @app.task("work", max_retry=0)
        def in_thread() -> None:
            entered.set()
            release.wait(30)

    else:
        app.registry.register("work", child_handlers.spin, run_in="process", max_retry=0)

    await app.start()
    handle = await app.submit("work", str(pid) if kind == "process" else None)
    await eventually(lambda: pid.exists() or entered.is_set())
    started = time.monotonic()
    await app.shutdown(timeout=1)
    took = time.monotonic() - started
    release.set()
    info = await app.get_task(handle.id)
    assert (info.status, info.attempt, info.losses, info.last_error) == (Status.READY, 0, 0, None)
    assert (await facts(app, handle.id))[-1] == "task.released"
    assert 0.4 < took < 10, "a handler must not hold shutdown past the grace"
    if kind == "process":
        await eventually(lambda: not process_started(int(pid.read_text())))


async def test_work_that_was_given_back_starts_first(make: Make, url: str) -> None:
    app = make(url, concurrency=1)
    order: list[str] = []
    gate = Gate()

    @app.task
    async def work(name: str, ctx: TaskContext) -> None:
        order.append(f"{name} {ctx.attempt}")
        if order == ["first 1"]:
            await gate.pass_through()

    await app.start()
    first = await work.submit("first")
    await eventually(lambda: gate.inside)
    second = await work.submit("second")
    await app.shutdown(timeout=0.1)
    await app.start()
    await first.result(10)
    await second.result(10)
    assert order == ["first 1", "first 1", "second 1"]


async def test_starting_again_does_not_double_anything(make: Make, url: str, caplog: pytest.LogCaptureFixture) -> None:
    app = make(url)

    @app.task
    async def work() -> int:
        return 1

    with caplog.at_level("INFO", "tickwork"):
        for _ in range(3):
            async with app:
                await (await work.submit()).result(10)
    completed = [record for record in caplog.records if record.getMessage().startswith("Task completed")]
    assert len(completed) == 3
    with pytest.raises(Exception, match="has been started already"):
        async with app:
            await app.start()


async def test_a_stop_right_after_the_start(app: Scheduler) -> None:
    for _ in range(3):
        async with app:
            pass
    await app.stop()
    await app.close()
    assert await app.list_workers() == []


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
async def test_a_shutdown_without_grace(make: Make, url: str) -> None:
    app = make(url)
    gate = Gate()

    @app.task
    async def work() -> None:
        await gate.pass_through()

    await app.start()
    handle = await work.submit()
    await eventually(lambda: gate.inside)
    started = time.monotonic()
    await app.shutdown(timeout=0)
    assert time.monotonic() - started < 10, "the usual grace is longer"
    assert await status_of(app, handle.id) is Status.READY
