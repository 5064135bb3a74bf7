"""Marks on Redis: one hash of the namespace."""

from __future__ import annotations

from collections.abc import Sequence

from tickwork.model.facts import NewFact
from tickwork.store.redis.core import Part


class Marks(Part):
    async def get(self, name: str) -> str | None:
        root = self._core.layout.root
        found: bytes | None = await self._core.ask(root, "HGET", f"{root}marks", name)
        return None if found is None else found.decode()

    async def swap(self, name: str, seen: str | None, new: str | None, facts: Sequence[NewFact] = ()) -> bool:
        # A text is sent with a letter before it, as the script is to tell an empty one from none.
        texts = ("" if text is None else f"={text}" for text in (seen, new))
        told = (text for fact in facts for text in (fact.kind, fact.id, fact.detail))
        return bool(await self._core.run("mark", self._core.layout.root, name, *texts, *told))
