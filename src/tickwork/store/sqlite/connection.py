"""A connection to a SQLite file that knows its namespace, and the reader's side of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from tickwork.errors import StoreError
from tickwork.model.tasks import Record
from tickwork.store.contact import Contact
from tickwork.store.sqlite.files import Files
from tickwork.store.sqlite.migrations import MIGRATED
from tickwork.store.sqlite.schema import VERSION, qualify, version_of
from tickwork.store.sqlite.spec_cache import SpecCache
from tickwork.store.sqlite.thread import Session

BUSY_TIMEOUT = 5000  # milliseconds for which one who may wait does so for the transactions of others


def _any_text(data: bytes) -> str | bytes:
    """Bytes where a text is none: whoever reads that value sees that it is damaged, others are not kept from theirs."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


class Connection(Session):
    """Used by one thread at a time."""

    def __init__(self, files: Files, namespace: str, contact: Contact) -> None:
        self.files = files
        self.contact = contact
        self.path = files.path
        self.namespace = namespace
        self.db: sqlite3.Connection
        self.specs = SpecCache()
        self.claims = False  # whether a worker of this process has asked for tasks
        self.running: dict[str, Record] = {}  # as they are in the file, while no other process writes to it
        self._texts: dict[str, str] = {}

    def connect(self, mode: str) -> sqlite3.Connection:
        self.specs.clear()  # it may have been open before, on what has changed since
        self.running.clear()
        uri = self.files.uri(mode)
        # It is used by one thread at a time, but not always by the same.
        self.db = sqlite3.connect(
            uri,
            uri=True,
            timeout=BUSY_TIMEOUT / 1000,
            isolation_level=None,
            cached_statements=256,
            check_same_thread=False,
        )
        self.db.execute("PRAGMA trusted_schema = OFF")  # the file may come from others
        self.db.execute("PRAGMA cell_size_check = ON")
        return self.db

    def close(self) -> None:
        self.db.close()

    def begin(self) -> None:
        if self.files.gone:  # unless it has come back, nothing more is written
            self.files.check()
        if self.db.in_transaction:  # whoever was to roll it back was interrupted
            self.roll_back()

    def roll_back(self) -> None:
        try:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
        except sqlite3.Error as error:  # `begin` fails as long as the file is broken, and says so
            self.contact.log.error("SQLite file %s: cannot roll back: %s", self.path, error)

    def explain(self, error: sqlite3.Error) -> StoreError | None:
        """Our tables are gone: a newer version has taken the file over."""
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) != sqlite3.SQLITE_ERROR:
            return None
        try:
            found = version_of(self.db, self.namespace)
        except sqlite3.Error:
            return None
        if found is None or found <= VERSION:
            return None
        return StoreError(f"SQLite file {self.path}: {MIGRATED}")

    def _text(self, sql: str) -> str:
        text = self._texts.get(sql)
        if text is None:
            text = self._texts[sql] = qualify(sql, self.namespace)
        return text

    def run(self, sql: str, params: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self.db.execute(self._text(sql), params)

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self.db.executemany(self._text(sql), rows)

    def one(self, sql: str, params: Sequence[Any] = ()) -> Any:
        return self.run(sql, params).fetchone()

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        try:
            return self.run(sql, params).fetchall()
        except sqlite3.OperationalError as error:
            if "Could not decode to UTF-8" not in str(error):
                raise
        self.db.text_factory = _any_text
        try:
            return self.run(sql, params).fetchall()
        finally:
            self.db.text_factory = str


class Reader(Connection):
    """Sees one consistent moment a group; never waits for the writer."""

    def open(self) -> sqlite3.Connection:
        db = self.connect("ro")
        db.execute("PRAGMA query_only = 1")
        return db

    def begin(self) -> None:
        super().begin()
        self.db.execute("BEGIN")

    def commit(self) -> None:
        self.db.execute("COMMIT")
