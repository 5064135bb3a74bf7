from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from multiprocessing import resource_tracker
from pathlib import Path

import pytest
import uvloop

from tests.support.waiting import wait_until
from tickwork.executors import process as process_module
from tickwork.executors.process import Call, ChildDied, ChildError, ProcessPool, StartFailed

HERE = "tests.support.child_functions"
ROOT = Path(__file__).parents[2]
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread of the child watches the parent")


@pytest.fixture
async def pool() -> AsyncIterator[ProcessPool]:
    pool = ProcessPool(3, "test-processes", invoke=f"{HERE}:invoke")
    yield pool
    await pool.close()
    assert not multiprocessing.active_children()


def ignore(note: bytes) -> None:
    pass


def call(name: str, body: bytes = b"") -> Call:
    return Call(f"{HERE}:{name}", body)


class Busy:
    """A call under way: its task, and the process that said it works on it."""

    def __init__(self, pool: ProcessPool, name: str, body: bytes = b"") -> None:
        self.notes: list[bytes] = []
        self.task = asyncio.create_task(pool.run(call(name, body), on_note=self.notes.append))

    async def pid(self) -> int:
        await wait_until(lambda: self.notes or self.task.done(), timeout=30, what="the child has begun")
        if not self.notes:
            await self.task
        return int(self.notes[0])


def state(pid: int) -> str:
    """R, S, T, Z and so on, as the kernel tells it; empty if there is no such process."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def runs(pid: int) -> bool:
    """Whether it works; a zombie of another parent, whom nobody reaps here, does not."""
    if Path("/proc/self/stat").exists():
        return state(pid) not in {"Z", "X", ""}
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def reaped(pid: int) -> bool:
    """Whether it is no child of ours any more, not even a dead one."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "program.py"


def started(script: Path, source: str) -> subprocess.Popen[str]:
    script.write_text(source)
    return subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=script.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


# Calls and their outcomes


async def test_returns_what_invoke_returned(pool: ProcessPool) -> None:
    assert await pool.run(call("echo", b"body"), on_note=ignore) == b"body"
    assert await pool.run(call("echo", b""), on_note=ignore) == b""


async def test_a_child_is_another_process_and_is_reused(pool: ProcessPool) -> None:
    pids = {await pool.run(call("pid"), on_note=ignore) for _ in range(5)}
    assert len(pids) == 1
    assert pids != {str(os.getpid()).encode()}


async def test_a_reference_may_be_nested(pool: ProcessPool) -> None:
    assert await pool.run(call("Namespace.inner", b"x"), on_note=ignore) == b"inner x"


@pytest.mark.parametrize("size", [32 * 1024 - 100, 32 * 1024, 300_000, 10_000_000])
async def test_bodies_and_results_of_any_size(pool: ProcessPool, size: int) -> None:
    body = os.urandom(size)
    assert await pool.run(call("echo", body), on_note=ignore) == body


async def test_an_error_comes_back_with_its_type_text_and_traceback(pool: ProcessPool) -> None:
    first = await pool.run(call("pid"), on_note=ignore)
    with pytest.raises(ChildError) as caught:
        await pool.run(call("fail", b"bad input"), on_note=ignore)
    assert str(caught.value) == "ValueError: bad input"
    assert (caught.value.type_name, caught.value.text, caught.value.verdict) == ("ValueError", "bad input", None)
    assert "in fail\n" in caught.value.traceback
    assert caught.value.__notes__ == [caught.value.traceback], "whoever shows the error shows the child's traceback"
    assert await pool.run(call("pid"), on_note=ignore) == first


async def test_an_error_may_carry_a_verdict(pool: ProcessPool) -> None:
    with pytest.raises(ChildError) as caught:
        await pool.run(call("fail_with_verdict"), on_note=ignore)
    assert caught.value.verdict == b"structured"
    assert caught.value.type_name == f"{HERE}.Verdict"


