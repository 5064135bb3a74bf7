"""A change of a text: from here to there, something else."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """What stands between two positions is replaced; no line comes or goes by it."""

    start: int
    end: int
    new: str
    kind: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]
