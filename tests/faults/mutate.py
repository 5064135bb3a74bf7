"""Breaks one of the store's scripts on purpose: `FAULTS_MUTANT=name pytest -p tests.faults.mutate ...` must go red.

The scripts themselves are not touched, only what this process reads; the victims of a case do the same.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tickwork.store.redis import scripts

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "FAULTS_MUTANT"


class Mutant(NamedTuple):
    """In this script, this text becomes that one; which tests must notice, and what they say then: they might be red
    for any other reason."""

    script: str
    old: str
    new: str
    caught_by: str
    says: str
    slow: bool = False


PROOF = "task.fence ~= outcome.fence or task.nonce ~= nonce"
GRACE = "now >= hold_until and "
LEASES = "tests/contract/test_leases.py"
SUBMIT = "tests/contract/test_submit.py"
FULL = "tests/contract/test_redis_store.py"
WORKERS = "tests/faults/test_redis_workers.py"
LEADER = "tests/faults/test_redis_leader.py"
HISTORY = "tests/faults/test_random_history.py -k breaks_no_promise"
MUTANTS = {
    "no fence": Mutant(
        "finish", PROOF, "task.nonce ~= nonce", f"{LEASES} -k must_match_fence_and_nonce", "assert 'done' == 'lost'"
    ),
    "no proof": Mutant("finish", PROOF, "false", f"{WORKERS} -k zombie", "the result of another run"),
    "no grace": Mutant("reclaim", GRACE, "", f"{LEASES} -k one_lease_of_grace", "== []"),
    "no room to end": Mutant("finish", "-- flags: allow-oom\n", "", f"{FULL} -k can_still_end", "StoreFull"),
    "no dedup": Mutant(
        "parts/creating",
        "  if other then\n",
        "  if false then\n",
        f"{SUBMIT} -k refuses_a_second_task_and_names",
        "duplicate",
    ),
    "no submit nonce": Mutant(
        "parts/creating",
        "label_of(task.head).nonce == label_of(spec).nonce and '' or 'e'",
        "''",
        f"{SUBMIT} -k another_submit_of_the_same_id",
        "exists",
    ),
    "losses not counted": Mutant(
        "reclaim", "(alive and 0 or 1)", "0", f"{WORKERS} -k killed", "unexplained_reruns", slow=True
    ),
    "losses without end": Mutant(
        "reclaim", "task.losses >= MAX_LOSSES", "false", f"{WORKERS} -k poison", "to become a dead letter", slow=True
    ),
    "leases for ever": Mutant("reclaim", GRACE, "false and ", f"{WORKERS} -k strangers", "all tasks to end", slow=True),
    "leaders for ever": Mutant(
        "campaign", "held.till <= now", "false", f"{LEADER} -k killed", "a new leader", slow=True
    ),
    "one dependency is enough": Mutant(
        "resolve", "if wait.count == 0 then", "if true then", HISTORY, "no_dependant_early"
    ),
    "locks for everybody": Mutant(
        "lock", "if holder or act == 'extend' then", "if act == 'extend' then", HISTORY, "one_holder", slow=True
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


def run_tests(selection: str, name: str) -> str:
    """How pytest sums up those tests, on Redis, with one of the scripts broken (none for an empty name)."""
    path, _, words = selection.partition(" -k ")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.faults.mutate",
        "-p",
        "no:cacheprovider",
        "-n0",
        "-x",
        "--runxfail",
    ]
    command += [path, "-k", f"{words} and not memory and not sqlite"]
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, VARIABLE: name}, capture_output=True, text=True, timeout=110, check=False
    )
    told = [line for line in ran.stdout.splitlines() if line.startswith(("E  ", "FAILED"))]
    return "\n".join([*told[:10], *ran.stdout.splitlines()[-1:], ran.stderr[-2000:]])


def caught(name: str) -> str:
    """What the tests say of a mutant; raises when they do not see what is wrong."""
    summary = run_tests(MUTANTS[name].caught_by, name)
    assert re.search(r"^[1-9]\d* failed", summary, re.MULTILINE), f"{name}: nobody has noticed: {summary}"
    assert MUTANTS[name].says in summary, f"{name}: red, but not for {MUTANTS[name].says!r}: {summary}"
    return summary


async def slow_mutants(seed: int, scale: str) -> str:
    """Each of the cases on a product that is broken where it hurts the case: it must go red."""
    slow = [name for name, mutant in MUTANTS.items() if mutant.slow]
    for name in slow:
        await asyncio.to_thread(caught, name)
    return f"{len(slow)} mutants noticed: {', '.join(slow)}"


def pytest_configure() -> None:
    apply()
