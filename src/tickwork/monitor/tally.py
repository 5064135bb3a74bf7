"""Counts facts into the open buckets. It is called for every fact of the log, so it does little for each."""

from __future__ import annotations

from collections.abc import Sequence

from tickwork.model.facts import Event, Fact
from tickwork.model.failures import Failures
from tickwork.model.sketch import class_of
from tickwork.model.statistics import COUNTS, SIZES, Cell, Open
from tickwork.monitor.runs import KINDS as SCHEDULE_KINDS
from tickwork.monitor.runs import Runs

WAITS_MAX = 50_000  # tasks whose wait is measured at a time
LOST = "; not run again after "  # in the error of a task that has ended without a run of its own

_COUNTED = {
    Fact.TASK_SUBMITTED: "submitted", Fact.TASK_CLAIMED: "started", Fact.TASK_SUCCEEDED: "success",
    Fact.TASK_FAILED: "failed", Fact.TASK_DIED: "dead", Fact.TASK_CANCELLED: "cancelled",
    Fact.TASK_EXPIRED: "cancelled", Fact.TASK_RETRYING: "retries", Fact.TASK_LOST: "losses",
    Fact.TASK_SNOOZED: "snoozes",
}  # fmt: skip
INDEX: dict[str, int] = {fact.value: COUNTS.index(name) for fact, name in _COUNTED.items()}
SUBMITTED, STARTED, SUCCESS, FAILED, DEAD, CANCELLED, RETRIES, LOSSES, SNOOZES = range(len(COUNTS))
ENDS = (FAILED, DEAD, CANCELLED)
# A task may start from then on; of several such facts the last one counts.
READY = frozenset(
    (Fact.TASK_DUE, Fact.TASK_HASTENED, Fact.TASK_RESOLVED, Fact.TASK_RELEASED, Fact.TASK_RETRIED)
)  # fmt: skip


class Waits:
    """Since when tasks are ready. Of more tasks than it may know it measures a part, chosen by chance. What is measured
    is lost with the process, and the waits of those tasks are not measured."""

    def __init__(self, most: int = WAITS_MAX) -> None:
        self._most = most
        self.since: dict[str, int] = {}
        self.mask = 0  # those are measured whose hash has no bit of it

    def ready(self, task_id: str, at: int) -> None:
        if not hash(task_id) & self.mask:
            self.since[task_id] = at

    def thin(self) -> None:
        """Measure fewer of the tasks while there are too many, and more when there are few again."""
        if len(self.since) > self._most:
            self.mask = 2 * self.mask + 1
            self.since = {each: since for each, since in self.since.items() if not hash(each) & self.mask}
        elif self.mask and len(self.since) < self._most // 8:
            self.mask >>= 1


class Tally:
    """What the leader has counted: open buckets, failures by group, and runs of schedules."""

    def __init__(self, opened: Open, failures: Failures, runs: Runs, waits: Waits) -> None:
        self.open = opened
        self.failures = failures
        self.runs = runs
        self._waits = waits
        self.changed = False

    def miss(self, count: int, at: int) -> None:
        """Facts that had left the log."""
        self.open.roll(at)
        self.open.buckets["minute"].missed += count
        self.open.at = max(self.open.at, at)
        self.changed = True

    def take(self, facts: Sequence[Event]) -> None:
        """Written out at length, as half of the work would be calls."""
        opened, index_of = self.open, INDEX.get
        since, mask = self._waits.since, self._waits.mask
        end = 0
        of_type = of_queue = None
        for fact in facts:
            index, at = index_of(fact.kind), fact.at
            if index is None:
                self._take_uncounted(fact)
                continue
            if at >= end or fact.type != of_type or fact.queue != of_queue:
                opened.roll(at)
                bucket = opened.buckets["minute"]
                end, of_type, of_queue = bucket.start + SIZES["minute"], fact.type, fact.queue
                cell = bucket.cell(of_type, of_queue)
                counts, waits, runs = cell.counts, cell.waits.classes, cell.runs.classes
            counts[index] += 1
            if index == STARTED:
                ready = since.pop(fact.id, None)
                if ready is not None:
                    number = class_of((at - ready) / 1000)
                    waits[number] = waits.get(number, 0) + 1
            elif index == SUBMITTED:
                if not hash(fact.id) & mask:
                    since[fact.id] = at
                if "@" in fact.id:
                    self.runs.began(fact)
            elif index == SUCCESS:
                number = class_of(fact.duration)
                runs[number] = runs.get(number, 0) + 1
                if "@" in fact.id:
                    self.runs.ended(fact, COUNTS[index])
            else:
                self._take_rare(fact, index, cell)
        self._waits.thin()
        if facts:
            opened.cursor, opened.at = facts[-1].seq, max(opened.at, facts[-1].at)
            self.changed = True

    def _take_rare(self, fact: Event, index: int, cell: Cell) -> None:
        if index == LOSSES:
            self._waits.ready(fact.id, fact.at)
        elif index == CANCELLED:
            self._waits.since.pop(fact.id, None)  # it will not start
        elif index != SNOOZES:
            self.failures.take(fact)
            if LOST not in fact.detail:
                cell.runs.add(fact.duration)
        if index in ENDS and "@" in fact.id:
            self.runs.ended(fact, COUNTS[index])

    def _take_uncounted(self, fact: Event) -> None:
        if fact.kind in READY:
            self._waits.ready(fact.id, fact.at)
        elif fact.kind in SCHEDULE_KINDS:
            self.runs.told(fact)
