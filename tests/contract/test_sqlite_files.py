"""The files of a SQLite store: who may read them, who may make them, and what happens when they are taken away."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tickwork.cli.session import schema_versions
from tickwork.clock import ManualClock
from tickwork.config import Config
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.tasks import Spec, Status
from tickwork.store.opening import make_store
from tickwork.store.sqlite import SqliteStore, connecting
from tickwork.store.sqlite.schema import VERSION
from tickwork.testing.contract.bench import START, Bench

posix = pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tick.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(str(path), "test")
    yield store
    await store.close()


@pytest.fixture
async def bench(store: SqliteStore) -> Bench:
    await store.open()
    return Bench(store, ManualClock(START))


def beside(path: Path, tail: str) -> Path:
    return path.with_name(path.name + tail)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- made


@posix
async def test_files_are_made_for_their_owner_alone(bench: Bench, path: Path) -> None:
    await bench.submit("it")
    assert {name.name: mode_of(name) for name in path.parent.iterdir()} == {
        "tick.db": 0o600,
        "tick.db-wal": 0o600,
        "tick.db-shm": 0o600,
    }


@posix
async def test_the_mode_of_a_file_that_is_there_is_left_alone(store: SqliteStore, path: Path) -> None:
    path.touch()
    path.chmod(0o660)
    await store.open()
    assert mode_of(path) == 0o660
    assert mode_of(beside(path, "-wal")) == 0o660


@posix
async def test_no_file_is_made_through_a_link(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match=r"symbolic link to .*victim, which does not exist.*remove the link"):
        await store.open()
    assert not (tmp_path / "victim").exists()


@posix
async def test_a_link_to_a_file_works(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    (tmp_path / "real.db").touch(0o600)
    path.symlink_to(tmp_path / "real.db")
    await store.open()
    bench = Bench(store, ManualClock(START))
    assert (await bench.submit("it")).verdict == "created"
    await store.tasks.submit([bench.spec("synced")], "disk")
    assert (tmp_path / "real.db-wal").exists()


async def test_one_slash_too_many_is_no_host(path: Path) -> None:
    store = make_store(f"sqlite:////{path}", Config())
    await store.open()
    await store.close()
    assert path.exists()
    assert schema_versions(f"/{path}") == {"scheduler": VERSION}


LOOK = """
    import os, sys
    from tickwork.store.sqlite import SqliteStore

    store = SqliteStore(sys.argv[1], "test")
    if os.geteuid() == 0:
        os.setuid(65534)  # permissions do not hold for root
    try:
        store._open_both()
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """That of a test is for its owner alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


@posix
@pytest.mark.parametrize(
    ("file_mode", "text"),
    [
        (None, "it cannot be made in folder {folder}: Permission denied"),
        (0o666, "cannot switch to write-ahead logging"),
        (0o444, "cannot switch to write-ahead logging"),
    ],
    ids=["new", "old", "read-only"],
)
def test_a_folder_that_cannot_be_written_to_is_told(public_folder: Path, file_mode: int | None, text: str) -> None:
    path = public_folder / "tick.db"
    if file_mode is not None:
        store = SqliteStore(str(path), "test")
        asyncio.run(store.open())
        asyncio.run(store.close())
        path.chmod(file_mode)
    public_folder.chmod(0o555)
    command = [sys.executable, "-c", textwrap.dedent(LOOK), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith(f"StoreError SQLite file {path}: {text.format(folder=public_folder)}"), done
    assert "must be able to write" in done.stdout


# --- opened by several at once


@pytest.fixture
def holder(path: Path) -> sqlite3.Connection:
    """Somebody who has just made the file, and is writing to it."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("BEGIN IMMEDIATE")
    db.execute("CREATE TABLE somebody (one)")
    return db


