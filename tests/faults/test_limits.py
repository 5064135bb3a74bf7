"""Limits and breakers that several processes keep together: the short form of each case."""

from __future__ import annotations

import random

import pytest

from tests.faults.limit_cases import CASES, KINDS


async def _run(case: str, kind: str) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}: {await CASES[f'{case}_{kind}'](seed, 'short')}")


@pytest.mark.parametrize("kind", KINDS)
async def test_four_nodes_start_no_more_than_a_rate_allows_and_hardly_fewer(kind: str) -> None:
    await _run("rate", kind)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_slots_of_a_killed_process_come_back_within_a_lease_and_a_second(kind: str) -> None:
    await _run("holders_killed", kind)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_breaker_opens_once_for_all_and_lets_one_at_a_time_try(kind: str) -> None:
    await _run("breaker", kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["limits_killed"])
async def test_limits_hold_while_processes_are_killed(case: str, kind: str) -> None:
    await _run(case, kind)