@pytest.mark.parametrize(
    ("name", "type_name", "text"),
    [
        ("fail_without_text", f"{HERE}.BadText", "raised ValueError"),
        ("fail_with_surrogate", "FileNotFoundError", r"\udcff"),
        ("leave", "SystemExit", "7"),
        ("not_bytes", "TypeError", "must return bytes, not str"),
    ],
)
async def test_awkward_ends_are_errors_and_the_child_lives_on(
    pool: ProcessPool, name: str, type_name: str, text: str
) -> None:
    first = await pool.run(call("pid"), on_note=ignore)
    with pytest.raises(ChildError) as caught:
        await pool.run(call(name), on_note=ignore)
    assert caught.value.type_name == type_name
    assert text in caught.value.text
    assert await pool.run(call("pid"), on_note=ignore) == first


@pytest.mark.parametrize("reference", ["no_such_module:x", f"{HERE}:nothing", f"{HERE}", "", "tests.support:"])
async def test_a_reference_that_cannot_be_loaded_is_named(pool: ProcessPool, reference: str) -> None:
    first = await pool.run(call("pid"), on_note=ignore)
    with pytest.raises(ChildError) as caught:
        await pool.run(Call(reference, b""), on_note=ignore)
    assert f"cannot load {reference!r}" in caught.value.text
    assert await pool.run(call("pid"), on_note=ignore) == first


# Notes


async def test_notes_arrive_in_order_and_before_the_result(pool: ProcessPool) -> None:
    got: list[bytes] = []
    assert await pool.run(call("notes", b"5000"), on_note=got.append) == b"end"
    assert got == [str(number).encode() for number in range(5000)]


async def test_notes_of_several_calls_do_not_mix(pool: ProcessPool) -> None:
    got: list[list[bytes]] = [[], [], []]
    await asyncio.gather(*(pool.run(call("notes", b"300"), on_note=each.append) for each in got))
    assert got == [[str(number).encode() for number in range(300)]] * 3


async def test_a_thread_that_outlives_its_call_cannot_speak_for_the_next(pool: ProcessPool) -> None:
    first: list[bytes] = []
    assert await pool.run(call("speak_after_the_end"), on_note=first.append) == b"left"
    got: list[bytes] = []
    await pool.run(call("notes", b"2000"), on_note=got.append)
    assert b"stray" not in got
    assert len(got) == 2000


async def test_an_error_in_on_note_goes_to_the_loops_handler_and_the_call_goes_on(pool: ProcessPool) -> None:
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["exception"]))

    def refuse(note: bytes) -> None:
        raise LookupError(note.decode())

    assert await pool.run(call("notes", b"2"), on_note=refuse) == b"end"
    assert [str(problem) for problem in problems] == ["0", "1"]


async def test_a_child_far_ahead_of_the_loop_has_to_wait(pool: ProcessPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "BACKLOG", 10)
    most = 0

    def watch(note: bytes) -> None:
        nonlocal most
        (child,) = pool._alive
        most = max(most, child.posted - child.handled)

    assert await pool.run(call("notes", b"3000"), on_note=watch) == b"end"
    assert most <= 11


# Death


@posix
@pytest.mark.parametrize(
    ("name", "body", "exitcode", "signal_name", "message"),
    [
        ("die_by_signal", b"%d" % signal.SIGSEGV, -signal.SIGSEGV, "SIGSEGV", "was killed by SIGSEGV"),
        ("die_by_signal", b"%d" % signal.SIGKILL, -signal.SIGKILL, "SIGKILL", "was killed by SIGKILL"),
        ("die_by_signal", b"40", -40, "signal 40", "was killed by signal 40"),
        ("exit_at_once", b"3", 3, None, "called exit with status 3"),
        ("exit_at_once", b"0", 0, None, "ended without a result (exit status 0)"),
    ],
)
async def test_the_death_of_a_child_is_told_at_once(
    pool: ProcessPool, name: str, body: bytes, exitcode: int, signal_name: str | None, message: str
) -> None:
    await pool.warm(1)
    before = time.monotonic()
    with pytest.raises(ChildDied) as caught:
        await pool.run(call(name, body), on_note=ignore)
    assert time.monotonic() - before < 5
    assert str(caught.value) == f"the process {message}"
    assert (caught.value.exitcode, caught.value.signal_name) == (exitcode, signal_name)
    assert await pool.run(call("echo", b"next"), on_note=ignore) == b"next"


