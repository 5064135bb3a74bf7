"""Why a task is not running, in a sentence."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tickwork.client.explain import explain
from tickwork.model.members import Worker
from tickwork.model.tasks import Record, Spec, Status
from tickwork.store.contract import Pause

READY = Record(spec=Spec(id="t", type="a", nonce=""), seq=1)
OWN = Worker(id="w", node="n", task_types=("a",), capacity=2)
BY_HAND = Worker(id="remote", task_types=("a",), capacity=2)


def worker(**changes: Any) -> Worker:
    return Worker(**{"id": "w", "node": "n", "task_types": ("a",), "capacity": 2, **changes})


@pytest.mark.parametrize(
    ("workers", "sentence"),
    [
        ([], "No worker is up."),
        ([worker(lost_at=1)], "No worker is up."),
        ([worker(queues=("b",))], "No worker that is up serves queue default."),
        ([worker(task_types=("b",))], "No worker that is up on queue default knows task type a."),
        ([worker(running=2)], "All workers that may run it are busy."),
        ([worker(running=2), BY_HAND], "All workers that may run it are busy."),
        ([BY_HAND], "Only workers that were registered by hand know task type a, and those are given no tasks."),
        ([worker(running=1), BY_HAND], "It is ready and will be taken next."),
    ],
)
def test_of_a_ready_task(workers: list[Worker], sentence: str) -> None:
    assert explain(READY, [], workers) == sentence
    assert explain(READY, [Pause("type", "a", 0, "why")], workers) == "Type a is paused: why."


def test_times_are_said_as_the_caller_wants() -> None:
    record = Record(spec=READY.spec, seq=1, status=Status.PENDING, due_at=1_900_000_000_000)
    assert explain(record, [], []) == "It waits for its time, 2030-03-17 17:46:40 UTC."

    record.last_error = "the payload does not fit\nand more"
    assert explain(record, [], []) == "It waits for its time, 2030-03-17 17:46:40 UTC (the payload does not fit)."
    record.last_error = None

    def shown(at: datetime) -> str:
        return f"{at:%d %B}"

    assert explain(record, [], [], (), shown) == "It waits for its time, 17 March."
