"""How long a task waits whose payload does not fit here, and when it is looked at again."""

from __future__ import annotations

import logging

import pytest

from tickwork.clock import ManualClock
from tickwork.executors.calling import UnfitPayload
from tickwork.model.outcomes import Aborted, Outcome, Snoozed
from tickwork.model.tasks import Lease, Spec
from tickwork.observe.loggers import Log
from tickwork.store.contract import Grant
from tickwork.worker import misfits
from tickwork.worker.misfits import Misfits

UNFIT = UnfitPayload("Expected `int`, got `str`")
REASON = "the payload does not fit the handler: Expected `int`, got `str`"


class Case:
    def __init__(self, grace: float) -> None:
        self.clock = ManualClock()
        self.start = self.clock.now()
        self.misfits = Misfits(grace, self.clock.now, Log.of(logging.getLogger("tickwork"), "worker"))

    def meet(self, task_id: str = "t", problem: UnfitPayload = UNFIT) -> Outcome:
        grant = Grant(Spec(id=task_id, type="it", nonce="n"), Lease(task_id, 1, "n"), 1, 0, 0)
        return self.misfits.outcome(grant, problem, 0.5)

    def looks(self, task_id: str = "t") -> list[float]:
        """The seconds between looks until it is dead."""
        found: list[float] = []
        while isinstance(outcome := self.meet(task_id), Snoozed):
            found.append(outcome.delay / 1000)
            self.clock.advance(outcome.delay / 1000)
        assert outcome == Aborted(outcome.lease, REASON, 0.5)
        return found


@pytest.mark.parametrize(
    ("grace", "expected"),
    [
        (3600, [1, 2, 4, 8, 16, 32, *[60] * 58, 57]),
        (120, [1, 2, *[2] * 58, 1]),
        (60, [1] * 60),
        (2.5, [1, 1, 0.5]),
        (0.2, [0.2]),
        (0, []),
    ],
)
def test_looks_are_short_at_first_and_end_with_the_grace(grace: float, expected: list[float]) -> None:
    case = Case(grace)
    assert case.looks() == expected
    assert case.clock.now() == case.start + grace * 1000
    assert case.looks() == expected, "sent round again by hand, it begins anew"


def test_it_is_said_what_does_not_fit_and_until_when_it_waits(caplog: pytest.LogCaptureFixture) -> None:
    case = Case(3600)
    outcome = case.meet()
    assert isinstance(outcome, Snoozed)
    assert outcome.error == f"{REASON}; it waits for a worker of another version, until 2023-11-14 23:13:20 UTC"
    case.clock.advance(1)
    again = case.meet()
    assert isinstance(again, Snoozed)
    assert again.error == outcome.error, "the end does not move"
    assert [record.getMessage() for record in caplog.records] == [f"task t (it): {outcome.error}"]


def test_what_is_damaged_does_not_wait() -> None:
    case = Case(3600)
    damaged = UnfitPayload("Input data was truncated", is_damaged=True)
    outcome = case.meet(problem=damaged)
    assert isinstance(outcome, Aborted)
    assert outcome.error == "the payload does not fit the handler: Input data was truncated"


def test_each_task_has_a_time_of_its_own() -> None:
    case = Case(60)
    case.meet("first")
    case.clock.advance(30)
    case.meet("second")
    case.clock.advance(30)
    assert isinstance(case.meet("first"), Aborted)
    assert isinstance(case.meet("second"), Snoozed)


def test_no_more_is_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(misfits, "KNOWN_MAX", 2)
    case = Case(600)
    for name in ("first", "second"):
        case.meet(name)
    waits = case.meet("third")
    assert isinstance(waits, Snoozed)
    assert waits.delay == 10_000, "without room it is looked at rarely"
    case.clock.advance(600)
    assert isinstance(case.meet("third"), Snoozed), "it was not known when it was met first"
    assert isinstance(case.meet("first"), Aborted)
    case.meet("third")
    case.clock.advance(60)
    case.meet("fourth")  # `second` has not come again, and makes room
    case.clock.advance(540)
    assert isinstance(case.meet("third"), Aborted)
    assert isinstance(case.meet("fourth"), Snoozed)
