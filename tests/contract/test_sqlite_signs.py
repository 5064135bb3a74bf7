"""How processes on one SQLite file wake each other, and what happens where they cannot."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tickwork.clock import ManualClock
from tickwork.errors import StoreUnavailable
from tickwork.model.outcomes import Succeeded
from tickwork.store.hints import CONTROL, EVENTS, WORK
from tickwork.store.sqlite import SqliteStore, inotify, session, signs, thread
from tickwork.testing.contract.bench import START, Bench

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify")
Opener = Callable[[], Awaitable[SqliteStore]]
PATIENCE = 20.0
NEVER = 3600.0
LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tick.db"


@pytest.fixture
async def opened(path: Path) -> AsyncIterator[Opener]:
    stores: list[SqliteStore] = []

    async def open_one() -> SqliteStore:
        store = SqliteStore(str(path), "test")
        await store.open()
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        await store.close()


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can hear signs does not look at the file without one."""
    monkeypatch.setattr(session, "WATCHED_POLL", NEVER)


def bench_of(store: SqliteStore) -> Bench:
    return Bench(store, ManualClock(START))


def descriptors() -> list[str]:
    """What this process has open, but for files that other tests may open and close."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # that of the list itself
            continue
    return sorted(name for name in found if "inotify" in name or "eventfd" in name or "tick.db" in name)


# --- told at once


@pytest.mark.parametrize("topic", [WORK, CONTROL, EVENTS, "it"])
async def test_a_commit_is_told_to_another_store_without_a_look(opened: Opener, no_looks: None, topic: str) -> None:
    here, there = bench_of(await opened()), await opened()
    lease = await here.start("it")
    with there.hint(topic) as hint:
        while await hint.wait(0.1):  # what was committed before may still be noticed
            pass
        await here.cancel("it", True)
        await here.end(Succeeded(lease))
        await here.submit("new")
        assert await hint.wait(PATIENCE) is True


SUBMIT = """
    import asyncio, os, signal, sys
    from tickwork.model.tasks import Spec
    from tickwork.store.sqlite import SqliteStore
    from tickwork.store.sqlite.signs import Signs

    async def main():
        store = SqliteStore(sys.argv[1], "test")
        await store.open()
        if sys.argv[2] == "killed":
            Signs.give = lambda self: os.kill(os.getpid(), signal.SIGKILL)
        await store.tasks.submit([Spec(id="it", type="job", nonce="n")])
        await store.close()

    asyncio.run(main())
