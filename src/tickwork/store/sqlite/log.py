"""The log over SQLite rows: each row has the facts of one transaction."""

from __future__ import annotations

import msgspec

from tickwork.model.facts import Event
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
        first = self.reader.one("SELECT first FROM @events ORDER BY last LIMIT 1")
        last = self._last()
        dropped = max(last if first is None else first[0] - 1, before_newest(last, self._core.policy.events_max))
        start = max(after, dropped)
        found: list[Event] = []
        for number, facts in self.reader.run("SELECT first, facts FROM @events WHERE last > ? ORDER BY last", (start,)):
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
