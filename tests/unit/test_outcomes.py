"""How a run ends, as data."""

from __future__ import annotations

from typing import Any

import pytest

from tickwork import Abort, FixedDelay, Retry
from tickwork.model.outcomes import Aborted, Failed
from tickwork.model.tasks import Lease, Spec
from tickwork.store.contract import Grant
from tickwork.worker import outcomes

DEFAULT = FixedDelay(5)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class UnspeakableAbort(Abort):
    def __init__(self) -> None:
        self.reason = Unspeakable()  # type: ignore[assignment]


def grant(**spec: Any) -> Grant:
    return Grant(Spec(id="a", type="work", nonce="n", **spec), Lease("a", 1, "n"), 1, 0, 0)


def test_a_failure_with_retries_left_is_tried_again() -> None:
    outcome = outcomes.of_error(ValueError("no"), grant(max_retry=1), DEFAULT, 0.5)
    assert isinstance(outcome, Failed)
    assert (outcome.retry_in, outcome.duration, outcome.error.partition("\n")[0]) == (5000, 0.5, "ValueError: no")


def test_an_error_that_cannot_be_shown_is_tried_again_all_the_same() -> None:
    assert isinstance(outcomes.of_error(Unspeakable(), grant(max_retry=1), DEFAULT, 0), Failed)


@pytest.mark.parametrize(
    "spec",
    [{"max_retry": "3"}, {"max_retry": 3, "retry": 5}, {"max_retry": 3, "retry": object()}],
    ids=["number of retries", "strategy", "strategy of no kind"],
)
@pytest.mark.parametrize("error", [ValueError("boom"), Retry(), UnspeakableAbort(), Unspeakable()], ids=repr)
def test_options_that_cannot_be_used_end_the_task_with_both_reasons(spec: dict[str, Any], error: Exception) -> None:
    outcome = outcomes.of_error(error, grant(**spec), DEFAULT, 0)
    assert isinstance(outcome, Aborted)
    assert "no retry could be planned" in outcome.error
    if isinstance(error, ValueError):
        assert outcome.error.startswith("ValueError: boom")
