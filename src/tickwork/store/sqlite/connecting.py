"""Opening a connection that writes: the file is made, switched to write-ahead logging, and refused in plain words."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tickwork.errors import StoreError

OLDEST_SQLITE = (3, 35, 0)  # RETURNING
OPEN_PATIENCE = 5.0  # seconds to wait for others who open a new file at the same moment
OPEN_PAUSE = 0.02


def check_version() -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; Tickwork needs 3.35 or newer")


@contextmanager
def closed_if_refused(db: sqlite3.Connection, path: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        db.close()
        if isinstance(error, sqlite3.Error) and code_of(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            raise _no_log(path, str(error)) from None
        raise


def switch_to_log(db: sqlite3.Connection, path: str) -> None:
    """Of several who switch a new file at one moment all but one are refused at once, whatever their timeout."""
    deadline = time.monotonic() + OPEN_PATIENCE
    while True:
        try:
            mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(OPEN_PAUSE)
    if mode != "wal":
        raise _no_log(path, f"it stays in mode {mode}")


def _no_log(path: str, why: str) -> StoreError:
    return StoreError(
        f"SQLite file {path}: cannot switch to write-ahead logging ({why}). This user must be able to write to the "
        "file and to its folder, which must not be on a network file system."
    )


def code_of(error: sqlite3.Error) -> int:
    """Without its details."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
