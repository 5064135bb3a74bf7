"""What the homes of the memory store are made of: lanes of ready tasks, and indexes by time."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice

from tickwork.model.tasks import Place, Record
from tickwork.store.rules import FAIR_HEADS, FORGOTTEN, VIRTUAL_MAX, turn_of


class TimeIndex:
    """Ids ordered by (time, tie). Removal is lazy: the dict is the truth, the heap only finds the first one fast."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, str]] = []
        self._sorted = True

    def put(self, item: str, at: int, tie: int = 0) -> None:
        self._keys[item] = (at, tie)
        heapq.heappush(self._heap, (at, tie, item))
        self._sorted = False
        if len(self._heap) > 2 * len(self._keys) + 64:
            self._heap = [(at, tie, item) for item, (at, tie) in self._keys.items()]
            heapq.heapify(self._heap)

    def remove(self, item: str) -> None:
        self._keys.pop(item, None)

    def at(self, item: str) -> int:
        """The item's time, 0 when it is not here."""
        return self._keys.get(item, (0, 0))[0]

    def first(self) -> tuple[int, str] | None:
        while self._heap:
            at, tie, item = self._heap[0]
            if self._keys.get(item) == (at, tie):
                return at, item
            heapq.heappop(self._heap)
            self._sorted = False
        return None

    def take_until(self, now: int, limit: int) -> list[str]:
        """Take out at most `limit` items whose time is not after `now`, in order."""
        taken: list[str] = []
        while len(taken) < limit and (first := self.first()) is not None and first[0] <= now:
            heapq.heappop(self._heap)
            self._sorted = False
            del self._keys[first[1]]
            taken.append(first[1])
        return taken

    def first_until(self, now: int, limit: int) -> list[str]:
        """The same items, which stay."""
        taken: list[tuple[int, int, str]] = []
        while len(taken) < limit and (first := self.first()) is not None and first[0] <= now:
            taken.append(heapq.heappop(self._heap))
            while self._heap and self._heap[0] == taken[-1]:  # it was put twice
                heapq.heappop(self._heap)
        for entry in taken:
            heapq.heappush(self._heap, entry)
        if taken:
            self._sorted = False
        return [item for _, _, item in taken]

    def after(self, at: int, tie: int) -> Iterator[str]:
        """Those that come after this key, in order. For that the heap is sorted, which leaves it a heap; it stays so
        while nothing changes, so that walking over many in pages costs one sorting."""
        if not self._sorted:
            self._heap.sort()
            self._sorted = True
        before: tuple[int, int, str] | None = None
        for entry in islice(self._heap, bisect_left(self._heap, (at, tie + 1, "")), None):
            if entry != before and self._keys.get(entry[2]) == entry[:2]:
                yield entry[2]
            before = entry

    def __contains__(self, item: str) -> bool:
        return item in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)


Shelf = OrderedDict[str, Record]


class FairShelf:
    """Ready tasks in the order of virtual time, ties in the order of submits. See `rules.turn_of`."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._order = TimeIndex()
        self._now = 0  # the virtual time of the task last taken
        self._last = TimeIndex()  # by key, that of its last task

    def add(self, record: Record) -> None:
        """Give a task its turn, which is its position."""
        if not self._records and self._last:  # nobody waits, so nobody is ahead of others
            self._now, self._last = 0, TimeIndex()
        key = record.spec.key or ""
        record.position = turn_of(self._now, self._last.at(key), record.spec.fair)
        self._last.put(key, record.position)
        self._records[record.id] = record
        self._order.put(record.id, record.position, record.seq)

    def remove(self, record: Record) -> None:
        del self._records[record.id]
        self._order.remove(record.id)

    def serve(self, record: Record) -> None:
        """A task was taken to be run."""
        self._now = max(self._now, record.position)
        self.prune(FORGOTTEN)

    def prune(self, limit: int) -> None:
        """Forget keys that are not ahead of the lane, or any if nobody waits."""
        self._last.take_until(self._now if self._records else VIRTUAL_MAX, limit)

    def known(self) -> int:
        """Of how many keys it knows how far they are."""
        return len(self._last)

    def first(self) -> Record | None:
        first = self._order.first()
        return None if first is None else self._records[first[1]]

    def __iter__(self) -> Iterator[Record]:
        return (self._records[task_id] for task_id in self._order.after(-1, 0))

    def __len__(self) -> int:
        return len(self._records)


class Lane:
    """The ready tasks of one queue in one band."""

    def __init__(self) -> None:
        self.fair: FairShelf | None = None
        self.front: Shelf = OrderedDict()
        self.main: Shelf = OrderedDict()
        self.sides: dict[str, Shelf] = {}  # by kind

    def add(self, record: Record) -> None:
        if record.place is Place.FAIR:
            if self.fair is None:
                self.fair = FairShelf()
            self.fair.add(record)
        else:
            self.shelf(record)[record.id] = record

    def shelf(self, record: Record) -> Shelf:
        if record.place == Place.MAIN:
            return self.main
        if record.place == Place.FRONT:
            return self.front
        return self.sides.setdefault(record.spec.kind, OrderedDict())

    def remove(self, record: Record) -> None:
        if self.fair is not None and record.place is Place.FAIR:
            self.fair.remove(record)
            return
        shelf = self.shelf(record)
        del shelf[record.id]
        if not shelf and record.place == Place.SIDE:
            del self.sides[record.spec.kind]

    def first_aside(self, may_start: Callable[[str], bool]) -> Record | None:
        """The first parked task, of all the kinds that may start."""
        heads = [next(iter(side.values())) for kind, side in self.sides.items() if may_start(kind)]
        return min(heads, key=lambda record: record.position) if heads else None

    def heads(self) -> Iterator[Record]:
        """The first task of each of its shelves, and the first few of the fair one."""
        for shelf in (self.front, self.main, *self.sides.values()):
            if shelf:
                yield next(iter(shelf.values()))
        if self.fair:
            yield from islice(self.fair, FAIR_HEADS)

    def in_turn(self) -> Iterator[Record]:
        """What is in neither the front nor a side lane, in order."""
        yield from self.main.values()
        if self.fair:
            yield from self.fair

    def __iter__(self) -> Iterator[Record]:
        yield from self.front.values()
        for side in self.sides.values():
            yield from side.values()
        yield from self.in_turn()

    def __len__(self) -> int:
        return len(self.front) + len(self.main) + sum(map(len, self.sides.values())) + len(self.fair or ())
