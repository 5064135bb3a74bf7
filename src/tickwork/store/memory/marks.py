"""Marks of the memory store."""

from __future__ import annotations

from tickwork.store.memory.core import Core, Part, atomic


class Marks(Part):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._marks: dict[str, str] = {}

    @atomic
    def get(self, name: str) -> str | None:
        return self._marks.get(name)

    @atomic
    def swap(self, name: str, seen: str | None, new: str | None) -> bool:
        stored = self._marks.get(name)
        if stored == new:
            return True
        if stored != seen:
            return False
        if new is None:
            del self._marks[name]
        else:
            self._marks[name] = new
        return True
