"""Tasks by type, queue and key, in the order of submits: kept only while somebody wants such lists."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from tickwork.model.tasks import Record
from tickwork.store.contract import Query


class Numbers:
    """Numbers of tasks, which only come in order. Removal is lazy: the set is the truth."""

    def __init__(self) -> None:
        self._there: set[int] = set()
        self._order: list[int] = []

    def add(self, seq: int) -> None:
        self._there.add(seq)
        self._order.append(seq)

    def discard(self, seq: int) -> None:
        self._there.discard(seq)
        if len(self._order) > 2 * len(self._there) + 64:
            self._order = sorted(self._there)

    def before(self, seq: int) -> Iterator[int]:
        """Those that are smaller, the greatest first."""
        for place in range(bisect_left(self._order, seq) - 1, -1, -1):
            if self._order[place] in self._there:
                yield self._order[place]

    def __len__(self) -> int:
        return len(self._there)


class Lists:
    def __init__(self) -> None:
        self.on = False
        self._numbers: dict[tuple[str, str], Numbers] = {}

    def switch(self, on: bool, records: Iterable[Record]) -> None:
        self.on = on
        self._numbers = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        if self.on:
            for name in _names(record):
                self._numbers.setdefault(name, Numbers()).add(record.seq)

    def remove(self, record: Record) -> None:
        if not self.on:
            return
        for name in _names(record):
            self._numbers[name].discard(record.seq)
            if not self._numbers[name]:
                del self._numbers[name]

    def of(self, query: Query) -> Numbers | None:
        """The tasks among which all are that a query asks for. None if it has to look at all tasks."""
        wanted = [(kind, name) for kind in ("key", "type", "queue") if (name := getattr(query, kind)) is not None]
        return self._numbers.get(wanted[0], Numbers()) if self.on and wanted else None

    def counts(self) -> dict[tuple[str, str], int]:
        return {name: len(numbers) for name, numbers in self._numbers.items()}


def _names(record: Record) -> list[tuple[str, str]]:
    spec = record.spec
    names = [("type", spec.type), ("queue", spec.queue)]
    return names if spec.key is None else [*names, ("key", spec.key)]