@posix
async def test_a_death_is_told_even_if_a_forked_process_lives_on(pool: ProcessPool) -> None:
    notes: list[bytes] = []
    before = time.monotonic()
    with pytest.raises(ChildDied, match="SIGSEGV"):
        await pool.run(call("fork_and_die"), on_note=notes.append)
    elapsed = time.monotonic() - before
    grandchild = int(notes[0])
    try:
        assert runs(grandchild)
        assert elapsed < 15
    finally:
        os.kill(grandchild, signal.SIGKILL)


@posix
async def test_killing_one_of_three_leaves_the_others_alone(pool: ProcessPool, tmp_path: Path) -> None:
    release = tmp_path / "release"
    busy = [Busy(pool, "hold", bytes(release)) for _ in range(3)]
    pids = [await each.pid() for each in busy]
    assert len(set(pids)) == 3
    os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(ChildDied, match="SIGKILL"):
        await busy[1].task
    release.touch()
    assert [int(await busy[0].task), int(await busy[2].task)] == [pids[0], pids[2]]


def hold_the_loop_until_it_is_reaped(child: process_module._Child) -> None:
    """The loop gets no turn, so the pool cannot have the news yet."""
    deadline = time.monotonic() + 10
    while child.process is None or child.process.exitcode is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)


@posix
async def test_a_child_that_died_while_idle_costs_no_call(pool: ProcessPool) -> None:
    pid = int(await pool.run(call("pid"), on_note=ignore))
    (child,) = pool._alive
    os.kill(pid, signal.SIGKILL)
    hold_the_loop_until_it_is_reaped(child)
    again = int(await pool.run(call("pid"), on_note=ignore))
    assert again != pid
    os.kill(again, signal.SIGKILL)
    await wait_until(lambda: not pool._alive, what="the pool has the news")
    assert int(await pool.run(call("pid"), on_note=ignore)) not in {pid, again}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one cannot tell whether a call was read")
async def test_a_call_that_a_dying_child_never_read_is_given_to_another(pool: ProcessPool) -> None:
    pid = int(await pool.run(call("pid"), on_note=ignore))
    os.kill(pid, signal.SIGSTOP)
    await wait_until(lambda: state(pid) == "T", what="the child is stopped")
    again = asyncio.create_task(pool.run(call("pid"), on_note=ignore))
    (child,) = pool._alive
    await wait_until(lambda: child.result is not None, what="the call was sent")
    os.kill(pid, signal.SIGKILL)
    assert int(await again) != pid


@posix
async def test_calls_that_no_child_reads_are_not_tried_for_ever(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProcessPool, "_send", send_to_a_dead_child)
    with pytest.raises(ChildDied, match="SIGKILL"):
        await pool.run(call("echo"), on_note=ignore)
    assert pool._spawned == process_module.TRIES


async def send_to_a_dead_child(pool: ProcessPool, child: process_module._Child, data: bytes) -> None:
    child.kill()
    child.unread = True


@posix
async def test_children_leave_ctrl_c_and_sigterm_to_the_parent(pool: ProcessPool, tmp_path: Path) -> None:
    busy = Busy(pool, "hold", bytes(tmp_path / "release"))
    pid = await busy.pid()
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGTERM)
    (tmp_path / "release").touch()
    assert int(await busy.task) == pid


async def test_handlers_may_start_processes_of_their_own(pool: ProcessPool) -> None:
    assert await pool.run(call("use_multiprocessing"), on_note=ignore) == b"5"


# Cancelling


