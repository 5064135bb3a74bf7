"""Counts facts into the open buckets. It is given all facts of the log, so it counts those in a group at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tickwork.model.facts import Event, Fact, Facts
from tickwork.model.failures import Failures
from tickwork.model.statistics import COUNTS, SIZES, Cell, Open
from tickwork.monitor.runs import KINDS as SCHEDULE_KINDS
from tickwork.monitor.runs import Runs

FEW = 4  # up to so many are counted one by one
WAITS_MAX = 50_000  # tasks whose wait is measured at a time
LOST = "; not run again after "  # in the error of a task that has ended without a run of its own

_COUNTED = {
    Fact.TASK_SUBMITTED: "submitted", Fact.TASK_CLAIMED: "started", Fact.TASK_SUCCEEDED: "success",
    Fact.TASK_FAILED: "failed", Fact.TASK_DIED: "dead", Fact.TASK_CANCELLED: "cancelled",
    Fact.TASK_EXPIRED: "cancelled", Fact.TASK_RETRYING: "retries", Fact.TASK_LOST: "losses",
    Fact.TASK_SNOOZED: "snoozes",
}  # fmt: skip
SUBMITTED, STARTED, SUCCESS, FAILED, DEAD, CANCELLED, RETRIES, LOSSES, SNOOZES = range(len(COUNTS))
HELD = len(COUNTS)  # has no count of its own
INDEX: dict[str, int] = {fact.value: COUNTS.index(name) for fact, name in _COUNTED.items()}
INDEX[Fact.TASK_HELD.value] = HELD
ENDS = (FAILED, DEAD, CANCELLED)
# A task may start from then on; of several such facts the last one counts.
READY = frozenset(
    (Fact.TASK_DUE, Fact.TASK_HASTENED, Fact.TASK_RESOLVED, Fact.TASK_RELEASED, Fact.TASK_RETRIED)
)  # fmt: skip


class Waits:
    """Since when tasks are ready. Of more tasks than it may know it measures a part, chosen by chance. What is measured
    is lost with the process, and the waits of those tasks are not measured.

    A task that a limit, breaker or switch holds was claimed, but has not begun: its wait goes on. Tasks of types that
    were held before are measured when their runs end, as only then it is known that they had begun."""

    def __init__(self, most: int = WAITS_MAX) -> None:
        self._most = most
        self.since: dict[str, int] = {}
        self.mask = 0  # those are measured whose hash has no bit of it
        self.held_types: set[str] = set()
        self._claimed: dict[str, int] = {}  # tasks of those types, and how long they had waited by then
        self._held: dict[str, int] = {}  # since when those are ready that wait at a gate

    def ready(self, task_id: str, at: int) -> None:
        self._claimed.pop(task_id, None)
        if not hash(task_id) & self.mask:
            self.since[task_id] = self._held.pop(task_id, at)

    def claim(self, task_id: str, at: int) -> None:
        ready = self.since.pop(task_id, None)
        if ready is not None:
            self._claimed[task_id] = at - ready

    def hold(self, task_id: str, at: int) -> None:
        waited = self._claimed.pop(task_id, None)
        if waited is not None:
            self._held[task_id] = at - waited

    def begun(self, task_ids: Iterable[str]) -> list[int]:
        """How long those have waited whose runs have ended, as far as it is known."""
        claimed = self._claimed
        return [waited for each in task_ids if (waited := claimed.pop(each, None)) is not None] if claimed else []

    def forget(self, task_id: str) -> None:
        """It will not start."""
        self.since.pop(task_id, None)
        self._held.pop(task_id, None)

    def thin(self) -> None:
        """Measure fewer of the tasks while there are too many, and more when there are few again."""
        for those in (self._claimed, self._held):
            if len(those) > self._most:
                those.clear()
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

    def take(self, groups: Sequence[Facts]) -> None:
        """Written out at length, as half of the work would be calls."""
        opened, index_of = self.open, INDEX.get
        since, mask = self._waits.since, self._waits.mask
        end = 0
        of_type = of_queue = None
        for facts in groups:
            index, at, ids = index_of(facts.kind), facts.at, facts.ids
            if index is None:
                self._take_uncounted(facts)
                continue
            if at >= end or facts.type != of_type or facts.queue != of_queue:
                opened.roll(at)
                bucket = opened.buckets["minute"]
                end, of_type, of_queue = bucket.start + SIZES["minute"], facts.type, facts.queue
                cell = bucket.cell(of_type, of_queue)
                counts = cell.counts
            if index == HELD:
                self._take_held(facts, cell)
                continue
            counts[index] += len(ids)
            if index == STARTED and of_type in self._waits.held_types:
                for each in ids:
                    self._waits.claim(each, at)
            elif index == STARTED:
                for ready, count in _times([since.pop(each, None) for each in ids]):
                    if ready is not None:
                        cell.waits.add((at - ready) / 1000, count)
            elif index == SUBMITTED:
                since.update(dict.fromkeys([each for each in ids if not hash(each) & mask] if mask else ids, at))
                if _may_be_runs(ids):
                    for fact in facts.events():
                        self.runs.began(fact)
            elif index == SUCCESS:
                cell.runs.add_all(facts.durations)
                for waited in self._waits.begun(ids):
                    cell.waits.add(waited / 1000)
                if _may_be_runs(ids):
                    for fact in facts.events():
                        self.runs.ended(fact, COUNTS[index])
            else:
                for fact in facts.events():
                    self._take_rare(fact, index, cell)
        self._waits.thin()
        if groups:
            opened.cursor, opened.at = groups[-1].numbers[-1], max(opened.at, groups[-1].at)
            self.changed = True

    def _take_held(self, facts: Facts, cell: Cell) -> None:
        self._waits.held_types.add(facts.type)
        cell.counts[STARTED] -= len(facts.ids)
        for each in facts.ids:
            self._waits.hold(each, facts.at)

    def _take_rare(self, fact: Event, index: int, cell: Cell) -> None:
        for waited in self._waits.begun([fact.id]):
            cell.waits.add(waited / 1000)
        if index == LOSSES:
            self._waits.ready(fact.id, fact.at)
        elif index == CANCELLED:
            self._waits.forget(fact.id)
        elif index != SNOOZES:
            self.failures.take(fact)
            if LOST not in fact.detail:
                cell.runs.add(fact.duration)
        if index in ENDS and "@" in fact.id:
            self.runs.ended(fact, COUNTS[index])

    def _take_uncounted(self, facts: Facts) -> None:
        if facts.kind in READY:
            for each in facts.ids:
                self._waits.ready(each, facts.at)
        elif facts.kind in SCHEDULE_KINDS:
            for fact in facts.events():
                self.runs.told(fact)


def _times(found: Sequence[int | None]) -> Iterable[tuple[int | None, int]]:
    """How often each of them occurs. Many tasks are submitted in the same moment."""
    return Counter(found).items() if len(found) > FEW else [(each, 1) for each in found]


def _may_be_runs(ids: Sequence[str]) -> bool:
    """Whether one of them has the sign that the runs of schedules have."""
    return "@" in "".join(ids)
