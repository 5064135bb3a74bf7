"""Random histories: a short one on each of the stores that most people use. `make histories` runs long ones."""

from __future__ import annotations

import random

import pytest

from tests.faults.cases import CASES
from tests.faults.random_plan import make_plan
from tests.faults.random_stores import KINDS


@pytest.mark.parametrize("kind", ["sqlite", "redis", "partitions"])
async def test_a_random_history_breaks_no_promise(kind: str) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}: {await CASES[f'random_{kind}'](seed, 'short')}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_makes_the_same_plan_again(kind: str) -> None:
    plans = [make_plan(seed, kind, 60, KINDS[kind].faults) for seed in (7, 7, 8)]
    assert plans[0] == plans[1] != plans[2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_plan_has_every_step_and_fault(kind: str) -> None:
    place = KINDS[kind]
    steps = {
        "submit",
        "cancel",
        "force_cancel",
        "retry",
        "delete",
        "run_now",
        "delete_tick",
        "pause",
        "resume",
        "trigger",
    }
    assert {step.do for step in make_plan(1, kind, 300, place.faults)} == {*steps, *place.faults}
