"""Leaders on Redis that are killed or frozen while a schedule fires each second: the short form of each case."""

from __future__ import annotations

import random

import pytest

from tests.faults.cases import CASES


@pytest.mark.parametrize("case", ["leader_killed", "leader_killed_same_host", "leader_stopped"])
async def test_every_tick_comes_once_whoever_leads(case: str) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}: {await CASES[case](seed, 'short')}")


async def test_what_a_killed_leader_ran_does_not_wait_for_the_next_one() -> None:
    await CASES["leader_killed_at_work"](0, "short")


async def test_alerts_are_told_once_whoever_leads() -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}: {await CASES['leader_killed_alerting'](seed, 'short')}")
