"""Which thread uses the connection of a SQLite store: its own, that of the event loop for a lone small submit, or that
of a blocking caller; and what they leave behind when they are interrupted."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tickwork.clock import ManualClock
from tickwork.errors import StoreUnavailable
from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.sqlite import SqliteStore, session, signs, tasks, thread
from tickwork.testing.contract.bench import START, Bench

Opener = Callable[..., Awaitable[Bench]]
PATIENCE = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tick.db"


@pytest.fixture
async def opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Opener]:
    """Stores whose threads do not look at the file by themselves: while one does, the connection is in use."""
    monkeypatch.setattr(signs, "is_local", lambda name: False)
    monkeypatch.setattr(session, "POLL", 3600.0)
    stores: list[SqliteStore] = []

    async def open_one(durability: Durability = "memory") -> Bench:
        store = SqliteStore(str(path), "test", durability=durability)
        await store.open()
        stores.append(store)
        bench = Bench(store, ManualClock(START))
        await bench.claim(queues=("none",))  # the first transaction is that of the writer's thread
        return bench

    yield open_one
    for store in stores:
        assert await store.queries.audit() == []
        await store.close()


def sqlite_of(bench: Bench) -> SqliteStore:
    assert isinstance(bench.store, SqliteStore)
    return bench.store


def commits(bench: Bench) -> list[bool]:
    """For each transaction from now on: whether it was that of this thread."""
    found: list[bool] = []
    here, writer = threading.get_ident(), sqlite_of(bench).core.writer
    commit = writer.commit

    def counted() -> None:
        found.append(threading.get_ident() == here)
        commit()

    writer.commit = counted  # type: ignore[method-assign]
    return found


# --- on the event loop


async def test_a_lone_submit_wakes_no_other_thread(opened: Opener) -> None:
    bench = await opened()
    found = commits(bench)
    for number in range(5):
        await bench.submit(f"t{number}")
    assert found == [True] * 5
    assert await bench.claimed_ids(10) == [f"t{number}" for number in range(5)]


async def held_back(bench: Bench, monkeypatch: pytest.MonkeyPatch, count: int, *submits: Awaitable[Any]) -> None:
    """Make these submits while the thread cannot begin before it was given so many of them."""
    inbox, held = sqlite_of(bench).core.write._inbox, list[Any]()
    with monkeypatch.context() as patched:
        patched.setattr(inbox, "put", held.append)
        answers = asyncio.gather(*submits)
        await wait_until(lambda: len(held) == count, what=f"{count} wait for the thread")
    for call in held:
        inbox.put(call)
    await answers


async def test_submits_at_the_same_time_are_committed_together_and_in_their_order(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await opened()
    found = commits(bench)
    await held_back(bench, monkeypatch, 49, *(bench.submit(f"t{number}") for number in range(50)))
    assert found[0] is True
    assert True not in found[1:]
    assert await bench.claimed_ids(50) == [f"t{number}" for number in range(50)]
    found.clear()
    await held_back(bench, monkeypatch, 50, *(bench.submit(f"again{number}") for number in range(50)))
    assert True not in found, "the first of them was not expected to be alone"
    found.clear()
    for number in range(5):
        await bench.submit(f"alone{number}")
    assert found == [False] * thread.AFTER_COMPANY + [True] * (5 - thread.AFTER_COMPANY)


async def test_no_submit_overtakes_one_that_waits_for_the_thread(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await opened()
    large = bench.submit("first", payload=bytes(tasks.SMALL_PAYLOAD + 1))
    await held_back(bench, monkeypatch, 2, large, bench.submit("second"))
    assert await bench.claimed_ids(2) == ["first", "second"]


async def test_others_get_their_turn_between_two_lone_submits(opened: Opener) -> None:
    bench = await opened()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(count())
    for number in range(50):
        await bench.submit(f"t{number}")
    assert turns >= 50
    other.cancel()


async def test_large_payloads_and_other_calls_are_for_the_thread(opened: Opener) -> None:
    bench = await opened()
    found = commits(bench)
    await bench.submit("large", payload=bytes(tasks.SMALL_PAYLOAD + 1))
    await bench.submit_many(2)
    await bench.claim()
    assert found == [False] * 3


async def test_a_commit_that_is_synced_is_for_the_thread(opened: Opener) -> None:
    bench = await opened("disk")
    found = commits(bench)
    for number in range(3):
        await bench.submit(f"t{number}")
    assert found == [False] * 3


async def test_the_loop_does_not_wait_for_another_process(opened: Opener, path: Path) -> None:
    bench = await opened()
    found = commits(bench)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    submit = asyncio.ensure_future(bench.submit("it"))
    for _ in range(20):  # the loop goes on
        await asyncio.sleep(0.001)
    assert not submit.done()
    other.execute("COMMIT")
    other.close()
    assert (await asyncio.wait_for(submit, PATIENCE)).verdict == "created"
    assert found == [False]


async def test_no_checkpoint_is_made_on_the_loop(opened: Opener, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "CHECKPOINT_PAGES", 20)
    monkeypatch.setattr(session, "AT_ONCE_MAX", 5)
    bench = await opened()
    here, writer = threading.get_ident(), sqlite_of(bench).core.writer
    commit, found = writer.commit, set[tuple[bool, int, int]]()

    def noted() -> None:
        asked = [writer.one(f"PRAGMA {name}")[0] for name in ("wal_autocheckpoint", "busy_timeout")]
        found.add((threading.get_ident() == here, *asked))
        commit()

    writer.commit = noted  # type: ignore[method-assign]
    for number in range(200):
        await bench.submit(f"t{number}")
    assert found == {(True, 0, 0), (False, 20, 5000)}
    assert path.with_name("tick.db-wal").stat().st_size < 200 * 4096, "checkpoints were made all the same"


async def test_the_first_commit_after_a_checkpoint_is_for_the_thread(opened: Opener, path: Path) -> None:
    """It begins the log anew, and syncs its header."""
    bench = await opened()
    await bench.submit("before")
    found = commits(bench)
    os.utime(path)  # as another process does with its checkpoint
    for number in range(4):
        await bench.submit(f"t{number}")
    assert found == [True, False, True, True]


async def test_the_first_commit_after_a_checkpoint_of_another_process_is_for_the_thread(
    opened: Opener, path: Path
) -> None:
    bench, other = await opened(), await opened()
    await bench.submit("before")
    found = commits(bench)
    await other.submit("other's")
    await bench.submit("plain")
    await other.submit("other's again")
    os.utime(path)
    for number in range(3):
        await bench.submit(f"t{number}")
    assert found == [True, False, True, True]


# --- in blocking threads


async def blocking(bench: Bench, name: str, *args: Any) -> Any:
    return await asyncio.to_thread(sqlite_of(bench).tasks.submit_blocking, bench.spec(name), *args)


async def test_a_blocking_submit_wakes_no_other_thread(opened: Opener) -> None:
    bench = await opened()
    found = commits(bench)
    for number in range(3):
        receipt = sqlite_of(bench).tasks.submit_blocking(bench.spec(f"t{number}"))
        assert receipt is not None
        assert receipt.verdict == "created"
    assert found == [True] * 3
    assert await bench.claimed_ids(10) == ["t0", "t1", "t2"]


async def test_many_threads_submit_at_once(opened: Opener) -> None:
    bench = await opened()
    submits = [blocking(bench, f"blocking{number}") for number in range(60)]
    await asyncio.gather(*submits, *(bench.submit(f"loop{number}") for number in range(60)))
    assert len(await bench.claimed_ids(200)) == 120


async def test_a_store_that_is_not_open_leaves_a_blocking_submit_to_the_usual_way(path: Path) -> None:
    store = SqliteStore(str(path), "test")
    spec = Spec(id="it", type="job", nonce="n")
    assert store.tasks.submit_blocking(spec) is None
    await store.open()
    await store.close()
    assert store.tasks.submit_blocking(spec) is None
    assert store.tasks.submit_blocking(spec, "replicated") is None


async def test_a_blocking_submit_waits_for_another_process_and_says_so(
    opened: Opener, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "BUSY_TIMEOUT", 50)
    bench = await opened()
    await bench.submit("before")  # so that the next one sets its patience again
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"tick.db: database is locked"):
        await blocking(bench, "it")
    assert await blocking(bench, "it", None, 1.0) is None, "with a limit it does not wait at all"
    other.execute("COMMIT")
    other.close()
    assert (await blocking(bench, "it")).verdict == "created"


async def test_a_blocking_submit_can_be_synced(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = await opened()
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    await blocking(bench, "plain")
    assert synced == []
    await blocking(bench, "synced", "disk")
    assert len(synced) == 1


FORK = """
    import asyncio, os, sys
    from tickwork.model.tasks import Spec
    from tickwork.store.sqlite import SqliteStore

    def spec(name):
        return Spec(id=name, type="job", nonce="n")

    store = SqliteStore(sys.argv[1], "test")
    store._open_both()
    assert store.tasks.submit_blocking(spec("parent")).verdict == "created"
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        assert store.tasks.submit_blocking(spec("parent again")).verdict == "created"
        asyncio.run(store.close())
    else:
        assert store.tasks.submit_blocking(spec("child")) is None
        store._open_both()
        assert store.tasks.submit_blocking(spec("child")).verdict == "created"
        asyncio.run(store.close())
        os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
