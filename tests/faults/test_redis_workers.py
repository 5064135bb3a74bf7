"""Workers on Redis that are killed, frozen, or killed by what they run: the short form of each case."""

from __future__ import annotations

import random

import pytest

from tests.faults.cases import CASES


@pytest.mark.parametrize(
    "case",
    [
        "workers_killed",
        "workers_killed_strangers",
        "assigned_killed",
        "assigned_killed_strangers",
        "zombie",
        "short_stop",
        "poison",
    ],
)
async def test_a_lost_worker_costs_nothing_but_time(case: str) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}: {await CASES[case](seed, 'short')}")


async def test_only_the_poison_task_becomes_a_dead_letter() -> None:
    await CASES["poison_in_company"](0, "short")
