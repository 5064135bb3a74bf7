"""Statistics of tasks in buckets of a minute, an hour and a day, as texts that stores keep as marks.

A bucket has a cell for each pair of type and queue. Past a bound of pairs the type is `other`, so that the size of a
bucket is bounded, whatever names types have. The open buckets stand in one text together with the number of the last
fact that they count: a fact is counted once, since both change in one step. Of the open buckets the hour lacks the
open minute, and the day lacks the open hour; whoever reads adds them up.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Iterable, Iterator
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from tickwork.model.sketch import Sketch

T = TypeVar("T")
Grain = Literal["minute", "hour", "day"]

SIZES: dict[Grain, int] = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
KEPT: dict[Grain, int] = {"minute": 3 * SIZES["hour"], "hour": 8 * SIZES["day"], "day": 400 * SIZES["day"]}
_LONGER: dict[Grain, Grain | None] = {"minute": "hour", "hour": "day", "day": None}
COUNTS = ("submitted", "started", "success", "failed", "dead", "cancelled", "retries", "losses", "snoozes")
CELLS_MAX = 200  # pairs of type and queue in a bucket
OTHER = "other"
OTHERS_MAX = 50  # queues that further types are told apart by

OPEN = "stats:open"
VERSION = "1"


class Unreadable(ValueError):
    """A text of a later version, or a broken one."""


def mark_of(grain: Grain, start: int) -> str:
    """Where the bucket that begins then is kept once it is closed."""
    return f"stats:{grain[0]}:{start // SIZES[grain]}"


def start_of(grain: Grain, at: int) -> int:
    return at - at % SIZES[grain]


def pack(value: object) -> str:
    return VERSION + binascii.b2a_base64(zlib.compress(msgspec.msgpack.encode(value), 1), newline=False).decode()


def unpack(text: str, kind: type[T]) -> T:
    if not text.startswith(VERSION):
        raise Unreadable(f"it is of version {text[:1]!r}")
    try:
        return msgspec.msgpack.decode(zlib.decompress(binascii.a2b_base64(text[len(VERSION) :])), type=kind)
    except (binascii.Error, zlib.error, msgspec.MsgspecError) as error:
        raise Unreadable(str(error)) from None


class CellData(Struct, array_like=True):
    type: str
    queue: str
    counts: list[int]
    waits: list[int]
    runs: list[int]


class BucketData(Struct, array_like=True):
    start: int
    missed: int = 0
    cells: list[CellData] = []


class OpenData(Struct, array_like=True):
    cursor: int  # the number of the last fact that is counted
    at: int  # its time
    minute: msgspec.Raw
    hour: msgspec.Raw
    day: msgspec.Raw
    kept: dict[str, list[int]] = {}  # the closed buckets that are kept, by grain: numbers of them, and how many follow


class Cell:
    """The counts, in the order of `COUNTS`, the waits until a worker took a task, and the times of its runs."""

    __slots__ = ("counts", "runs", "waits")

    def __init__(self) -> None:
        self.counts = [0] * len(COUNTS)
        self.waits = Sketch()
        self.runs = Sketch()

    def merge(self, other: Cell) -> None:
        self.counts = [mine + more for mine, more in zip(self.counts, other.counts, strict=True)]
        self.waits.merge(other.waits)
        self.runs.merge(other.runs)


class Bucket:
    """What happened from `start` on; `missed` are facts that had left the log before they were read."""

    __slots__ = ("cells", "missed", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.missed = 0
        self.cells: dict[str, dict[str, Cell]] = {}  # by type, then by queue

    @property
    def empty(self) -> bool:
        return not self.cells and not self.missed

    def cell(self, kind: str, queue: str) -> Cell:
        """That of this type and queue, or of `other` where there are too many."""
        queues = self.cells.get(kind)
        found = None if queues is None else queues.get(queue)
        return found or self._new_cell(kind, queue)

    def _new_cell(self, kind: str, queue: str) -> Cell:
        others = self.cells.get(OTHER, {})
        if kind != OTHER and sum(map(len, self.cells.values())) - len(others) >= CELLS_MAX:
            kind = OTHER
        if kind == OTHER and queue not in others and len(others) >= OTHERS_MAX:
            queue = OTHER
        return self.cells.setdefault(kind, {}).setdefault(queue, Cell())

    def merge(self, other: Bucket) -> None:
        self.missed += other.missed
        for kind, queue, cell in other:
            self.cell(kind, queue).merge(cell)

    def __iter__(self) -> Iterator[tuple[str, str, Cell]]:
        for kind, queues in self.cells.items():
            for queue, cell in queues.items():
                yield kind, queue, cell

    def data(self) -> BucketData:
        cells = [
            CellData(kind, queue, cell.counts, cell.waits.encode(), cell.runs.encode()) for kind, queue, cell in self
        ]
        return BucketData(self.start, self.missed, cells)

    @classmethod
    def of(cls, data: BucketData) -> Bucket:
        bucket = cls(data.start)
        bucket.missed = data.missed
        for each in data.cells:
            cell = bucket.cell(each.type, each.queue)
            cell.counts = (each.counts + [0] * len(COUNTS))[: len(COUNTS)]
            cell.waits, cell.runs = Sketch.decode(each.waits), Sketch.decode(each.runs)
        return bucket

    @classmethod
    def read(cls, text: str) -> Bucket:
        return cls.of(unpack(text, BucketData))


class Open:
    """The open buckets, and how far they have come."""

    def __init__(self, cursor: int, at: int) -> None:
        self.cursor = cursor
        self.at = at
        self.buckets: dict[Grain, Bucket] = {grain: Bucket(start_of(grain, at)) for grain in SIZES}
        self.kept: dict[Grain, list[int]] = {grain: [] for grain in SIZES}  # numbers of closed buckets, ascending
        self.closed: list[tuple[Grain, Bucket]] = []  # those that are not kept yet
        self._texts: dict[Grain, msgspec.Raw] = {}  # of the hour and the day, while they do not change

    def roll(self, at: int) -> None:
        """Close what has ended by then."""
        for grain, longer in _LONGER.items():
            bucket, start = self.buckets[grain], start_of(grain, at)
            if start <= bucket.start:
                return
            if not bucket.empty:
                self.closed.append((grain, bucket))
                if longer is not None:
                    self.buckets[longer].merge(bucket)
            self.buckets[grain] = Bucket(start)
            self._texts.clear()

    def text(self) -> str:
        minute, hour, day = (self._text_of(grain) for grain in SIZES)
        kept: dict[str, list[int]] = {grain: _ranges(numbers) for grain, numbers in self.kept.items()}
        return pack(OpenData(self.cursor, self.at, minute, hour, day, kept))

    def _text_of(self, grain: Grain) -> msgspec.Raw:
        if grain not in self._texts:
            made = msgspec.Raw(msgspec.msgpack.encode(self.buckets[grain].data()))
            if grain == "minute":
                return made
            self._texts[grain] = made
        return self._texts[grain]

    @classmethod
    def read(cls, text: str) -> Open:
        data = unpack(text, OpenData)
        found = cls(data.cursor, data.at)
        for grain, raw in zip(SIZES, (data.minute, data.hour, data.day), strict=True):
            try:
                found.buckets[grain] = Bucket.of(msgspec.msgpack.decode(raw, type=BucketData))
            except (msgspec.MsgspecError, ValueError) as error:
                raise Unreadable(str(error)) from None
            found.kept[grain] = list(_numbers(data.kept.get(grain, [])))
        return found


def _ranges(numbers: Iterable[int]) -> list[int]:
    """Ascending numbers as pairs: one of them, and how many follow it without a gap."""
    flat: list[int] = []
    for number in numbers:
        if flat and number == flat[-2] + flat[-1] + 1:
            flat[-1] += 1
        else:
            flat += [number, 0]
    return flat


def _numbers(ranges: list[int]) -> Iterator[int]:
    pairs = iter(ranges)
    for first, more in zip(pairs, pairs, strict=True):
        yield from range(first, first + more + 1)
