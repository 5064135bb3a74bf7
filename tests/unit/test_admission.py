"""Which tasks go first at a gate, and how those are woken that were held there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tickwork.model.tasks import Lease, Spec, Status
from tickwork.store.contract import Grant, Left, Woken
from tickwork.worker import admission
from tickwork.worker.admission import WAKE_ROUNDS, WAKE_TRIES, wake


def granted(priority: int = 5, attempt: int = 1, submitted_at: int = 1_700_000_000_000, task_id: str = "t") -> Grant:
    return Grant(
        Spec(id=task_id, type="a", nonce="", priority=priority), Lease(task_id, 1, "n"), attempt, 0, submitted_at
    )


def test_at_a_gate_the_band_counts_then_failed_attempts_then_age() -> None:
    expected = [
        granted(priority=10, attempt=3, submitted_at=1_800_000_000_000, task_id="high"),
        granted(submitted_at=1_700_000_000_000, task_id="oldest"),
        granted(submitted_at=1_700_000_000_001, task_id="younger"),
        granted(attempt=2, submitted_at=1_000_000_000_000, task_id="failed once"),
        granted(attempt=200, submitted_at=1_000_000_000_000, task_id="failed often"),
        granted(attempt=256, submitted_at=1_000_000_000_000, task_id="failed as often as is counted"),
        granted(attempt=99_999, submitted_at=4_000_000_000_000, task_id="failed too often to be counted"),
        granted(priority=1, submitted_at=0, task_id="low"),
    ]
    orders = [admission._order(grant) for grant in expected]
    assert orders == sorted(set(orders))


def test_the_order_fits_into_a_float_without_loss() -> None:
    last = granted(priority=1, attempt=10**6, submitted_at=2**42 - 1)
    assert int(float(admission._order(last))) == admission._order(last) < 2**53


class Gates:
    """A store whose answers to `run_now` and `leave` are given, the last one again and again."""

    def __init__(self, found: Sequence[Mapping[str, Status | None]], next_ones: Sequence[list[Woken]] = ()) -> None:
        self.operators = self.gates = self
        self.asked: list[list[str]] = []
        self.left: list[Left] = []
        self._found, self._next = list(found), list(next_ones)

    async def run_now(self, ids: list[str], held: bool = False) -> list[Status | None]:
        assert held, "those that wait for a time of their own are left alone"
        self.asked.append(ids)
        answers = self._found[0] if len(self._found) == 1 else self._found.pop(0)
        return [answers[task_id] for task_id in ids]

    async def leave(self, left: list[Left]) -> list[Woken]:
        self.left += left
        return self._next.pop(0) if self._next else []


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Those that are made, in seconds; they take no time."""
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(admission, "asyncio", SimpleNamespace(sleep=sleep))
    return made


def woken(*ids: str) -> list[Woken]:
    return [Woken(task_id, "type:a") for task_id in ids]


async def wake_in(gates: Any, *ids: str) -> None:
    await wake(gates, woken(*ids))


async def test_those_that_were_held_are_made_ready_by_one_call(pauses: list[float]) -> None:
    gates = Gates([{"a": Status.PENDING, "b": Status.READY, "c": Status.ASSIGNED, "d": Status.RETRYING}])
    await wake_in(gates, "a", "b", "c", "d")
    assert (gates.asked, gates.left, pauses) == ([["a", "b", "c", "d"]], [], [])


async def test_one_that_still_runs_is_woken_again_until_it_was_given_back(pauses: list[float]) -> None:
    """It was refused a moment ago, and its worker is about to hand that in."""
    running, held = {"a": Status.RUNNING, "b": Status.RUNNING}, {"a": Status.RUNNING, "b": Status.PENDING}
    gates = Gates([{**running, "c": Status.PENDING}, held, {"a": Status.PENDING}])
    await wake_in(gates, "a", "b", "c")
    assert gates.asked == [["a", "b", "c"], ["a", "b"], ["a"]]
    assert len(pauses) == 2
    assert 0 < pauses[0] < pauses[1] < 0.5


async def test_one_that_runs_on_is_left_after_some_tries(pauses: list[float]) -> None:
    gates = Gates([{"a": Status.RUNNING}])
    await wake_in(gates, "a")
    assert (len(gates.asked), gates.left) == (WAKE_TRIES, [])
    assert len(pauses) == WAKE_TRIES - 1
    assert sum(pauses) < 2


@pytest.mark.parametrize("status", [None, *(status for status in Status if status.ended)])
async def test_the_room_of_one_that_is_gone_is_for_the_next(status: Status | None) -> None:
    found = {"gone": status, "there": Status.PENDING, "next": Status.PENDING}
    gates = Gates([found], [woken("next")])
    await wake_in(gates, "gone", "there")
    assert gates.asked == [["gone", "there"], ["next"]]
    assert gates.left == [Left("gone", ("type:a",), "none")]


async def test_it_comes_to_an_end_though_all_are_gone() -> None:
    gates = Gates([{"a": None}], [woken("a")] * 1000)
    await wake_in(gates, "a")
    assert len(gates.left) == WAKE_ROUNDS


async def test_nobody_is_asked_about_nobody() -> None:
    gates = Gates([{}])
    await wake_in(gates)
    assert (gates.asked, gates.left) == ([], [])
