"""Failures grouped by what they have in common, as a text that stores keep as a mark: a bounded number of groups, of
which the ones that were not seen for the longest time go first."""

from __future__ import annotations

from msgspec import Struct

from tickwork.model.facts import Event, Fact
from tickwork.model.fingerprint import fingerprint
from tickwork.model.statistics import SIZES, pack, unpack

FAILURES = "stats:failures"
GROUPS_MAX = 500
HOURS_KEPT = 24
SAMPLES_MAX = 5
TYPES_MAX = 5
_ENDS = (Fact.TASK_FAILED, Fact.TASK_DIED)


class Group(Struct, array_like=True):
    id: str
    error: str
    message: str
    place: str
    first: int  # milliseconds, as the next
    last: int
    total: int = 0  # attempts that have failed so
    dead: int = 0  # tasks that have ended by it
    types: list[str] = []
    tasks: list[str] = []  # the last ones
    hours: dict[int, int] = {}  # attempts by the hour since the epoch


class _Data(Struct, array_like=True):
    cursor: int
    groups: list[Group]


class Failures:
    """The groups, the one that was seen last at the end. It knows by itself up to which fact it has counted."""

    def __init__(self, cursor: int = 0) -> None:
        self.cursor = cursor
        self.groups: dict[str, Group] = {}
        self.changed = False

    def take(self, fact: Event) -> None:
        if fact.seq <= self.cursor:
            return
        self.cursor = fact.seq
        self.changed = True
        found = fingerprint(fact.detail)
        group = self.groups.pop(found.id, None)
        if group is None:
            group = Group(found.id, found.error, found.message, found.place, fact.at, fact.at)
            if len(self.groups) >= GROUPS_MAX:
                del self.groups[next(iter(self.groups))]
        self.groups[found.id] = group
        _count(group, fact)

    def text(self) -> str:
        return pack(_Data(self.cursor, list(self.groups.values())))

    @classmethod
    def read(cls, text: str) -> Failures:
        data = unpack(text, _Data)
        found = cls(data.cursor)
        found.groups = {group.id: group for group in data.groups}
        return found


def _count(group: Group, fact: Event) -> None:
    hour = fact.at // SIZES["hour"]
    group.last = max(group.last, fact.at)
    group.total += 1
    group.dead += fact.kind in _ENDS
    group.hours[hour] = group.hours.get(hour, 0) + 1
    if len(group.hours) > HOURS_KEPT:
        group.hours = {each: count for each, count in group.hours.items() if each > hour - HOURS_KEPT}
    if fact.type not in group.types and len(group.types) < TYPES_MAX:
        group.types.append(fact.type)
    if fact.id not in group.tasks:
        group.tasks = [*group.tasks[-SAMPLES_MAX + 1 :], fact.id]
