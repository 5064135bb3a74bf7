"""Guards that are removed on purpose must be missed by a test: else that test shows nothing. `chaos` has more."""

from __future__ import annotations

import pytest

from tests.faults.mutate import MUTANTS, Mutant, Verdict, mutated, try_mutants, unnoticed
from tickwork.store.redis import scripts

QUICK = [name for name, mutant in MUTANTS.items() if not mutant.slow]


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_still_applies(name: str) -> None:
    text = scripts.read(MUTANTS[name].script)
    assert mutated(MUTANTS[name], text) != text


@pytest.mark.timeout(300)
def test_removed_guards_are_missed_and_the_same_tests_are_green_with_them() -> None:
    """All in one test: collecting the tests takes longer than running them."""
    verdicts = try_mutants(QUICK)
    assert list(verdicts) == QUICK
    assert unnoticed(verdicts) == []


@pytest.mark.parametrize(
    ("verdict", "wrong"),
    [
        (Verdict("killed", "the end was early", True), ""),
        (Verdict("survived", "", True), "nobody has noticed"),
        (Verdict("undecided", "its time was over", True), "nobody has noticed"),
        (Verdict("killed", "no server", True), "red, but not for 'early'"),
        (Verdict("killed", "the end was early", False), "red without it"),
    ],
)
def test_what_is_wrong_with_the_tests_of_a_mutant(verdict: Verdict, wrong: str) -> None:
    found = verdict.wrong(Mutant("finish", "a", "b", "tests/unit/test_pace.py", "early"))
    assert wrong in found if wrong else found == ""
