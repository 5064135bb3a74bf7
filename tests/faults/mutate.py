"""Breaks one of the store's scripts on purpose: the tests named beside each mutant must go red.

The scripts themselves are not touched, only what a fork of the process that has collected the tests reads; the victims
of a case do the same, by the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.suite.choices import file_of
from tests.suite.mutants.forking import Case, Forker, collect, nothing
from tests.suite.mutants.swapping import replace_script

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "FAULTS_MUTANT"
LIMIT = 110.0  # seconds that the tests of one mutant may take


class Mutant(NamedTuple):
    """In this script, this text becomes that one; which tests must notice, and what they say then: they might be red
    for any other reason."""

    script: str
    old: str
    new: str
    caught_by: str
    says: str  # a pattern: what it is noticed by
    slow: bool = False

    def has(self, item: pytest.Item) -> bool:
        """Whether a test is one of those that must notice."""
        path, _, words = self.caught_by.partition(" -k ")
        wanted = file_of(item) == path and words in item.nodeid
        return wanted and not any(kind in item.nodeid for kind in ("memory", "sqlite"))


class Verdict(NamedTuple):
    """What the tests of a mutant made of it, and whether they are green without it, where that was tried."""

    verdict: str
    why: str
    green: bool

    def wrong(self, mutant: Mutant) -> str:
        if self.verdict != "killed":
            return f"nobody has noticed ({self.verdict} {self.why})"
        if not re.search(mutant.says, self.why):
            return f"red, but not for {mutant.says!r}: {self.why}"
        return "" if self.green else "the same tests are red without it"


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
    "no grace": Mutant("reclaim", GRACE, "", f"{LEASES} -k one_lease_of_grace", r"== \[\]"),
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
        "resolve",
        "if wait.count == 0 then",
        "if true then",
        HISTORY,
        "no_dependant_early|waits for others but is not blocked",
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
    if name:
        put(name)


def put(name: str) -> None:
    """Put this mutant in the place of its script, here and in the processes that are started from now on."""
    os.environ[VARIABLE] = name
    replace_script(MUTANTS[name].script, lambda text: mutated(MUTANTS[name], text))


def try_mutants(names: Sequence[str]) -> dict[str, Verdict]:
    """What the tests make of each of these mutants; a process of its own collects them once, and forks."""
    command = [sys.executable, "-m", "tests.faults.mutate", *names]
    timeout = LIMIT * 2 * len(names)
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    if ran.returncode:
        raise RuntimeError(f"the mutants cannot be tried: {ran.stderr[-4000:]}")
    return {name: Verdict(*told) for name, told in json.loads(ran.stdout).items()}


def unnoticed(verdicts: Mapping[str, Verdict]) -> list[str]:
    """What is wrong with the tests of each mutant that should have noticed it, and have not."""
    return [f"{name}: {wrong}" for name, verdict in verdicts.items() if (wrong := verdict.wrong(MUTANTS[name]))]


async def slow_mutants(seed: int, scale: str) -> str:
    """Each of the cases on a product that is broken where it hurts the case: it must go red."""
    slow = [name for name, mutant in MUTANTS.items() if mutant.slow]
    wrong = unnoticed(await asyncio.to_thread(try_mutants, slow))
    assert not wrong, "\n".join(wrong)
    return f"{len(slow)} mutants noticed: {', '.join(slow)}"


def main(names: Sequence[str]) -> None:
    """Print as JSON what the tests make of these mutants."""
    found: dict[str, Verdict] = {}

    def work(items: list[pytest.Item]) -> None:
        forker = Forker(folder, LIMIT)
        for name in names:
            tests = [item for item in items if MUTANTS[name].has(item)]
            broken = forker.run_once(Case(name, tests, partial(put, name)))
            green = "faults" in MUTANTS[name].caught_by or forker.run_once(Case(name, tests, nothing)).verdict
            found[name] = Verdict(broken.verdict, broken.why, green in (True, "survived"))

    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    try:
        collect(sorted({MUTANTS[name].caught_by.partition(" -k ")[0] for name in names}), folder, work, int(LIMIT))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
