"""Breaks one of the store's scripts on purpose: `FAULTS_MUTANT=name pytest -p tests.faults.mutate ...` must go red.

The scripts themselves are not touched, only what this process reads; the victims of a case do the same.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from tickwork.store.redis import scripts

VARIABLE = "FAULTS_MUTANT"


class Mutant(NamedTuple):
    """In this script, this text becomes that one; and what must notice."""

    script: str
    old: str
    new: str
    caught_by: str
    slow: bool = False


PROOF = "task.fence ~= tonumber(ARGV[at + 1]) or task.nonce ~= nonce"
LEASES = "tests/contract/test_leases.py"
SUBMIT = "tests/contract/test_submit.py"
MUTANTS = {
    "no fence": Mutant("finish", PROOF, "task.nonce ~= nonce", f"{LEASES} -k must_match_fence_and_nonce"),
    "no proof": Mutant("finish", PROOF, "false", "tests/faults/test_redis_workers.py -k zombie"),
    "no grace": Mutant("reclaim", "now >= hold_until and ", "", f"{LEASES} -k one_lease_of_grace"),
    "no room to end": Mutant(
        "finish", "-- flags: allow-oom\n", "", "tests/contract/test_redis_store.py -k can_still_end"
    ),
    "no dedup": Mutant(
        "submit", "  if other then\n", "  if false then\n", f"{SUBMIT} -k refuses_a_second_task_and_names"
    ),
    "no submit nonce": Mutant(
        "submit", "label_of(task).nonce == nonce and '' or 'e'", "''", f"{SUBMIT} -k another_submit_of_the_same_id"
    ),
    "losses not counted": Mutant(
        "reclaim", "task.losses + 1", "task.losses", "tests/faults/test_redis_workers.py -k killed", slow=True
    ),
    "losses without end": Mutant(
        "reclaim",
        "task.losses >= POLICY.max_losses",
        "false",
        "tests/faults/test_redis_workers.py -k poison",
        slow=True,
    ),
    "no new leader": Mutant(
        "campaign",
        "held.till <= now",
        "false",
        "tests/faults/test_redis_leader.py -k killed",
        slow=True,
    ),
    "leases live for ever": Mutant(
        "reclaim",
        "now >= hold_until and ",
        "false and ",
        "tests/faults/test_redis_workers.py -k strangers",
        slow=True,
    ),
}


def mutated(mutant: Mutant, text: str) -> str:
    if text.count(mutant.old) != 1:
        raise RuntimeError(f"{mutant.script}.lua has changed: the mutant must be written anew ({mutant.old!r})")
    return text.replace(mutant.old, mutant.new)


def apply() -> None:
    """Put the mutant that the environment names, if any, in the place of its script."""
    name = os.environ.get(VARIABLE)
    if not name:
        return
    mutant, original = MUTANTS[name], scripts.read.__wrapped__

    def read(script: str) -> str:
        text = original(script)
        return mutated(mutant, text) if script == mutant.script else text

    scripts.compose.cache_clear()
    setattr(scripts, "read", read)  # noqa: B010


def pytest_configure() -> None:
    apply()
