"""What happened in this process, counted as it happens. Runs are counted by the batch, those of one type together; all
that metrics show of them is derived when they are read."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from operator import attrgetter
from typing import Any, Generic, TypeVar

from tickwork.model.facts import Fact
from tickwork.model.outcomes import Succeeded
from tickwork.observe.batches import TasksCreated
from tickwork.observe.bus import Bus, Subscription
from tickwork.observe.observations import (
    TOPICS,
    LeadershipChanged,
    LeasesRenewed,
    LoopLagged,
    ScheduleTicked,
    ServiceFailed,
    StoreCalled,
    SubmitRejected,
    TaskEnded,
)
from tickwork.worker.run_facts import RunsEnded, RunsStarted, seconds_of

NAMES_MAX = 1000  # types, queues, workers and schedules that are told apart
_TYPE_AND_PRIORITY = attrgetter("type", "priority")
OTHER = "other"  # what those beyond them are called

DURATIONS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
DELAYS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600)
CALLS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
LAGS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)

ENDS = tuple(fact for fact in TOPICS[TaskEnded] if isinstance(fact, Fact))
TICKS = tuple(fact for fact in TOPICS[ScheduleTicked] if isinstance(fact, Fact))
ERRORS = (Fact.TASK_RETRYING, Fact.TASK_DIED, Fact.TASK_FAILED)
FINAL_ERRORS = (Fact.TASK_DIED, Fact.TASK_FAILED)
TIMED = frozenset({Fact.TASK_SUCCEEDED, *ERRORS})  # runs that came to an end of their own
RETRIES_MAX = 5  # those beyond are told as one
CLAIM, BEAT = ("tasks", "claim"), ("members", "beat")
WINDOW, STEP = 300.0, 10.0  # seconds for which the share of failures is told, and between two notes of it

T = TypeVar("T")


class Histogram:
    """How many values are no more than each of its bounds, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = DURATIONS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add_all(self, values: list[float]) -> None:
        """Sorts them, which takes less than to find the place of each."""
        values.sort()
        below = 0
        for place, bound in enumerate(self.bounds):
            upto = bisect_right(values, bound, below)
            self.counts[place] += upto - below
            below = upto
            if below == len(values):
                break
        self.counts[-1] += len(values) - below
        self.total += sum(values)

    def copy(self) -> Histogram:
        found = Histogram(self.bounds)
        found.counts, found.total = self.counts.copy(), self.total
        return found

    @classmethod
    def sum_of(cls, others: Iterable[Histogram], bounds: tuple[float, ...] = DURATIONS) -> Histogram:
        found = cls(bounds)
        for other in others:
            found.counts = [mine + more for mine, more in zip(found.counts, other.counts, strict=True)]
            found.total += other.total
        return found


class Bounded(dict[str, T], Generic[T]):
    """Something for each name. A name that comes when there are a thousand shares what `other` has."""

    def __init__(self, make: Callable[[], T], first: Iterable[str] = ()) -> None:
        super().__init__()
        self._make = make
        for name in first:
            self[name]

    def __missing__(self, name: str) -> T:
        if len(self) >= NAMES_MAX:
            name = OTHER
        if name not in self:
            self[name] = self._make()
        return self[name]

    def each(self, change: Callable[[T], T]) -> Bounded[T]:
        """The same names, with something else for each."""
        found = Bounded(self._make)
        found.update((name, change(value)) for name, value in self.items())
        return found


class Count:
    __slots__ = ("value",)

    def __init__(self, value: int = 0) -> None:
        self.value = value


class OfType:
    """Of the tasks of one type."""

    __slots__ = ("durations", "ended", "retries", "submitted")

    def __init__(self) -> None:
        self.submitted: dict[int, int] = {5: 0}  # by priority
        self.ended = dict.fromkeys(ENDS, 0)
        self.retries = {"1": 0}
        self.durations = Histogram(DURATIONS)

    def copy(self) -> OfType:
        found = OfType()
        found.submitted, found.ended, found.retries = self.submitted.copy(), self.ended.copy(), self.retries.copy()
        found.durations = self.durations.copy()
        return found

    def count(self, facts: Iterable[Fact]) -> int:
        return sum(self.ended[fact] for fact in facts)


