"""Documents and journals over SQLite rows."""

from __future__ import annotations

from collections.abc import Sequence

from tickwork.store.contract import DOCUMENTS_PAGE, ENTRIES_PAGE, Document, Entry
from tickwork.store.rules import bounded_limit, number_before
from tickwork.store.sqlite.core import Part, reads, writes


class Control(Part):
    @reads
    def get(self, kind: str, name: str) -> str | None:
        row: tuple[str] | None = self.reader.one(
            "SELECT text FROM @control_documents WHERE kind = ? AND name = ?", (kind, name)
        )
        return None if row is None else row[0]

    @reads
    def page(self, kind: str, after: str = "", limit: int = DOCUMENTS_PAGE) -> list[Document]:
        rows = self.reader.all(
            "SELECT name, text FROM @control_documents WHERE kind = ? AND name > ? ORDER BY name LIMIT ?",
            (kind, after, bounded_limit(limit, DOCUMENTS_PAGE)),
        )
        return [Document(*row) for row in rows]

    @writes
    def swap(self, kind: str, name: str, seen: str | None, new: str | None, most: int = 0) -> bool:
        row = self.tx.one("SELECT text FROM @control_documents WHERE kind = ? AND name = ?", (kind, name))
        stored = None if row is None else row[0]
        if stored == new:
            return True
        if stored != seen or (stored is None and most > 0 and self._has_as_many(kind, most)):
            return False
        if new is None:
            self.tx.run("DELETE FROM @control_documents WHERE kind = ? AND name = ?", (kind, name))
        else:
            self.tx.run("INSERT OR REPLACE INTO @control_documents VALUES (?, ?, ?)", (kind, name, new))
        return True

    def _has_as_many(self, kind: str, most: int) -> bool:
        """Looks at no more of them than that."""
        sql = "SELECT 1 FROM @control_documents WHERE kind = ? LIMIT 1 OFFSET ?"
        return self.tx.one(sql, (kind, most - 1)) is not None

    @writes
    def append(self, journal: str, texts: Sequence[str], keep: int) -> int:
        # The newest entry is never dropped, so it tells which numbers were given.
        last = self.tx.one("SELECT max(number) FROM @control_entries WHERE journal = ?", (journal,))[0] or 0
        now, newest = self.now(), last + len(texts)
        rows = ((journal, number, now, text) for number, text in enumerate(texts, last + 1))
        self.tx.many("INSERT INTO @control_entries VALUES (?, ?, ?, ?)", rows)
        gone = newest - max(keep, 1)
        self.tx.run("DELETE FROM @control_entries WHERE journal = ? AND number <= ?", (journal, gone))
        return int(newest)

    @reads
    def read(self, journal: str, before: int | None = None, limit: int = 100) -> list[Entry]:
        rows = self.reader.all(
            "SELECT number, at, text FROM @control_entries WHERE journal = ? AND number < ?"
            " ORDER BY number DESC LIMIT ?",
            (journal, number_before(before), bounded_limit(limit, ENTRIES_PAGE)),
        )
        return [Entry(*row) for row in rows]
