"""The log of facts: every change of a task, schedule, worker or leader, numbered."""

from __future__ import annotations

from typing import Protocol

from tickwork.model.facts import Event, Facts


class FactLog(Protocol):
    async def read(self, after: int, limit: int, task_id: str | None = None) -> tuple[list[Event], int]:
        """Facts after that number, in order, and how many facts after it are not in the log any more.

        Facts are numbered one by one. But a store that opens a server or a file which it has not used before cannot
        know whether the last facts were lost: it then goes on at the number of the current time (2^20 numbers for each
        second since the epoch), so that no number is given twice. The numbers left out are counted as dropped.

        With several partitions the numbers grow with gaps, facts of different partitions are in order to the
        millisecond, and the bound of the log is that of each partition. The second answer is then 1 if any facts after
        that number are gone. In every case a reader that goes on from the last number it got misses nothing that is
        still there: no fact gets a smaller number than one that was read before.
        """

    async def read_groups(self, after: int, limit: int) -> tuple[list[Facts], int]:
        """The facts that `read` answers, in groups, for those who read them all: `limit` of them or a few more, or as
        many as there are. A store that keeps them one by one answers `grouped` of what it reads."""

    async def last(self) -> int:
        """The number of the newest fact, or the last number that was left out after it; 0 for an empty log."""
