"""The files of a SQLite store: opened by several at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tickwork.errors import StoreUnavailable
from tickwork.store.sqlite import SqliteStore, session


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tick.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(str(path), "test")
    yield store
    await store.close()


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

    monkeypatch.setattr("tickwork.store.sqlite.session.time.sleep", end_the_other)
    await store.open()
    assert pauses == [session.OPEN_PAUSE]
    holder.close()


async def test_a_new_file_that_another_does_not_let_go_of_is_unavailable(
    store: SqliteStore, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "OPEN_PATIENCE", 0.1)
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.open()
    holder.close()