class OfCall:
    """Of one method of the store."""

    __slots__ = ("errors", "seconds")

    def __init__(self) -> None:
        self.errors = 0
        self.seconds = Histogram(CALLS)

    def copy(self) -> OfCall:
        found = OfCall()
        found.errors, found.seconds = self.errors, self.seconds.copy()
        return found


class Tallies:
    """Hears of everything that is counted. Observations come from several threads, and metrics are made in another
    one, of a copy."""

    def __init__(
        self, types: Collection[str] = (), queues: Collection[str] = (), workers: Collection[str] = (),
        schedules: Collection[str] = (), clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """The names are those that are shown before anything has happened."""
        self._lock = threading.Lock()
        self.types = Bounded(OfType, types or (OTHER,))
        self.waits = Bounded(lambda: Histogram(DELAYS), queues or (OTHER,))
        self.workers = Bounded(Count, workers or (OTHER,))
        self.ticks = Bounded(lambda: dict.fromkeys(TICKS, 0), schedules or (OTHER,))
        self.lateness = Histogram(DELAYS)
        self.calls = {CLAIM: OfCall()}
        self.lag = Histogram(LAGS)
        self.renewals = {"held": 0, "lost": 0, "unknown": 0}
        self.starts = 0
        self.rejected = 0  # submits over a rate limit
        self.elections = 0
        self.service_failures = 0
        self._clock = clock
        self.beat_at: float | None = None  # when the store has accepted the last heartbeat
        self._notes: deque[tuple[float, int, int]] = deque([(clock(), 0, 0)], round(WINDOW / STEP) + 1)

    def listen(self, bus: Bus) -> list[Subscription]:
        listeners: dict[Any, Callable[[Any], None]] = {
            ScheduleTicked: self._ticked,
            StoreCalled: self._called,
            LeasesRenewed: self._renewed,
            LoopLagged: self._lagged,
            LeadershipChanged: self._changed,
            ServiceFailed: self._failed,
            SubmitRejected: self._refused,
        }
        batches: dict[Any, Callable[[Any], None]] = {
            TasksCreated: self._created,
            RunsStarted: self._started,
            RunsEnded: self._ended,
        }
        single = [bus.subscribe(listener, TOPICS[kind]) for kind, listener in listeners.items()]
        return single + [bus.subscribe(listener, (batch,)) for batch, listener in batches.items()]

    # --- what is heard

    def _created(self, seen: TasksCreated) -> None:
        created: Counter[tuple[str, int]] = Counter(map(_TYPE_AND_PRIORITY, seen.specs))
        with self._lock:
            for (kind, priority), count in created.items():
                counts = self.types[kind].submitted
                counts[priority] = counts.get(priority, 0) + count

    def _started(self, seen: RunsStarted) -> None:
        waits: dict[str, list[float]] = {}  # by queue
        of_queue, now = None, seen.now
        for grant in seen.grants:
            since = grant.ready_at
            if since is not None and grant.attempt == 1 and not grant.losses:  # its first run
                queue = grant.spec.queue
                if queue != of_queue:
                    of_queue, found = queue, waits.setdefault(queue, [])
                found.append((now - since) / 1000 if now > since else 0.0)
        with self._lock:
            self.starts += len(seen.grants)
            for queue, values in waits.items():
                self.waits[queue].add_all(values)

    def _ended(self, seen: RunsEnded) -> None:
        found: dict[tuple[Fact, str, int], list[float]] = {}
        last_fact, last_type, last_attempt = None, None, 0
        for fact, grant, outcome, _ in seen.runs:
            kind, attempt = grant.spec.type, grant.attempt
            if fact is not last_fact or attempt != last_attempt or kind != last_type:
                last_fact, last_type, last_attempt = fact, kind, attempt
                seconds = found.setdefault((fact, kind, attempt), [])
            seconds.append(outcome.duration if type(outcome) is Succeeded else seconds_of(outcome))
        with self._lock:
            self.workers[seen.worker_id].value += len(seen.runs)
            for (fact, kind, attempt), values in found.items():
                of_type, count = self.types[kind], len(values)
                of_type.ended[fact] += count
                if fact in TIMED:
                    of_type.durations.add_all(values)
                if fact is Fact.TASK_RETRYING:
                    number = str(attempt) if attempt <= RETRIES_MAX else f"{RETRIES_MAX + 1}+"
                    of_type.retries[number] = of_type.retries.get(number, 0) + count

    def _ticked(self, seen: ScheduleTicked) -> None:
        with self._lock:
            self.ticks[seen.id][seen.fact] += 1
            if seen.fact is Fact.SCHEDULE_FIRED:
                self.lateness.add(seen.late)

    def _called(self, seen: StoreCalled) -> None:
        call = seen.part, seen.method
        with self._lock:
            of_call = self.calls.get(call)
            if of_call is None:
                of_call = self.calls[call] = OfCall()
            if seen.error is None:
                of_call.seconds.add(seen.seconds)
                if call == BEAT:
                    self.beat_at = self._clock()
            elif not isinstance(seen.error, asyncio.CancelledError):  # the caller has given it up
                of_call.errors += 1

    def _renewed(self, seen: LeasesRenewed) -> None:
        with self._lock:
            self.renewals["held"] += seen.held
            self.renewals["lost"] += seen.lost
            self.renewals["unknown"] += seen.unknown

    def _lagged(self, seen: LoopLagged) -> None:
        with self._lock:
            self.lag.add(seen.seconds)
            now = self._clock()
            if now - self._notes[-1][0] >= STEP:
                self._notes.append((now, *self._ends()))

    def _changed(self, seen: LeadershipChanged) -> None:
        with self._lock:
            self.elections += seen.leads

    def _refused(self, seen: SubmitRejected) -> None:
        with self._lock:
            self.rejected += len(seen.types)

    def _failed(self, seen: ServiceFailed) -> None:
        with self._lock:
            self.service_failures += 1

    # --- what is derived of it

    def copy(self) -> Tallies:
        """As it is at this moment."""
        with self._lock:
            found = copy.copy(self)
            found.types, found.waits = self.types.each(OfType.copy), self.waits.each(Histogram.copy)
            found.workers = self.workers.each(lambda count: Count(count.value))
            found.ticks = self.ticks.each(dict.copy)
            found.calls = {call: of_call.copy() for call, of_call in self.calls.items()}
            found.lateness, found.lag, found.renewals = self.lateness.copy(), self.lag.copy(), self.renewals.copy()
            found._notes = self._notes.copy()
        return found

    def ended(self, facts: Iterable[Fact]) -> int:
        facts = tuple(facts)
        return sum(of_type.count(facts) for of_type in self.types.values())

    def _ends(self) -> tuple[int, int]:
        """How many tasks have ended here, and how many of them because they failed for good."""
        failed = self.ended(FINAL_ERRORS)
        return self.ended((Fact.TASK_SUCCEEDED,)) + failed, failed

    def failure_rate(self) -> float:
        """The share of the tasks that ended here in the last minutes that have failed for good."""
        since = self._clock() - WINDOW
        before = [note for note in self._notes if note[0] <= since]
        _, ended_before, failed_before = before[-1] if before else self._notes[0]
        ended, failed = self._ends()
        return (failed - failed_before) / (ended - ended_before) if ended > ended_before else 0.0

    def heartbeat_delay(self) -> float:
        return 0.0 if self.beat_at is None else max(self._clock() - self.beat_at, 0.0)
