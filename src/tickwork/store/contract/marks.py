"""Marks: small texts by name that outlive the process that wrote them, such as how far a reader of the log has come."""

from __future__ import annotations

from typing import Protocol


class Marks(Protocol):
    async def get(self, name: str) -> str | None: ...

    async def swap(self, name: str, seen: str | None, new: str | None) -> bool:
        """Compare and set: False, and nothing is changed, when the mark is not `seen` any more. None is no mark: as
        `seen` it stands for one that is not there, as `new` it removes it. True also when it is `new` already, so that
        a call may be sent twice."""
