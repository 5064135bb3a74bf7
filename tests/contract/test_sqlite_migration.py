"""A SQLite file of an older version, brought to this one: at open or by hand, killed in the middle, beside others.

That everything in it is found afterwards is in `test_layout2_data.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.layout2 import NAMESPACE, WRITTEN_AT, copy_sqlite, describe, expected
from tickwork.clock import ManualClock
from tickwork.errors import StoreError
from tickwork.model.policy import Policy
from tickwork.model.tasks import ParkReason, Status
from tickwork.store.contract import Query
from tickwork.store.sqlite import SqliteStore, migrations
from tickwork.store.sqlite.migrations import MIGRATED, STEPS, Report
from tickwork.store.sqlite.schema import VERSION, owner_of, qualify

HOUR = 3_600_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return copy_sqlite(tmp_path)


def store_at(path: Path, now: int = WRITTEN_AT) -> SqliteStore:
    return SqliteStore(str(path), NAMESPACE, Policy(), ManualClock(now))


def contents(path: Path) -> dict[str, Any]:
    """All tables of the file, row by row."""
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def schema(path: Path) -> list[tuple[str, str, str]]:
    """Tables with their columns, and indexes, in whatever order they were made."""
    with closing(sqlite3.connect(path)) as db:
        found: list[tuple[str, str, str]] = []
        for kind, name in db.execute(
            "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'index')"
        ).fetchall():
            call = "table_info" if kind == "table" else "index_xinfo"
            columns = [tuple(row[1:]) for row in db.execute(f'PRAGMA {call}("{name}")')]
            found.append((kind, name, str(columns)))
        return sorted(found)


async def test_a_file_is_migrated_at_open_once_no_older_worker_is_alive(path: Path) -> None:
    store = store_at(path, WRITTEN_AT + HOUR)
    await store.open()
    assert len((await describe(store))["tasks"]) == len(expected()["tasks"])
    await store.close()
    assert dict(contents(path)["tickwork_schema"]) == {NAMESPACE: VERSION}


async def test_a_file_on_which_older_workers_are_alive_is_left_alone(path: Path) -> None:
    before = contents(path)
    store = store_at(path)
    with pytest.raises(StoreError, match=r"of an older version of Tickwork: w1, w2\. Stop them") as error:
        await store.open()
    assert "tickwork migrate --take-over" in str(error.value)
    with pytest.raises(StoreError, match="older version of Tickwork"):
        await store.migrate(take_over=False, report=lambda count: None)
    assert contents(path) == before


async def test_a_worker_whose_process_is_gone_does_not_count(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "is_gone", lambda *process: True)
    store = store_at(path)
    await store.open()
    await store.close()


async def test_a_migration_takes_over_if_it_is_told_to(path: Path) -> None:
    told: list[int] = []
    assert await store_at(path).migrate(take_over=True, report=told.append)
    assert told == [len(expected()["tasks"])]


async def test_a_second_migration_does_nothing(path: Path) -> None:
    assert await store_at(path).migrate(take_over=True, report=lambda count: None)
    before = contents(path)
    assert not await store_at(path).migrate(take_over=True, report=lambda count: None)
    assert contents(path) == before


async def test_a_migrated_file_has_the_tables_and_indexes_of_a_new_one(path: Path, tmp_path: Path) -> None:
    await store_at(path).migrate(take_over=True, report=lambda count: None)
    new = SqliteStore(str(tmp_path / "new.db"), NAMESPACE)
    await new.open()
    await new.close()
    assert schema(path) == schema(tmp_path / "new.db")


async def test_keys_and_reasons_to_wait_are_found_by_scripts_now(path: Path) -> None:
    await store_at(path).migrate(take_over=True, report=lambda count: None)
    store = store_at(path)
    await store.open()
    keys = {task["spec"]["key"] for task in expected()["tasks"].values() if "spec" in task} - {None}
    assert keys, "the fixture has keys"
    await store.operators.index(True)
    for key in keys:
        records, _ = await store.queries.page(Query(key=key))
        assert {record.spec.key for record in records} == {key}
    parked = {
        record.id: record.parked
        for record in (await store.queries.page(Query(Status.READY, limit=1000)))[0]
        if record.parked is not None
    }
    in_side_lanes = [task_id for lane, ids in expected()["ready"].items() if lane.endswith("side") for task_id in ids]
    assert sorted(parked) == sorted(in_side_lanes)
    assert set(parked.values()) == {ParkReason.TYPE_PAUSED}
    await store.close()


KILLED = """
import signal
from tickwork.store.sqlite import SqliteStore, migrations

