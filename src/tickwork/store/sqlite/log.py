"""The log over SQLite rows: each row has the facts of one transaction."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tickwork.model.facts import Event, Facts, grouped
from tickwork.store.rules import before_newest, is_about_task, missed
from tickwork.store.sqlite.core import Part, reads
from tickwork.store.unreadable import UNREADABLE, unreadable_fact

# at, kind, id, type, queue, worker_id, attempt, duration, detail
_FACT = tuple[int, str, str, str, str, str, int, float, str]
_facts = msgspec.msgpack.Decoder(list[_FACT]).decode
_fact = msgspec.msgpack.Decoder(_FACT).decode
_raw_facts = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class FactLog(Part):
    @reads
    def read(self, after: int, limit: int, task_id: str | None = None) -> tuple[list[Event], int]:
        return self._read(after, limit, task_id)

    @reads
    def read_groups(self, after: int, limit: int) -> tuple[list[Facts], int]:
        dropped = self._dropped()
        start, left = max(after, dropped), limit
        found: list[Facts] = []
        for number, facts in self._rows(start):
            if number > start:
                groups = _read_groups(facts, number)
            else:
                groups = grouped(event for event in _read_facts(facts, number) if event.seq > start)
            found += groups
            left -= sum(len(group.ids) for group in groups)
            if left <= 0:
                break
        return found, missed(after, dropped)

    def _dropped(self) -> int:
        first = self.reader.one("SELECT first FROM @events ORDER BY last LIMIT 1")
        last = self._last()
        return max(last if first is None else first[0] - 1, before_newest(last, self._core.policy.events_max))

    def _rows(self, start: int) -> Iterable[tuple[int, bytes]]:
        return self.reader.run("SELECT first, facts FROM @events WHERE last > ? ORDER BY last", (start,))

    def _read(self, after: int, limit: int, task_id: str | None) -> tuple[list[Event], int]:
        dropped = self._dropped()
        start = max(after, dropped)
        found: list[Event] = []
        for number, facts in self._rows(start):
            events = _read_facts(facts, number)
            if number <= start:
                events = [event for event in events if event.seq > start]
            if task_id is not None:
                events = [event for event in events if is_about_task(task_id, event.kind, event.id)]
            found += events
            if len(found) >= limit:
                break
        return found[:limit], missed(after, dropped)

    @reads
    def last(self) -> int:
        return self._last()

    def _last(self) -> int:
        number: int = self.reader.one("SELECT fact FROM @state")[0]
        return number


def _read_facts(facts: bytes, number: int) -> list[Event]:
    try:
        return [Event(seq, *fact) for seq, fact in enumerate(_facts(facts), number)]
    except UNREADABLE:
        return [_read_fact(fact, seq) for seq, fact in enumerate(_single_facts(facts), number)]


def _read_groups(facts: bytes, number: int) -> list[Facts]:
    """As `grouped` does, without an event for each."""
    try:
        rows = _facts(facts)
    except UNREADABLE:
        return grouped(_read_facts(facts, number))
    found: list[Facts] = []
    shared = None
    for place, (at, kind, subject, of_type, queue, worker_id, attempt, duration, detail) in enumerate(rows, number):
        this = (at, kind, of_type, queue, worker_id, attempt, detail)
        if this != shared:
            shared = this
            numbers: list[int] = []
            ids: list[str] = []
            durations: list[float] = []
            found.append(Facts(numbers, *this, ids, durations))
        numbers.append(place)
        ids.append(subject)
        durations.append(duration)
    return found


def _single_facts(facts: bytes) -> list[msgspec.Raw]:
    try:
        return _raw_facts(facts)
    except UNREADABLE:
        return [msgspec.Raw(b"")]


def _read_fact(fact: msgspec.Raw, seq: int) -> Event:
    try:
        return Event(seq, *_fact(fact))
    except UNREADABLE as error:
        return unreadable_fact(seq, error)
