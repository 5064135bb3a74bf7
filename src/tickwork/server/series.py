"""Statistics over time, as charts show them: counts a minute, an hour or a day, of all or by type or queue."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from tickwork.model.reports import Percentiles
from tickwork.model.sketch import Sketch
from tickwork.model.statistics import COUNTS, SIZES, Cell, Grain, start_of
from tickwork.server.spaces import Space

By = Literal["all", "type", "queue"]
_SHARES = (0.5, 0.95, 0.99)


class Line:
    """The cells of one name, one for each span of time; the last one is not over yet."""

    def __init__(self, grain: Grain, cells: list[Cell]) -> None:
        self._grain = grain
        self.cells = cells

    def counts(self, what: str) -> list[int]:
        if what == "ended":
            ends = [self.counts(each) for each in ("success", "failed", "dead", "cancelled")]
            return [sum(each) for each in zip(*ends, strict=True)]
        place = COUNTS.index(what)
        return [cell.counts[place] for cell in self.cells]

    def rate(self, what: str, over: timedelta) -> float:
        """A minute, of the spans that are over."""
        spans = max(int(over.total_seconds() * 1000 / SIZES[self._grain]), 1)
        found = self.counts(what)[-spans - 1 : -1]
        return sum(found) / max(len(found), 1) * 60_000 / SIZES[self._grain]

    @property
    def failure_rate(self) -> float | None:
        failed = sum(self.counts("failed")) + sum(self.counts("dead"))
        ended = failed + sum(self.counts("success"))
        return failed / ended if ended else None

    def _whole(self) -> Cell:
        whole = Cell()
        for cell in self.cells:
            whole.merge(cell)
        return whole

    @property
    def wait(self) -> Percentiles | None:
        return percentiles(self._whole().waits)

    @property
    def run(self) -> Percentiles | None:
        return percentiles(self._whole().runs)


class Series:
    def __init__(
        self, grain: Grain, starts: list[int], lines: dict[str, list[Cell]], queues: dict[str, set[str]]
    ) -> None:
        self.grain = grain
        self.starts = starts
        self.queues = queues  # of each type: those in which it was seen
        self._lines = lines

    @property
    def names(self) -> list[str]:
        return sorted(self._lines)

    def of(self, name: str) -> Line:
        return Line(self.grain, self._lines.get(name) or [Cell() for _ in self.starts])


def percentiles(sketch: Sketch) -> Percentiles | None:
    return Percentiles(*sketch.percentiles(_SHARES)) if sketch.count else None


def grain_for(past: timedelta) -> Grain:
    """So that a chart has some dozens to some hundreds of points."""
    if past <= timedelta(hours=3):
        return "minute"
    return "hour" if past <= timedelta(days=8) else "day"


async def series(space: Space, past: timedelta, by: By = "all") -> Series:
    """Of the last time, up to now."""
    grain = grain_for(past)
    now = (await space.store()).now()
    size = SIZES[grain]
    first = start_of(grain, now - round(past.total_seconds() * 1000)) + size
    starts = list(range(first, now + 1, size))
    buckets = await space.buckets.read(await space.store(), grain, starts)
    lines: dict[str, list[Cell]] = {}
    queues: dict[str, set[str]] = {}
    for place, bucket in enumerate(buckets):
        for kind, queue, cell in bucket:
            queues.setdefault(kind, set()).add(queue)
            name = "" if by == "all" else kind if by == "type" else queue
            line = lines.get(name)
            if line is None:
                line = lines[name] = [Cell() for _ in starts]
            line[place].merge(cell)
    return Series(grain, starts, lines, queues)
