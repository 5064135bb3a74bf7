"""Marks of the memory store."""

from __future__ import annotations

from collections.abc import Sequence

from tickwork.model.facts import NewFact
from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.memory.log import FactLog


class Marks(Part):
    def __init__(self, core: Core, log: FactLog) -> None:
        super().__init__(core)
        self._log = log
        self._marks: dict[str, str] = {}

    @atomic
    def get(self, name: str) -> str | None:
        return self._marks.get(name)

    @atomic
    def swap(self, name: str, seen: str | None, new: str | None, facts: Sequence[NewFact] = ()) -> bool:
        stored = self._marks.get(name)
        if stored == new:
            return True
        if stored != seen:
            return False
        if new is None:
            del self._marks[name]
        else:
            self._marks[name] = new
        now = self._core.now()
        for fact in facts:
            self._log.add(now, fact.kind, fact.id, fact.detail)
        return True