@pytest.mark.parametrize("name", ["spin", "ignore_term"])
async def test_cancelling_kills_the_child_and_frees_its_slot(name: str) -> None:
    pool = ProcessPool(1, "single", invoke=f"{HERE}:invoke")
    busy = Busy(pool, name)
    pid = await busy.pid()
    waiting = asyncio.create_task(pool.run(call("pid"), on_note=ignore))
    busy.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await busy.task
    assert int(await waiting) != pid
    await wait_until(lambda: not runs(pid), what="the cancelled child is gone")
    assert pool.leaked == 0
    await pool.close()


@posix
async def test_cancelling_kills_what_the_child_has_started(pool: ProcessPool) -> None:
    busy = Busy(pool, "start_and_spin")
    await wait_until(lambda: busy.notes, timeout=30, what="the child has begun")
    started = [int(pid) for pid in busy.notes[0].split()]
    assert all(map(runs, started))
    busy.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await busy.task
    await wait_until(lambda: not any(map(runs, started)), what="program and forked process are gone")


async def test_a_timeout_kills_only_its_own_child(pool: ProcessPool, tmp_path: Path) -> None:
    other = Busy(pool, "hold", bytes(tmp_path / "release"))
    other_pid = await other.pid()
    await pool.warm(2)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await pool.run(call("spin"), on_note=ignore)
    (tmp_path / "release").touch()
    assert int(await other.task) == other_pid


async def test_cancelling_a_call_that_waits_for_a_slot_harms_nobody(tmp_path: Path) -> None:
    pool = ProcessPool(1, "single", invoke=f"{HERE}:invoke")
    busy = Busy(pool, "hold", bytes(tmp_path / "release"))
    pid = await busy.pid()
    waiting = asyncio.create_task(pool.run(call("echo"), on_note=ignore))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (tmp_path / "release").touch()
    assert int(await busy.task) == pid
    await pool.close()


async def test_a_timeout_shorter_than_the_start_leaves_the_child_for_the_next_call(pool: ProcessPool) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await pool.run(call("echo"), on_note=ignore)
    (child,) = pool._alive
    await pool.run(call("echo"), on_note=ignore)
    assert pool._alive == {child}


async def test_a_body_under_way_to_a_stopped_child_can_be_cancelled(pool: ProcessPool) -> None:
    """The loop must not be held by a child that does not read."""
    pid = int(await pool.run(call("pid"), on_note=ignore))
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await pool.run(call("echo", bytes(10_000_000)), on_note=ignore)
    await wait_until(lambda: not runs(pid))
    await wait_until(lambda: pool._senders.leaked == 0, what="the sending thread has ended")


# Starting, recycling, closing


async def test_no_more_than_limit_children(pool: ProcessPool) -> None:
    pids = await asyncio.gather(*(pool.run(call("pid"), on_note=ignore) for _ in range(30)))
    assert len(set(pids)) <= 3


async def test_the_limit_of_children_can_change(pool: ProcessPool, tmp_path: Path) -> None:
    """Calls that run go on; children that are too many end once they are idle."""
    pool.resize(1)
    gate = tmp_path / "gate"
    calls = [Busy(pool, "hold", bytes(gate)) for _ in range(3)]
    pids = [await calls[0].pid()]
    pool.resize(2)
    pids.append(await calls[1].pid())
    pool.resize(1)
    assert not calls[2].notes
    gate.touch()
    pids.append(await calls[2].pid())
    for each in calls:
        await each.task
    assert len(set(pids)) == 2, "the third call had to wait for one of the two children"
    await wait_until(lambda: len(multiprocessing.active_children()) == 1, timeout=30, what="one child is left")


async def test_a_call_that_is_cancelled_while_it_waits_takes_no_slot(pool: ProcessPool, tmp_path: Path) -> None:
    pool.resize(1)
    gate = tmp_path / "gate"
    first, second, third = (Busy(pool, "hold", bytes(gate)) for _ in range(3))
    await first.pid()
    second.task.cancel()
    pool.resize(2)  # before the one that was cancelled has noticed it
    with suppress(asyncio.CancelledError):
        await second.task
    await third.pid()
    gate.touch()
    await asyncio.gather(first.task, third.task)
    assert await pool.run(call("echo", b"x"), on_note=ignore) == b"x"


