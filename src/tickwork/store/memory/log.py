"""The log of the memory store."""

from __future__ import annotations

from itertools import islice

from tickwork.model.facts import Event, Fact, Facts, grouped
from tickwork.model.tasks import Record
from tickwork.store.hints import EVENTS
from tickwork.store.memory.core import Core, Part, atomic
from tickwork.store.rules import first_number, is_about_task, missed


class FactLog(Part):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._events: list[Event] = []
        self._last = 0
        self._dropped = 0

    def add(self, now: int, fact: Fact, subject: str, detail: str = "") -> None:
        if self._core.policy.events:
            self._last = (self._last or self._begin(now)) + 1
            self._append(Event(self._last, now, fact, subject, detail=detail))

    def add_task(self, now: int, fact: Fact, record: Record, detail: str = "") -> None:
        if self._core.policy.events:
            self._last = (self._last or self._begin(now)) + 1
            spec = record.spec
            self._append(
                Event(
                    self._last, now, fact, spec.id, spec.type, spec.queue,
                    record.worker_id or "", record.attempt, record.execution_time or 0.0, detail,
                )
            )  # fmt: skip

    def _begin(self, now: int) -> int:
        """Behind all numbers that an earlier life of this process has given."""
        self._dropped = first_number(now)
        return self._dropped

    def _append(self, event: Event) -> None:
        events, keep = self._events, self._core.policy.events_max
        events.append(event)
        # Cut in large pieces, so that a full log costs no more than one that grows.
        if len(events) >= 2 * keep:
            excess = len(events) - keep
            self._dropped = events[excess - 1].seq
            del events[:excess]
        self._core.hints.notify(EVENTS)

    @atomic
    def read(self, after: int, limit: int, task_id: str | None = None) -> tuple[list[Event], int]:
        dropped, start = self._begin_of(after)
        if task_id is None:
            return self._events[start : start + limit], missed(after, dropped)
        found = (event for event in islice(self._events, start, None) if is_about_task(task_id, event.kind, event.id))
        return list(islice(found, limit)), missed(after, dropped)

    def _begin_of(self, after: int) -> tuple[int, int]:
        """The number of the last fact that has left the log, and the place of the first one after that number."""
        dropped = max(self._dropped, self._last - self._core.policy.events_max, 0)
        first = self._events[0].seq if self._events else 1
        return dropped, max(max(after, dropped) + 1 - first, 0)

    @atomic
    def read_groups(self, after: int, limit: int) -> tuple[list[Facts], int]:
        dropped, start = self._begin_of(after)
        return grouped(self._events[start : start + limit]), missed(after, dropped)

    @atomic
    def last(self) -> int:
        return self._last
