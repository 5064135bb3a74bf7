"""Marks over SQLite rows."""

from __future__ import annotations

from collections.abc import Sequence

from tickwork.model.facts import NewFact
from tickwork.store.sqlite.core import Part, reads, writes


class Marks(Part):
    @reads
    def get(self, name: str) -> str | None:
        row: tuple[str] | None = self.reader.one("SELECT mark FROM @marks WHERE name = ?", (name,))
        return None if row is None else row[0]

    @writes
    def swap(self, name: str, seen: str | None, new: str | None, facts: Sequence[NewFact] = ()) -> bool:
        row = self.tx.one("SELECT mark FROM @marks WHERE name = ?", (name,))
        stored = None if row is None else row[0]
        if stored == new:
            return True
        if stored != seen:
            return False
        if new is None:
            self.tx.run("DELETE FROM @marks WHERE name = ?", (name,))
        else:
            self.tx.run("INSERT OR REPLACE INTO @marks VALUES (?, ?)", (name, new))
        for fact in facts:
            self.tx.tell(self.now(), fact.kind, fact.id, fact.detail)
        return True