async def test_a_forked_child_opens_anew(opened: Opener, path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(FORK), str(path)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    bench = await opened()
    assert await bench.claimed_ids(10) == ["parent", "child", "parent again"]


# --- interrupted


class Interrupted(BaseException):
    """What a signal, or the end of a handler's time, raises at any line."""


@pytest.mark.parametrize("at", ["BEGIN IMMEDIATE", "INSERT", "COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["loop", "blocking"])
async def test_an_interrupted_submit_does_no_harm_to_later_ones(opened: Opener, at: str, when: str, how: str) -> None:
    bench = await opened()
    await bench.submit("before")
    writer, thread = sqlite_of(bench).core.writer, sqlite_of(bench).core.write
    real = writer.db

    class Interrupting:
        """Raises at one statement; at a ROLLBACK, which is only needed after an interruption before."""

        def execute(self, sql: str, *args: Any) -> Any:
            if at == "ROLLBACK" and sql.startswith("INSERT"):
                raise Interrupted
            hit = sql.startswith(at)
            if hit and when == "before":
                raise Interrupted
            answer = real.execute(sql, *args)
            if hit:
                raise Interrupted
            return answer

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    writer.db = Interrupting()  # type: ignore[assignment]
    with pytest.raises(Interrupted):
        sqlite_of(bench).tasks.submit_blocking(bench.spec("it"), None, 1.0 if how == "loop" else None)
    writer.db = real
    for number in range(3):
        assert (await bench.submit(f"after{number}")).verdict == "created"
    await blocking(bench, "last")
    taken = await bench.claimed_ids(10)
    assert [name for name in taken if name != "it"] == ["before", "after0", "after1", "after2", "last"]
    assert ("it" in taken) is (at == "COMMIT" and when == "after")
    await wait_until(lambda: not thread._inside.locked())
