"""Guards that are removed on purpose must be missed by a test: else that test shows nothing. `chaos` has more."""

from __future__ import annotations

import re

import pytest

from tests.faults.mutate import MUTANTS, caught, mutated, run_tests
from tickwork.store.redis import scripts

QUICK = [name for name, mutant in MUTANTS.items() if not mutant.slow]


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_still_applies(name: str) -> None:
    text = scripts.read(MUTANTS[name].script)
    assert mutated(MUTANTS[name], text) != text


@pytest.mark.parametrize("name", QUICK)
def test_a_removed_guard_is_missed(name: str) -> None:
    print(caught(name))


@pytest.mark.parametrize("name", [name for name in QUICK if "faults" not in MUTANTS[name].caught_by])
def test_without_the_mutant_the_same_tests_are_green(name: str) -> None:
    summary = run_tests(MUTANTS[name].caught_by, "")
    assert re.search(r"^[1-9]\d* passed", summary, re.MULTILINE), f"{name}: {summary}"