async def test_warm_starts_children_ahead_and_no_more_than_the_limit(pool: ProcessPool) -> None:
    await pool.warm(2)
    children = set(pool._alive)
    assert len(children) == 2
    assert all(child.started.done() for child in children)
    await asyncio.gather(*(pool.run(call("echo"), on_note=ignore) for _ in range(2)))
    assert pool._alive == children
    await pool.warm(10)
    assert len(pool._alive) == 3
    await pool.warm(1)
    assert len(pool._alive) == 3


async def test_a_child_is_replaced_after_max_calls() -> None:
    pool = ProcessPool(1, "recycled", invoke=f"{HERE}:invoke", max_calls=2)
    pids = [int(await pool.run(call("pid"), on_note=ignore)) for _ in range(5)]
    assert [pids.index(pid) for pid in pids] == [0, 0, 2, 2, 4]
    await wait_until(lambda: not any(map(runs, pids[:4])), what="the replaced ones are gone")
    await pool.close()


async def test_close_ends_idle_and_busy_children_and_leaves_no_zombie() -> None:
    pool = ProcessPool(2, "closing", invoke=f"{HERE}:invoke")
    busy = Busy(pool, "ignore_term")
    pids = [await busy.pid(), int(await pool.run(call("pid"), on_note=ignore))]
    waiting = asyncio.create_task(pool.run(call("spin"), on_note=ignore))
    late = asyncio.create_task(pool.run(call("echo"), on_note=ignore))
    await asyncio.sleep(0)
    await pool.close()
    assert not any(map(runs, pids))
    assert all(map(reaped, pids))
    with pytest.raises(ChildDied, match="SIGKILL"):
        await busy.task
    with pytest.raises((ChildDied, RuntimeError)):
        await waiting
    with pytest.raises(RuntimeError, match="'closing' is closed"):
        await late
    with pytest.raises(RuntimeError, match="'closing' is closed"):
        await pool.run(call("echo"), on_note=ignore)
    await pool.close()


