"""Why a task is not running, in a sentence."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tickwork.client.explain import explain
from tickwork.model.info import Reason
from tickwork.model.members import Worker
from tickwork.model.tasks import Record, Spec, Status
from tickwork.store.contract import Pause, Situation

READY = Record(spec=Spec(id="t", type="a", nonce=""), seq=1)
OWN = Worker(id="w", node="n", task_types=("a",), capacity=2)
BY_HAND_ONLY = "Only workers that were registered by hand know task type a, and those are given no tasks."
BY_HAND = Worker(id="remote", task_types=("a",), capacity=2)


def worker(**changes: Any) -> Worker:
    return Worker(**{"id": "w", "node": "n", "task_types": ("a",), "capacity": 2, **changes})


@pytest.mark.parametrize(
    ("workers", "sentence", "reason"),
    [
        ([], "No worker is up.", Reason.NO_WORKER),
        ([worker(lost_at=1)], "No worker is up.", Reason.NO_WORKER),
        ([worker(queues=("b",))], "No worker that is up serves queue default.", Reason.QUEUE_UNSERVED),
        ([worker(task_types=("b",))], "No worker that is up on queue default knows task type a.", Reason.TYPE_UNKNOWN),
        ([worker(running=2)], "All workers that may run it are busy.", Reason.WORKERS_BUSY),
        ([worker(running=2), BY_HAND], "All workers that may run it are busy.", Reason.WORKERS_BUSY),
        (
            [worker(order="drain"), BY_HAND],
            "All workers that may run it are draining: they take no more tasks.",
            Reason.WORKERS_DRAINING,
        ),
        ([worker(order="drain"), worker()], "It is ready and will be taken next.", Reason.NEXT),
        ([BY_HAND], BY_HAND_ONLY, Reason.TYPE_UNKNOWN),
        ([worker(running=1), BY_HAND], "It is ready and will be taken next.", Reason.NEXT),
    ],
)
def test_of_a_ready_task(workers: list[Worker], sentence: str, reason: Reason) -> None:
    running = {each.id: each.running for each in workers}
    found = explain(Situation(READY, running=running), workers)
    assert (found.text, found.reason) == (sentence, reason)
    paused = explain(Situation(READY, pauses=[Pause("type", "a", 0, "why")]), workers)
    assert (paused.text, paused.reason, paused.blockers) == ("Type a is paused: why.", Reason.TYPE_PAUSED, ("a",))


@pytest.mark.parametrize(
    ("ahead", "running", "sentence", "reason"),
    [
        (1, 0, "It is ready; one task of its queue is before it.", Reason.IN_LINE),
        (500, 0, "It is ready; 500 tasks of its queue are before it.", Reason.IN_LINE),
        (1000, 0, "It is ready; 1,000 or more tasks of its queue are before it.", Reason.IN_LINE),
        (3, 2, "All workers that may run it are busy; 3 tasks of its queue are before it.", Reason.WORKERS_BUSY),
    ],
)
def test_of_one_that_has_others_before_it(ahead: int, running: int, sentence: str, reason: Reason) -> None:
    found = explain(Situation(READY, ahead, running={"w": running}), [worker()])
    assert (found.text, found.reason, found.ahead) == (sentence, reason, ahead)
    assert found.blockers == (("w",) if reason is Reason.WORKERS_BUSY else ())


def test_what_a_worker_said_of_itself_does_not_count() -> None:
    """It is as old as its last heartbeat."""
    busy = worker(running=2)
    assert explain(Situation(READY, running={"w": 1}), [busy]).reason is Reason.NEXT
    assert explain(Situation(READY, running={"w": 2}), [worker()]).reason is Reason.WORKERS_BUSY


def test_times_are_said_as_the_caller_wants() -> None:
    record = Record(spec=READY.spec, seq=1, status=Status.PENDING, due_at=1_900_000_000_000)
    assert explain(Situation(record), []).text == "It waits for its time, 2030-03-17 17:46:40 UTC."

    record.last_error = "the payload does not fit\nand more"
    assert (
        explain(Situation(record), []).text
        == "It waits for its time, 2030-03-17 17:46:40 UTC (the payload does not fit)."
    )
    record.last_error = None

    def shown(at: datetime) -> str:
        return f"{at:%d %B}"

    assert explain(Situation(record), [], (), shown).text == "It waits for its time, 17 March."