async def test_a_new_file_that_another_is_writing_to_is_waited_for(
    store: SqliteStore, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself does not wait at this place."""
    sleep, pauses = time.sleep, list[float]()

    def end_the_other(seconds: float) -> None:
        if not pauses:
            holder.execute("COMMIT")
        pauses.append(seconds)
        sleep(seconds)

    monkeypatch.setattr("tickwork.store.sqlite.connecting.time.sleep", end_the_other)
    await store.open()
    assert pauses == [connecting.OPEN_PAUSE]
    holder.close()


async def test_a_new_file_that_another_does_not_let_go_of_is_unavailable(
    store: SqliteStore, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "OPEN_PATIENCE", 0.1)
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.open()
    holder.close()


# --- taken away


def delete_all(path: Path) -> None:
    for tail in ("", "-wal", "-shm"):
        beside(path, tail).unlink()


def move(path: Path) -> None:
    path.rename(beside(path, ".moved"))


def delete_log(path: Path) -> None:
    beside(path, "-wal").unlink()


def put_backup_back(path: Path) -> None:
    shutil.copy(path, beside(path, ".backup"))
    beside(path, ".backup").replace(path)


def replace_log(path: Path) -> None:
    beside(path, ".other").touch()
    beside(path, ".other").replace(beside(path, "-wal"))


def move_folder(path: Path) -> None:
    path.parent.rename(beside(path.parent, ".moved"))


TAKEN = [
    (delete_all, "the file was deleted or moved away"),
    (move, "the file was deleted or moved away"),
    (move_folder, "the file was deleted or moved away"),
    (put_backup_back, "the file was replaced by another"),
    (delete_log, "its log .*-wal was deleted or moved away"),
    (replace_log, "its log .*-wal was replaced by another"),
]


@pytest.mark.parametrize(("take", "text"), TAKEN)
async def test_nothing_is_acknowledged_that_is_lost(
    bench: Bench, path: Path, take: Callable[[Path], None], text: str
) -> None:
    await bench.submit("before")
    take(path)
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"{text} while it was in use.*Put the same file back") as caught:
            await bench.submit("lost")
        assert not isinstance(caught.value, StoreUnavailable), "sending it again would not help"
        assert str(path) in str(caught.value)
    for call in (bench.claim, bench.store.queries.stats, bench.store.queries.audit):
        with pytest.raises(StoreError, match=text):
            await call()


async def test_a_file_that_is_gone_is_told_by_itself(
    bench: Bench, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    move(path)
    await wait_until(lambda: caplog.records, what="it was noticed without a call")
    with pytest.raises(StoreError):
        await bench.store.queries.stats()
    (record,) = caplog.records
    assert (record.levelname, "deleted or moved away" in record.getMessage()) == ("ERROR", True)


async def test_work_goes_on_when_the_same_file_is_put_back(bench: Bench, path: Path) -> None:
    await bench.submit("before")
    move(path)
    with pytest.raises(StoreError):
        await bench.submit("meanwhile")
    beside(path, ".moved").rename(path)
    assert (await bench.submit("after")).verdict == "created"
    assert await bench.status("before") is not None
    assert await bench.store.queries.audit() == []


async def test_a_log_that_is_gone_is_not_taken_for_synced(
    bench: Bench, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = bench.store
    honest = store.core.write.call

    async def then_lose(work: Callable[[], Any]) -> Any:
        answer = await honest(work)
        delete_log(path)
        return answer

    monkeypatch.setattr(store.core.write, "call", then_lose)
    with pytest.raises(StoreError, match=r"its log .* was deleted"):
        await store.tasks.submit([bench.spec("it")], "disk")


async def test_a_changed_working_directory_is_no_other_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("tick.db", "test")
    await store.open()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    bench = Bench(store, ManualClock(START))
    await store.tasks.submit([bench.spec("it")], "disk")
    await store.close()
    assert os.listdir() == []


async def test_a_store_that_was_refused_opens_the_new_file(bench: Bench, path: Path) -> None:
    delete_all(path)
    with pytest.raises(StoreError):
        await bench.submit("lost")
    await bench.store.close()
    await bench.store.open()
    assert (await bench.submit("new")).verdict == "created"


async def test_a_store_that_opens_another_file_remembers_nothing_of_the_first(bench: Bench, path: Path) -> None:
    lease = await bench.start("old", payload=b"old")
    assert (await bench.record("old")).spec.payload == b"old"
    await bench.store.close()
    path.unlink()
    await bench.store.open()
    assert await bench.store.tasks.extend([lease], 30_000) == ["lost"]
    await bench.submit("new", payload=b"new")
    assert (await bench.record("new")).spec.payload == b"new"
    (grant,) = await bench.claim()
    assert (grant.spec.id, grant.spec.payload) == ("new", b"new")


# --- looked after


async def test_a_strangers_file_is_not_trusted(bench: Bench) -> None:
    store: Any = bench.store
    for call, connection in ((store.core.write.call, store.core.writer), (store.core.read.call, store.core.reader)):
        for name, value in (("trusted_schema", 0), ("cell_size_check", 1)):
            assert (await call(lambda c=connection, n=name: c.one(f"PRAGMA {n}")))[0] == value


@posix
async def test_who_else_may_look_is_told(bench: Bench, path: Path) -> None:
    store: Any = bench.store
    path.parent.chmod(0o1777)
    assert await store.queries.health() == []
    path.chmod(0o644)
    beside(path, "-wal").chmod(0o644)
    path.parent.chmod(0o777)
    found = [(finding.level, finding.text, finding.advice) for finding in await store.queries.health()]
    assert found == [
        (
            "warning",
            f"{path} has mode 0644: other users of this host can read payloads and results",
            f"unless that is meant: chmod 600 {path}",
        ),
        (
            "warning",
            f"folder {path.parent} has mode 0777: every user of this host can replace the SQLite file in it",
            f"chmod o-w {path.parent}",
        ),
    ]
    path.chmod(0o600)
    beside(path, "-wal").chmod(0o660)
    assert "-wal has mode 0660: other users of this host can read and write" in (await store.queries.health())[0].text


async def test_a_caller_who_gives_up_does_not_spoil_the_opening(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "tick.db"))
    for _ in range(5):
        opening = asyncio.ensure_future(store.open())
        await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
    async with asyncio.timeout(10):
        await store.open()
        await asyncio.gather(*(store.tasks.submit([Spec(id=f"t{n}", type="job", nonce="n")]) for n in range(20)))
    assert (await store.queries.stats()).statuses[Status.READY] == 20
    await store.close()


async def test_a_file_that_was_made_without_the_table_of_marks_gets_it(store: SqliteStore, path: Path) -> None:
    await store.open()
    await store.close()
    with sqlite3.connect(path) as older:
        older.execute(f'DROP TABLE "test/{VERSION}/marks"')
    await store.open()
    assert await store.marks.swap("place", None, "1") is True
    assert await store.marks.get("place") == "1"


async def test_a_file_that_was_made_without_the_tables_of_control_gets_them(store: SqliteStore, path: Path) -> None:
    await store.open()
    await store.close()
    with sqlite3.connect(path) as older:
        older.execute(f'DROP TABLE "test/{VERSION}/control_documents"')
        older.execute(f'DROP TABLE "test/{VERSION}/control_entries"')
    await store.open()
    assert await store.control.swap("view", "mine", None, "1") is True
    assert await store.control.append("audit", ["a"], 10) == 1
    await store.close()
    await store.open()
    assert await store.control.get("view", "mine") == "1"
    assert await store.control.append("audit", ["b"], 1) == 2


async def test_a_disk_is_full_when_little_of_it_is_free(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.open()

    def disk(total: float, free: float) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=total, free=free))

    disk(20e9, 2e9)
    assert await store.queries.fullness() == pytest.approx(0.8)
    disk(4e9, 2e9)
    assert await store.queries.fullness() == pytest.approx(0.5)
    disk(10_000e9, 100e9)
    assert await store.queries.fullness() == 0, "there is much room left"
    disk(20e9, 0)
    assert await store.queries.fullness() == 1