"""


def submit_elsewhere(path: Path, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(SUBMIT), str(path), how]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


async def test_a_commit_is_told_to_another_process_without_a_look(opened: Opener, path: Path, no_looks: None) -> None:
    store = await opened()
    with store.hint(WORK) as hint:
        done = await asyncio.to_thread(submit_elsewhere, path, "well")
        assert done.returncode == 0, done.stderr
        assert await hint.wait(PATIENCE) is True


async def test_a_process_that_is_killed_before_its_sign_is_noticed_by_a_look(
    opened: Opener, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "WATCHED_POLL", 0.1)
    store = await opened()
    with store.hint(WORK) as hint:
        done = await asyncio.to_thread(submit_elsewhere, path, "killed")
        assert done.returncode == -9, done.stderr
        assert await hint.wait(PATIENCE) is True
    assert await bench_of(store).status("it") is not None


async def test_an_idle_claim_gives_no_sign(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(signs.Signs, "give", lambda self: given.append(1))
    bench = bench_of(await opened())
    given.clear()
    assert await bench.claim() == []
    assert given == []
    await bench.submit()
    assert given == [1]


# --- where it cannot be told


async def assert_polls(store: SqliteStore, other: SqliteStore) -> None:
    assert (store.core.writer.watcher, store.core.writer.poll) == (-1, session.POLL)
    with store.hint(WORK) as hint:
        await bench_of(other).submit("told")
        assert await hint.wait(PATIENCE) is True


async def test_a_file_that_other_hosts_may_change_is_looked_at(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signs, "is_local", lambda name: False)
    await assert_polls(await opened(), await opened())


def test_only_file_systems_of_this_kernel_are_local(path: Path) -> None:
    assert inotify.is_local(b"/proc/self/stat") is False
    with pytest.raises(FileNotFoundError):
        inotify.is_local(bytes(path))


class Libc:
    """A C library without some functions, or with some that fail."""

    def __init__(self, **instead: Any) -> None:
        self._instead = instead

    def __getattr__(self, name: str) -> Any:
        function = self._instead.get(name, getattr(LIBC, name))
        if function is None:
            raise AttributeError(name)
        return function


def too_many(*args: Any) -> int:
    ctypes.set_errno(errno.EMFILE)
    return -1


@pytest.mark.parametrize("name", ["statfs", "inotify_init1", "inotify_add_watch"])
@pytest.mark.parametrize("function", [None, too_many], ids=["missing", "refused"])
async def test_without_inotify_the_file_is_looked_at(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, name: str, function: Any
) -> None:
    before = descriptors().count("anon_inode:inotify")
    with monkeypatch.context() as patched:
        patched.setattr(ctypes, "CDLL", lambda *args, **options: Libc(**{name: function}))
        store = await opened()
    await assert_polls(store, await opened())
    assert descriptors().count("anon_inode:inotify") == before + 1, "that of the other"


@pytest.mark.parametrize("name", ["inotify_init1", "inotify_add_watch"])
async def test_a_process_that_hears_no_signs_gives_them(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, no_looks: None, name: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(ctypes, "CDLL", lambda *args, **options: Libc(**{name: too_many}))
        store = await opened()
    other = await opened()
    with other.hint(WORK) as hint:
        await bench_of(store).submit("told")
        assert await hint.wait(PATIENCE) is True


async def test_a_file_of_whose_changes_nothing_is_told_is_looked_at(
    opened: Opener, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = path.with_name("other")
    other.touch()
    monkeypatch.setattr(signs, "watch", lambda name, events: inotify.watch(bytes(other), events))
    await assert_polls(await opened(), await opened())


async def test_a_user_who_may_give_no_sign_may_still_commit(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise PermissionError(errno.EPERM, "not yours")

    store = await opened()
    monkeypatch.setattr(os, "utime", refuse)
    for name in ("one", "two"):
        assert (await bench_of(store).submit(name)).verdict == "created"


# --- what it costs


async def test_a_process_that_works_hard_does_not_wake_the_others_each_time(opened: Opener) -> None:
    here, there = await opened(), await opened()
    looks: list[float] = []
    idle = there.core.writer.idle

    def counted() -> bool:
        looks.append(time.monotonic())
        return idle()

    there.core.writer.idle = counted  # type: ignore[method-assign]
    started = time.monotonic()
    for number in range(400):
        await bench_of(here).submit(f"t{number}")
        await asyncio.sleep(0.001)
    elapsed = time.monotonic() - started
    assert 1 <= len(looks) <= len(thread.RESTS) + 1 + elapsed / thread.RESTS[-1]


async def test_ones_own_signs_concern_nobody(opened: Opener) -> None:
    here, there = bench_of(await opened()), await opened()
    look, inside = there.core.writer.idle, there.core.write._inside  # while that is held, its thread cannot look
    await bench_of(there).submit("own")
    with inside:
        assert look() is False
        await here.submit("other's, nobody waits")
        assert look() is False
        with there.hint(WORK):
            await here.submit("other's, somebody waits")
            assert look() is True


# --- nothing is left


async def test_closing_closes_every_descriptor(path: Path) -> None:
    before = descriptors()
    for _ in range(3):
        store = SqliteStore(str(path), "test")
        await store.open()
        assert descriptors() != before
        await bench_of(store).claim()
        await store.close()
        assert descriptors() == before


async def test_a_refused_open_closes_every_descriptor(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    before = descriptors()
    monkeypatch.setattr(os, "eventfd", refuse)
    with pytest.raises(StoreUnavailable, match=r"tick.db: too many open files"):
        await SqliteStore(str(path), "test").open()
    await wait_until(lambda: descriptors() == before, what="all was closed")


FORK = """
    import asyncio, os, sys
    from tickwork.model.tasks import Spec
    from tickwork.store.hints import WORK
    from tickwork.store.sqlite import SqliteStore, session

    def watchers():
        return [n for n in os.listdir("/proc/self/fd") if "inotify" in link(n) or "eventfd" in link(n)]

    def link(number):
        try:
            return os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            return ""

    async def submit(store, name):
        await store.open()
        assert len(watchers()) == 2
        await store.tasks.submit([Spec(id=name, type="job", nonce="n")])
        await store.close()

    async def wait(store, child):
        with store.hint(WORK) as hint:
            await asyncio.to_thread(os.write, pipe[1], b"!")
            assert await hint.wait(20)
        assert os.waitpid(child, 0)[1] == 0
        await store.close()
        assert watchers() == []

    session.WATCHED_POLL = 3600.0
    store, pipe = SqliteStore(sys.argv[1], "test"), os.pipe()
    store._open_both()
    child = os.fork()
    if child:
        asyncio.run(wait(store, child))
    else:
        assert watchers() == []
        os.read(pipe[0], 1)
        asyncio.run(submit(store, "of the child"))
        os._exit(0)
"""


def test_a_fork_lets_go_of_the_descriptors_and_the_parent_hears_its_child(path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(FORK), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert [name.name for name in path.parent.iterdir()] == ["tick.db"]


async def test_the_bell_is_not_closed_while_somebody_rings_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number could be that of another file by then."""
    monkeypatch.setattr(session, "WATCHED_POLL", 0.01)  # the thread looks into its inbox without the bell, too
    rung: list[os.stat_result] = []

    def ring_late(bell: int, value: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while not inbox._queue.empty() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.05)  # the thread, which has read that it is to end, would close it now
        rung.append(os.fstat(bell))

    for _ in range(20):  # the thread may be awake at that moment, which needs no bell
        store = SqliteStore(str(path), "test")
        await store.open()
        inbox = store.core.write._inbox
        if inbox._bell < 0:
            pytest.skip("no signs are heard on this file system")
        with monkeypatch.context() as late:
            late.setattr(os, "eventfd_write", ring_late)
            await store.close()
        if rung:
            return
    pytest.fail("it was never rung")
