"""Documents and journals of the memory store."""

from __future__ import annotations

from collections.abc import Sequence

from tickwork.store.contract import DOCUMENTS_PAGE, ENTRIES_PAGE, Document, Entry
from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.rules import bounded_limit


class Control(Part):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._documents: dict[str, dict[str, str]] = {}  # by kind and name
        self._journals: dict[str, list[Entry]] = {}

    @atomic
    def get(self, kind: str, name: str) -> str | None:
        return self._documents.get(kind, {}).get(name)

    @atomic
    def page(self, kind: str, after: str = "", limit: int = DOCUMENTS_PAGE) -> list[Document]:
        documents = self._documents.get(kind, {})
        names = sorted(name for name in documents if name > after)
        return [Document(name, documents[name]) for name in names[: bounded_limit(limit, DOCUMENTS_PAGE)]]

    @atomic
    def swap(self, kind: str, name: str, seen: str | None, new: str | None, most: int = 0) -> bool:
        documents = self._documents.setdefault(kind, {})
        stored = documents.get(name)
        if stored == new:
            return True
        if stored != seen or (stored is None and 0 < most <= len(documents)):
            return False
        if new is None:
            del documents[name]
        else:
            documents[name] = new
        return True

    @atomic
    def append(self, journal: str, texts: Sequence[str], keep: int) -> int:
        entries = self._journals.setdefault(journal, [])
        last, now = entries[-1].number if entries else 0, self._core.now()
        entries += [Entry(number, now, text) for number, text in enumerate(texts, last + 1)]
        del entries[: -max(keep, 1)]
        return last + len(texts)

    @atomic
    def read(self, journal: str, before: int | None = None, limit: int = 100) -> list[Entry]:
        entries = self._journals.get(journal, [])
        found = [entry for entry in reversed(entries) if before is None or entry.number < before]
        return found[: bounded_limit(limit, ENTRIES_PAGE)]