def stop(*args):
    print("in the transaction", flush=True)
    signal.pause()

migrations.{place} = stop
import asyncio
asyncio.run(SqliteStore({path!r}, {namespace!r}).migrate(True, lambda count: None))
"""


@pytest.mark.parametrize("place", ["refuse_older", "_fill_keys"])
def test_a_migration_that_is_killed_has_changed_nothing(path: Path, place: str) -> None:
    before = contents(path)
    code = KILLED.format(path=str(path), namespace=NAMESPACE, place=place)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in the transaction\n"
        os.kill(process.pid, signal.SIGKILL)
    assert contents(path) == before
    assert asyncio.run(store_at(path).migrate(take_over=True, report=lambda count: None))


def test_two_at_once_migrate_once(path: Path) -> None:
    code = (
        "import asyncio\nfrom tickwork.store.sqlite import SqliteStore\n"
        f"print(asyncio.run(SqliteStore({str(path)!r}, {NAMESPACE!r}).migrate(True, lambda count: None)))"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = sorted(process.communicate()[0].strip() for process in both)
    assert answers == ["False", "True"]


async def test_another_namespace_of_the_file_is_left_alone(path: Path) -> None:
    store = SqliteStore(str(path), "another")
    await store.open()
    await store.close()
    await store_at(path).migrate(take_over=True, report=lambda count: None)
    await store.open()
    assert await store.queries.audit() == []
    await store.close()
    assert dict(contents(path)["tickwork_schema"]) == {NAMESPACE: VERSION, "another": VERSION}


async def test_statements_of_the_older_version_are_refused_with_a_sentence(path: Path) -> None:
    with closing(sqlite3.connect(path)) as older:
        older.execute(f'SELECT * FROM "{NAMESPACE}/state"').fetchall()
        await store_at(path).migrate(take_over=True, report=lambda count: None)
        for statement in (f'SELECT seq FROM "{NAMESPACE}/state"', f'SELECT * FROM "{NAMESPACE}/tasks" WHERE id = 1'):
            with pytest.raises(sqlite3.OperationalError, match=MIGRATED):
                older.execute(statement)
        for table in ("tasks", "specs", "events", "pauses", "locks"):
            with pytest.raises(sqlite3.OperationalError):
                older.execute(f'INSERT INTO "{NAMESPACE}/{table}" DEFAULT VALUES')


def to_next(db: sqlite3.Connection, namespace: str, report: Report) -> None:
    """What a next version would do at least: all tables get its number."""
    names = [
        name
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if name.startswith(f"{owner_of(namespace)}/{VERSION}/")
    ]
    for name in names:
        new = qualify("@" + name.rpartition("/")[2], namespace, VERSION + 1)
        db.execute(f'ALTER TABLE "{name}" RENAME TO {new}')
    migrations.refuse_older(db, names)


async def test_a_process_that_was_overtaken_by_a_newer_version_is_told_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_at(path).migrate(take_over=True, report=lambda count: None)
    store = store_at(path)
    await store.open()
    await store.operators.index(True)
    with monkeypatch.context() as newer:
        newer.setitem(STEPS, VERSION, to_next)
        newer.setattr(migrations, "VERSION", VERSION + 1)
        assert await store_at(path).migrate(take_over=True, report=lambda count: None)
    for call in (store.queries.stats, lambda: store.tasks.promote(10), lambda: store.operators.pause("queue", "q")):
        with pytest.raises(StoreError, match=MIGRATED):
            await call()
    await store.close()
    with pytest.raises(StoreError, match=rf"schema version {VERSION + 1}, this Tickwork reads version {VERSION}"):
        await store_at(path).open()
