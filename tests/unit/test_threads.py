from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable

import pytest
import uvloop

from tests.support.waiting import wait_until
from tickwork.executors import threads
from tickwork.executors.threads import ThreadPool, ThreadStop

LIMIT = 4


@pytest.fixture
async def pool() -> AsyncIterator[ThreadPool]:
    pool = ThreadPool(LIMIT, "test-threads")
    yield pool
    pool.close()


async def cancelled(task: asyncio.Task[object]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Gate:
    """Work that has begun, and goes on until it is let go: `Lock.acquire` cannot be interrupted."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.exit = threading.Lock()
        self.exit.acquire()
        self.thread: threading.Thread | None = None

    def work(self) -> str:
        self.thread = threading.current_thread()
        self.entered.set()
        self.exit.acquire()
        return "let go"


def hold_the_loop_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


async def enter(pool: ThreadPool, gate: Gate) -> asyncio.Task[object]:
    task: asyncio.Task[object] = asyncio.create_task(pool.run(gate.work))
    await wait_until(gate.entered.is_set, what="the work has begun")
    return task


async def test_gives_the_result(pool: ThreadPool) -> None:
    assert await pool.run(lambda: threading.current_thread().name) == "test-threads"


async def test_raises_what_the_work_raised(pool: ThreadPool) -> None:
    def fail() -> None:
        raise LookupError("not there")

    with pytest.raises(LookupError, match="not there"):
        await pool.run(fail)
    assert await pool.run(lambda: 1) == 1


async def test_a_stop_iteration_does_not_hang(pool: ThreadPool) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await pool.run(lambda: next(iter(())))


async def test_the_last_thread_that_became_idle_is_reused_first(pool: ThreadPool) -> None:
    gates = [Gate(), Gate(), Gate()]
    tasks = [await enter(pool, gate) for gate in gates]
    for gate, task in zip(gates, tasks, strict=True):
        gate.exit.release()
        await task
    last = gates[-1].thread
    assert [await pool.run(threading.current_thread) for _ in range(5)] == [last] * 5


async def test_grows_only_to_what_is_needed(pool: ThreadPool) -> None:
    seen = {await pool.run(threading.get_ident) for _ in range(20)}
    assert len(seen) == 1


async def test_no_more_than_limit_work_at_once(pool: ThreadPool) -> None:
    gates = [Gate() for _ in range(LIMIT)]
    tasks = [await enter(pool, gate) for gate in gates]
    extra = Gate()
    last = asyncio.create_task(pool.run(extra.work))
    gates[-1].exit.release()
    await tasks[-1]
    await wait_until(extra.entered.is_set, what="the work that waited has begun")
    assert extra.thread is gates[-1].thread
    for gate in [*gates[:-1], extra]:
        gate.exit.release()
    await asyncio.gather(last, *tasks)


async def test_more_threads_work_at_once_when_the_limit_is_raised() -> None:
    pool, gates = ThreadPool(1, "resized"), [Gate(), Gate(), Gate()]
    first = await enter(pool, gates[0])
    waiting = [asyncio.create_task(pool.run(gate.work)) for gate in gates[1:]]
    pool.resize(3)
    for gate in gates[1:]:
        await wait_until(gate.entered.is_set, what="the work that waited has begun")
    for gate in gates:
        gate.exit.release()
    await asyncio.gather(first, *waiting)
    pool.close()


async def test_threads_that_are_too_many_finish_their_work_and_end(pool: ThreadPool) -> None:
    gates = [Gate() for _ in range(LIMIT)]
    tasks = [await enter(pool, gate) for gate in gates]
    gates[0].exit.release()
    await tasks[0]
    pool.resize(1)
    later = Gate()
    last = asyncio.create_task(pool.run(later.work))
    for gate in gates[1:]:
        assert not later.entered.is_set()
        gate.exit.release()
    assert set(await asyncio.gather(*tasks)) == {"let go"}
    await wait_until(later.entered.is_set, what="the work that waited has begun")
    await wait_until(lambda: sum(gate.thread.is_alive() for gate in gates if gate.thread) == 1, what="the others ended")
    later.exit.release()
    await last


async def test_what_waits_is_served_in_order() -> None:
    pool, order = ThreadPool(1, "single"), list[int]()

    def note(number: int) -> Callable[[], None]:
        return lambda: order.append(number)

    await asyncio.gather(*(pool.run(note(number)) for number in range(50)))
    assert order == list(range(50))
    pool.close()


async def test_a_cancelled_pure_python_loop_ends(pool: ThreadPool) -> None:
    ended: list[str] = []
    started = threading.Event()

    def spin() -> None:
        started.set()
        try:
            while True:
                pass
        except Exception:
            ended.append("Exception")
        except ThreadStop:
            ended.append("ThreadStop")
            raise

    task: asyncio.Task[object] = asyncio.create_task(pool.run(spin))
    await wait_until(started.is_set)
    await cancelled(task)
    await wait_until(lambda: pool.leaked == 0, what="the loop has ended")
    assert ended == ["ThreadStop"]


async def test_a_timeout_ends_the_wait_at_once_and_counts_a_blocked_thread_until_it_ends(
    pool: ThreadPool,
) -> None:
    gate = Gate()
    task = await enter(pool, gate)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(task, 0.01)
    assert pool.leaked == 1
    gate.exit.release()
    await wait_until(lambda: pool.leaked == 0, what="the abandoned thread has ended")
    assert gate.thread is not None
    assert not gate.thread.is_alive()


async def test_a_leaked_thread_does_not_count_against_the_limit(pool: ThreadPool) -> None:
    gates = [Gate() for _ in range(LIMIT)]
    tasks = [await enter(pool, gate) for gate in gates]
    waiting = asyncio.create_task(pool.run(threading.current_thread))
    await cancelled(tasks[0])
    thread = await waiting  # while all of the first threads are still stuck
    assert thread not in {gate.thread for gate in gates}
    assert pool.leaked == 1
    for gate in gates:
        gate.exit.release()
    assert await asyncio.gather(*tasks[1:]) == ["let go"] * (LIMIT - 1)
    await wait_until(lambda: pool.leaked == 0)


async def test_an_abandoned_thread_is_not_reused(pool: ThreadPool) -> None:
    gate = Gate()
    await cancelled(await enter(pool, gate))
    gate.exit.release()
    await wait_until(lambda: pool.leaked == 0)
    assert await pool.run(threading.current_thread) is not gate.thread


async def test_work_that_swallows_its_stop_still_retires_its_thread(pool: ThreadPool) -> None:
    started, swallowed, gate = threading.Event(), threading.Event(), Gate()

    def stubborn() -> None:
        started.set()
        try:
            while True:
                pass
        except BaseException:
            swallowed.set()
        gate.work()

    task: asyncio.Task[object] = asyncio.create_task(pool.run(stubborn))
    await wait_until(started.is_set)
    await cancelled(task)
    await wait_until(swallowed.is_set)
    assert pool.leaked == 1
    gate.exit.release()
    await wait_until(lambda: pool.leaked == 0)


async def test_a_stop_never_reaches_other_work(pool: ThreadPool) -> None:
    """Cancel at the very moment when work ends, many times: whoever is not cancelled must not be struck."""
    struck: list[BaseException] = []

    def short() -> int:
        total = 0
        for number in range(2000):
            total += number
        return total

    async def watched() -> None:
        try:
            assert await pool.run(short) == 1999000
        except ThreadStop as error:
            struck.append(error)

    for round_ in range(400):
        doomed = asyncio.create_task(pool.run(short))
        innocent = [asyncio.create_task(watched()) for _ in range(2)]
        await asyncio.sleep((round_ % 8) * 0.00004)
        doomed.cancel()
        await asyncio.gather(doomed, return_exceptions=True)
        await asyncio.gather(*innocent, watched())
    assert not struck
    await wait_until(lambda: pool.leaked == 0)


async def test_a_stop_that_comes_before_the_work_has_begun_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that was just started has not reached its own code yet, where a stop is expected."""
    go, ran = threading.Event(), list[str]()
    honest = threads._Thread.run

    def late(thread: threads._Thread) -> None:
        go.wait(10)
        honest(thread)

    monkeypatch.setattr(threads._Thread, "run", late)
    problems: list[object] = []
    monkeypatch.setattr(threading, "excepthook", problems.append)
    pool = ThreadPool(1, "early")
    task: asyncio.Task[object] = asyncio.create_task(pool.run(lambda: ran.append("ran")))
    await asyncio.sleep(0)
    await cancelled(task)
    go.set()
    await wait_until(lambda: pool.leaked == 0, what="the thread has ended")
    assert (problems, ran) == ([], [])
    pool.close()


async def test_work_cancelled_before_its_turn_never_runs(pool: ThreadPool) -> None:
    gates = [Gate() for _ in range(LIMIT)]
    tasks = [await enter(pool, gate) for gate in gates]
    ran: list[str] = []
    first: asyncio.Task[object] = asyncio.create_task(pool.run(lambda: ran.append("first")))
    second = asyncio.create_task(pool.run(lambda: ran.append("second")))
    await asyncio.sleep(0)
    await cancelled(first)
    assert pool.leaked == 0
    for gate in gates:
        gate.exit.release()
    await asyncio.gather(second, *tasks)
    assert ran == ["second"]


async def test_work_that_ends_when_it_is_asked_to_is_not_struck(pool: ThreadPool) -> None:
    gate, ended = Gate(), list[str]()

    def work() -> None:
        try:
            gate.work()
            ended.append("by itself")
        except ThreadStop:
            ended.append("struck")

    task: asyncio.Task[object] = asyncio.create_task(pool.run(work, stop=gate.exit.release))
    await wait_until(gate.entered.is_set)
    await cancelled(task)
    await wait_until(lambda: pool.leaked == 0, what="the work has ended")
    assert ended == ["by itself"]


async def test_work_that_goes_on_though_it_was_asked_to_stop_is_struck(
    pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "STOP_GRACE", 0.05)
    started, asked = threading.Event(), threading.Event()

    def spin() -> None:
        started.set()
        while True:
            asked.is_set()

    task: asyncio.Task[object] = asyncio.create_task(pool.run(spin, stop=asked.set))
    await wait_until(started.is_set)
    await cancelled(task)
    assert asked.is_set()
    await wait_until(lambda: pool.leaked == 0, what="the loop was struck")


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def test_work_sees_a_copy_of_the_callers_context(pool: ThreadPool) -> None:
    variable.set("the caller's")

    def work() -> str:
        seen = variable.get()
        variable.set("changed in the thread")
        return seen

    assert await pool.run(work) == "the caller's"
    assert variable.get() == "the caller's"
    variable.set("second")
    assert await pool.run(work) == "second"


async def test_work_runs_in_the_context_it_is_given_even_an_empty_one(pool: ThreadPool) -> None:
    variable.set("the caller's")
    context = contextvars.Context()
    assert await pool.run(variable.get, context=context) == "unset"
    await pool.run(lambda: variable.set("from the thread"), context=context)
    assert context[variable] == "from the thread"


async def test_results_that_come_together_share_a_wake_up(pool: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, wakes = asyncio.get_running_loop(), 0
    original = loop.call_soon_threadsafe

    def counting(*args: object, **options: object) -> asyncio.Handle:
        nonlocal wakes
        wakes += 1
        return original(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_soon_threadsafe", counting)
    gates = [Gate() for _ in range(LIMIT)]
    tasks = [await enter(pool, gate) for gate in gates]
    wakes = 0
    for gate in gates:
        gate.exit.release()
    hold_the_loop_until(lambda: len(pool._finished) == LIMIT)  # so all end before it can wake
    await asyncio.gather(*tasks)
    assert wakes == 1


async def test_nothing_keeps_a_result_or_an_error_alive(pool: ThreadPool) -> None:
    class Thing:
        pass

    class Failure(Exception):
        pass

    def fail() -> None:
        raise Failure

    gc.disable()
    try:
        result = weakref.ref(await pool.run(Thing))
        error: weakref.ref[BaseException] | None = None
        try:
            await pool.run(fail)
        except Failure as failure:
            error = weakref.ref(failure)
        assert error is not None
        await wait_until(lambda: result() is None and error() is None, what="no reference is left")
    finally:
        gc.enable()


async def test_close_ends_idle_threads_and_lets_busy_ones_finish() -> None:
    pool = ThreadPool(2, "closing")
    gate, idle = Gate(), Gate()
    busy = await enter(pool, gate)
    other = await enter(pool, idle)
    idle.exit.release()
    await other
    pool.close()
    assert idle.thread is not None
    assert gate.thread is not None
    idle_thread, busy_thread = idle.thread, gate.thread
    await wait_until(lambda: not idle_thread.is_alive())
    assert busy_thread.is_alive()
    gate.exit.release()
    assert await busy == "let go"
    await wait_until(lambda: not busy_thread.is_alive())


async def test_close_fails_what_has_no_thread_yet_and_what_comes_later() -> None:
    pool = ThreadPool(1, "closing")
    gate = Gate()
    busy = await enter(pool, gate)
    waiting = asyncio.create_task(pool.run(int))
    await asyncio.sleep(0)
    pool.close()
    with pytest.raises(RuntimeError, match="'closing' was closed"):
        await waiting
    with pytest.raises(RuntimeError, match="'closing' is closed"):
        await pool.run(int)
    gate.exit.release()
    assert await busy == "let go"


async def test_another_loop_is_refused(pool: ThreadPool) -> None:
    await pool.run(int)
    with pytest.raises(RuntimeError, match="another event loop"):
        await asyncio.to_thread(asyncio.run, pool.run(int))


def test_works_on_uvloop() -> None:
    async def main() -> None:
        pool = ThreadPool(2, "uv")
        assert await asyncio.gather(*(pool.run(lambda: 5) for _ in range(10))) == [5] * 10
        gate = Gate()
        await cancelled(await enter(pool, gate))
        assert pool.leaked == 1
        gate.exit.release()
        await wait_until(lambda: pool.leaked == 0)
        pool.close()

    uvloop.run(main())


def test_a_stuck_thread_does_not_hold_the_exit_of_the_interpreter() -> None:
    script = """
import asyncio, time
from tickwork.executors.threads import ThreadPool

async def main():
    try:
        async with asyncio.timeout(0.05):
            await ThreadPool(1, "stuck").run(lambda: time.sleep(600))
    except TimeoutError:
        print("timed out")

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "timed out\n", "")


@pytest.mark.parametrize("how", ["blocked", "obeys", "swallows"])
def test_code_can_be_traced_after_a_stop(how: str) -> None:
    """An exception that is pending for some thread makes CPython 3.11 run a traced call for ever."""
    script = f"""
import asyncio, sys, threading, time
from tickwork.executors.threads import ThreadPool

begun = threading.Event()

def blocked():
    begun.set()
    time.sleep(600)

def obeys():
    begun.set()
    while True:
        time.monotonic()

def swallows():
    try:
        obeys()
    except BaseException:
        pass

def called():
    return "traced"

async def main():
    pool = ThreadPool(1, "late")
    call = asyncio.create_task(pool.run({how}))
    while not begun.is_set():
        await asyncio.sleep(0.005)
    call.cancel()
    await asyncio.wait([call])
    expected = 1 if {how} is blocked else 0
    while pool.leaked != expected or any(each.name == "tickwork-stop" for each in threading.enumerate()):
        await asyncio.sleep(0.005)
    sys.settrace(lambda *event: None)
    print(called())

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "traced\n", "")
