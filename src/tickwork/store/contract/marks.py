"""Marks: small texts by name that outlive the process that wrote them, such as how far a reader of the log has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tickwork.model.facts import NewFact


class Marks(Protocol):
    async def get(self, name: str) -> str | None: ...

    async def swap(self, name: str, seen: str | None, new: str | None, facts: Sequence[NewFact] = ()) -> bool:
        """Compare and set: False, and nothing is changed, when the mark is not `seen` any more. None is no mark: as
        `seen` it stands for one that is not there, as `new` it removes it. True also when it is `new` already, so that
        a call may be sent twice.

        `facts` are appended to the log, in their order, in the same step as the mark changes. If it does not change,
        because it is not `seen` or is `new` already, no fact is appended: a call that is sent twice tells of it once.
        Whoever gives facts must never set a mark to a text that it had before, else a call that arrives late, after
        others, changes it again."""