@posix
async def test_close_while_children_start(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(resource_tracker, "ensure_running", go.wait)  # holds the start up
    pool = ProcessPool(2, "closing", invoke=f"{HERE}:invoke")
    calls = [asyncio.create_task(pool.run(call("echo"), on_note=ignore)) for _ in range(2)]
    await wait_until(lambda: len(pool._alive) == 2)
    closing = asyncio.create_task(pool.close())
    await wait_until(lambda: all(child.doomed for child in pool._alive))
    monkeypatch.undo()
    go.set()
    await asyncio.wait_for(closing, process_module.GRACE)
    assert not pool._alive
    for each in calls:
        with pytest.raises(StartFailed, match="the pool was closed"):
            await each


async def test_an_invoke_function_that_cannot_be_loaded_is_named() -> None:
    pool = ProcessPool(2, "broken", invoke=f"{HERE}:no_such_invoke")
    outcomes = await asyncio.gather(*(pool.run(call("echo"), on_note=ignore) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(outcome, StartFailed) for outcome in outcomes)
    assert "no_such_invoke" in str(outcomes[0])
    assert pool._spawned == 5  # one start for a call, and none after
    await pool.close()


async def test_a_child_that_does_not_get_ready_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "START_TIMEOUT", 0.01)
    pool = ProcessPool(1, "slow", invoke=f"{HERE}:invoke")
    with pytest.raises(StartFailed, match=r"not ready in 0\.01 s"):
        await pool.warm(1)
    await wait_until(lambda: not pool._alive)
    await pool.close()


async def test_another_loop_is_refused(pool: ProcessPool) -> None:
    await pool.run(call("echo"), on_note=ignore)
    with pytest.raises(RuntimeError, match="another event loop"):
        await asyncio.to_thread(asyncio.run, pool.run(call("echo"), on_note=ignore))


def test_works_on_uvloop() -> None:
    async def main() -> None:
        pool = ProcessPool(2, "uv", invoke=f"{HERE}:invoke")
        got: list[bytes] = []
        assert await pool.run(call("notes", b"100"), on_note=got.append) == b"end"
        assert len(got) == 100
        with pytest.raises(ChildDied, match="SIGSEGV"):
            await pool.run(call("die_by_signal", b"%d" % signal.SIGSEGV), on_note=ignore)
        busy = Busy(pool, "spin")
        pid = await busy.pid()
        busy.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await busy.task
        await wait_until(lambda: not runs(pid))
        await pool.close()
        assert not multiprocessing.active_children()

    uvloop.run(main())


# Whole programs

PROGRAM = f"""
import asyncio, os, sys
from tickwork.executors.process import Call, ChildError, ProcessPool, StartFailed

MORE

class OwnError(Exception):
    pass

def own(body, note):
    if not body:
        raise OwnError
    return b"main says " + body

async def main():
    pool = ProcessPool(2, "program", invoke="{HERE}:invoke")
    BODY

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_functions_of_the_main_module_can_be_named(script: Path) -> None:
    body = """print(await pool.run(Call("__main__:own", b"hi"), on_note=print))
    try:
        await pool.run(Call("__main__:own", b""), on_note=print)
    except ChildError as error:
        print(error.type_name)
    await pool.close()"""
    program = started(script, PROGRAM.replace("MORE", "").replace("BODY", body))
    assert program.communicate(timeout=60) == ("b'main says hi'\n__main__.OwnError\n", "")


def test_a_main_module_that_fails_in_the_child_is_told_once_per_call(script: Path) -> None:
    more = """
open("imports", "a").write("x")
if __name__ != "__main__":
    raise OSError("not today")
"""
    body = """for _ in range(2):
        try:
            await pool.run(Call("__main__:own", b""), on_note=print)
        except StartFailed as error:
            print(error)
    await pool.close()"""
    program = started(script, PROGRAM.replace("MORE", more).replace("BODY", body))
    out, err = program.communicate(timeout=60)
    assert out.count("no process for pool 'program': the process called exit with status 1 while it started") == 2
    assert err.count("OSError: not today") == 2
    assert (script.parent / "imports").read_text() == "xxx"  # the program itself, and one child a call


BUSY = f"""pids = []
    note = lambda body: (pids.append(body), len(pids) == 2 and print(*map(bytes.decode, pids), flush=True))
    calls = [asyncio.ensure_future(pool.run(Call("{HERE}:spin", b""), on_note=note)) for _ in range(2)]
    """


@posix
@pytest.mark.parametrize("name", ["spin", pytest.param("hold_the_interpreter", marks=linux)])
async def test_busy_children_end_when_the_parent_is_killed(script: Path, name: str) -> None:
    body = BUSY.replace("spin", name) + "await asyncio.wait(calls)"
    program = started(script, PROGRAM.replace("MORE", "").replace("BODY", body))
    assert program.stdout is not None
    pids = [int(pid) for pid in (await asyncio.to_thread(program.stdout.readline)).split()]
    assert len(pids) == 2, program.stderr and program.stderr.read()
    assert all(map(runs, pids))
    program.kill()
    program.communicate()
    await wait_until(lambda: not any(map(runs, pids)), what="the children have ended")


@posix
@pytest.mark.parametrize(
    "body",
    [
        BUSY + "while len(pids) < 2: await asyncio.sleep(0.005)",
        f"""print((await pool.run(Call("{HERE}:pid", b""), on_note=print)).decode())""",
    ],
    ids=["busy", "idle"],
)
async def test_a_program_that_forgets_to_close_still_ends(script: Path, body: str) -> None:
    program = started(script, PROGRAM.replace("MORE", "").replace("BODY", body))
    try:
        out, _ = await asyncio.to_thread(program.communicate, timeout=20)
    finally:
        program.kill()
    assert program.returncode == 0
    assert out.split()
    await wait_until(lambda: not any(runs(int(pid)) for pid in out.split()), what="the children have ended")
