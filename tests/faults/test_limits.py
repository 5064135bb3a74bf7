"""Limits and breakers that several processes keep together: the short form of each case."""

from __future__ import annotations

import random

import pytest

from tests.faults.history import Line
from tests.faults.limit_cases import CASES, KINDS, LEASE, most_at_a_time


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


# --- the judge


def run(pid: int, name: str, *at: float) -> list[Line]:
    return [
        {"what": what, "pid": pid, "id": name, "of": "narrow", "fence": 1, "at": when}
        for what, when in zip(("start", "end"), at, strict=False)
    ]


def test_a_run_that_begins_as_its_process_is_killed_ends_with_it() -> None:
    """The time of a kill is taken before the signal, and on a busy machine the victim goes on for a moment."""
    kill: Line = {"what": "kill", "pid": 1, "victim": 2, "at": 1.0}
    victim = [*run(2, "a", 0.5), *run(2, "b", 1.1)]
    assert most_at_a_time([*victim, kill, *run(3, "c", 1.2, 1.3)]) == {"narrow": 2}
    assert most_at_a_time([*victim, *run(3, "c", 1.2, 1.3)]) == {"narrow": 3}


def test_runs_of_a_process_that_was_kept_waiting_for_long_may_be_run_again() -> None:
    held, again = run(2, "a", 0.5, 9.0), run(3, "b", 5.0, 6.0)

    def kept_waiting(seconds: float) -> Line:
        return {"what": "fault", "kind": "late", "pid": 2, "victim": 2, "at": 1.0, "till": 1.0 + seconds}

    assert most_at_a_time([*held, kept_waiting(LEASE), *again]) == {"narrow": 1}
    assert most_at_a_time([*held, kept_waiting(LEASE / 4), *again]) == {"narrow": 2}
