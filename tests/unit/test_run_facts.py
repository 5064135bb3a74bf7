"""What the listeners of a process are told of starts and ends of runs."""

from __future__ import annotations

from typing import Any

import pytest

from tickwork.clock import ManualClock
from tickwork.model.facts import Fact
from tickwork.model.outcomes import Aborted, Failed, Succeeded
from tickwork.model.tasks import Lease, Spec, Status
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.observe.observations import TaskEnded, TaskStarted
from tickwork.store.contract import Grant, Verdict
from tickwork.store.memory import MemoryStore
from tickwork.worker.run_facts import Ended, RunFacts, RunsEnded, RunsStarted

START = 1_700_000_000_000


DONE = Verdict("done", Status.SUCCESS)


class Told:
    """The facts of one worker, and what a listener to some of them has heard."""

    def __init__(self, *topics: object) -> None:
        self.bus, self.heard = Bus(), list[Any]()
        self.store = MemoryStore(clock=ManualClock(START))
        self.facts = RunFacts(self.bus, self.store, "node", Log.of(None, "worker"))
        self.bus.subscribe(self.heard.append, topics)


def grant(task_id: str = "it", attempt: int = 1, losses: int = 0, ready_at: int | None = START - 2500) -> Grant:
    spec = Spec(id=task_id, type="job", nonce="n")
    return Grant(spec, Lease(task_id, attempt, "n"), attempt, losses, START - 60_000, "node", ready_at)


@pytest.mark.parametrize(
    ("granted", "waited"),
    [
        (grant(), 2.5),  # and not since it was submitted: it was snoozed, or is due since then
        (grant(ready_at=START + 5), 0.0),
        (grant(ready_at=None), None),
        (grant(attempt=2), None),
        (grant(losses=1), None),
    ],
)
def test_a_start_tells_how_long_the_task_could_have_run(granted: Grant, waited: float | None) -> None:
    told = Told(Fact.TASK_CLAIMED)
    told.facts.started([granted])
    assert told.heard == [TaskStarted("it", "job", "default", "node", granted.attempt, waited)]


def test_who_counts_hears_of_a_batch_at_once() -> None:
    told, grants = Told(RunsStarted, RunsEnded), [grant("a"), grant("b")]
    told.facts.started(grants)
    assert told.heard == [RunsStarted("node", grants, START)]
    good, bad = Succeeded(grants[0].lease, duration=0.5), Failed(grants[1].lease, "no", 0, 0.25)
    error = ValueError("no")
    told.facts.ending(grants[1], bad, error)
    told.facts.ending(grants[0], good)
    told.facts.ended([good, bad], [DONE, Verdict("done", Status.RETRYING)])
    runs: list[Ended] = [(Fact.TASK_SUCCEEDED, grants[0], good, None), (Fact.TASK_RETRYING, grants[1], bad, error)]
    assert told.heard[1:] == [RunsEnded("node", runs)]


def test_an_end_is_told_as_the_store_has_decided_it() -> None:
    told, granted = Told(Fact.TASK_SUCCEEDED, Fact.TASK_CANCELLED, Fact.TASK_DIED), grant()
    for outcome, status in (
        (Succeeded(granted.lease, duration=2.0), Status.CANCELLED),
        (Aborted(granted.lease, "no"), Status.DEAD),
    ):
        told.facts.ending(granted, outcome)
        told.facts.ended([outcome], [Verdict("done", status)])
    assert told.heard == [
        TaskEnded(Fact.TASK_CANCELLED, "it", "job", "default", "node", 1, 2.0),
        TaskEnded(Fact.TASK_DIED, "it", "job", "default", "node", 1, 0.0, "no"),
    ]


def test_a_refused_end_is_not_told_and_that_of_a_later_run_is() -> None:
    """The task was lost and claimed again by the same worker, before the store has seen the end of the first run."""
    told, first, second = Told(Fact.TASK_SUCCEEDED), grant(), grant(attempt=2)
    ends = [Succeeded(each.lease) for each in (first, second)]
    told.facts.ending(first, ends[0])
    told.facts.ending(second, ends[1])
    told.facts.ended(ends, [Verdict("lost"), DONE])
    assert [(each.fact, each.attempt) for each in told.heard] == [(Fact.TASK_SUCCEEDED, 2)]


def test_successes_are_not_kept_if_nobody_listens() -> None:
    told, granted = Told(), grant()
    told.facts.started([granted])
    told.facts.ending(granted, Succeeded(granted.lease))
    assert told.facts._ending == {}
