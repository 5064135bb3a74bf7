"""What `make test-all` and CI run, `make test` among it: side by side where a part leaves a processor idle, each with
the CPU seconds that it took.

    python3 -m tests.suite.parts ci          what must hold before a change lands (.ci/run)
    python3 -m tests.suite.parts all         everything that takes long, too
    python3 -m tests.suite.parts all --only lint,types

It needs no environment: it makes those of the parts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.suite.seed import ROOT, drawn, tree_hash

LOGS = ROOT / "build" / "parts"
LIMIT = 5400.0  # seconds for one part
SHOWN_EVERY = 30.0
LOOPS = 200_000  # of the reference


class Part(NamedTuple):
    """One command, which a person can repeat. Lanes run side by side, their parts one after the other."""

    name: str
    command: str
    lane: int
    fifth: int | None = None  # which fifth of the long parts it belongs to; None: in CI each time


# Set-up first, then what leaves a processor idle, then the tests, which keep all of them busy.
STAGES: tuple[tuple[Part, ...], ...] = (
    (Part("environment", "make ready", 0),),
    (
        Part("lint", "make lint", 0),
        Part("types", "make types", 0),
        Part("docs", "make docs", 0),
        Part("dashboard", "make ui-check", 0),
        Part("later Python", "make later VERSION=3.13", 0),
        Part("demo and oldest", "make old", 1),
    ),
    (Part("tests", "make test TIER={tier}", 0),),
    (
        Part("random histories", "make machine EXAMPLES={examples}", 0, 0),
        Part("fuzz", "make fuzz EXAMPLES={requests}", 0, 1),
        Part("pip", "make ready-by-pip", 0, 2),
        Part("Python 3.12", "make later VERSION=3.12", 1, 2),
        Part("old Python, new libraries", "make old LIBRARIES=dev OLD=.venv-old-python", 0, 3),
        Part("new Python, old libraries", "make old OLD_PYTHON=python3 OLD=.venv-old-libraries", 1, 3),
        Part("generated code", "make proto-check", 0, 4),
        Part("coverage", "make coverage", 0, 4),
    ),
)
VALUES = {
    "ci": {"tier": "ci", "examples": 200, "requests": 100},
    "all": {"tier": "all", "examples": 2000, "requests": 500},
}


class Ended(NamedTuple):
    part: Part
    code: int
    seconds: float
    cpu: float
    loops: float  # CPU seconds of the reference loop meanwhile


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.suite.parts", description=__doc__.partition("\n\n")[0])
    parser.add_argument("tier", choices=VALUES)
    parser.add_argument("--only", default="", help="names of parts, with commas between them")
    given = parser.parse_args(args)
    known = {part.name for stage in STAGES for part in stage}
    for name in filter(None, given.only.split(",")):
        if name not in known:
            parser.error(f"there is no part {name}: {', '.join(sorted(known))}")
    LOGS.mkdir(parents=True, exist_ok=True)
    print(f"seed {tree_hash()}: TESTS_SEED={tree_hash()} repeats what is drawn by chance", flush=True)
    ended: list[Ended] = []
    for stage in STAGES:
        lanes = _lanes([part for part in stage if _wanted(part, given.tier, given.only)])
        runs = [threading.Thread(target=_run_lane, args=(lane, given.tier, len(lanes) == 1, ended)) for lane in lanes]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        if any(each.code for each in ended):
            break
    return _report(ended)


def _wanted(part: Part, tier: str, only: str) -> bool:
    if only:
        return part.name in only.split(",")
    return part.fifth is None or tier == "all" or part.fifth == drawn("long parts", 5)


def _lanes(parts: list[Part]) -> list[list[Part]]:
    return [[part for part in parts if part.lane == lane] for lane in sorted({part.lane for part in parts})]


def _run_lane(parts: list[Part], tier: str, alone: bool, ended: list[Ended]) -> None:
    for part in parts:
        done = _run(part, part.command.format(**VALUES[tier]), shown=alone)
        ended.append(done)
        words = "ok" if done.code == 0 else f"FAILED with {done.code}"
        print(f"{part.name}: {words}, {done.seconds:.0f} s, {done.cpu:.0f} CPU s", flush=True)
        if done.code:
            return


def _run(part: Part, command: str, shown: bool) -> Ended:
    """Run one part. Beside others its output goes to a file, which is printed if it fails."""
    log = LOGS / f"{part.name.replace(' ', '-').replace(',', '')}.log"
    print(f"{part.name}: {command}", flush=True)
    began = reported = time.monotonic()
    loops = [_reference()]
    with log.open("wb") as out:
        to = None if shown else out
        process = subprocess.Popen(command.split(), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=to, stderr=to)
        while (found := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            time.sleep(0.2)
            if time.monotonic() - began > LIMIT:
                process.kill()
            if time.monotonic() - reported > SHOWN_EVERY:
                reported = time.monotonic()
                loops.append(_reference())
                if not shown:
                    print(f"  {part.name}: {reported - began:.0f} s, {_last_line(log)}", flush=True)
    code = process.returncode = os.waitstatus_to_exitcode(found[1])
    if code and not shown:
        print(f"--- {part.name}\n{log.read_text(errors='replace')}", flush=True)
    cpu = found[2].ru_utime + found[2].ru_stime
    return Ended(part, code, time.monotonic() - began, cpu, sum(loops) / len(loops))


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n")
    return next((line.strip()[:100] for line in reversed(lines) if line.strip()), "...")


def _reference() -> float:
    """CPU seconds of a loop that is always the same: what a machine, with what else it does, makes of one."""
    began = time.thread_time()
    found = 0
    for number in range(LOOPS):
        found = (found * 31 + number) % 1_000_003
    return time.thread_time() - began


def _report(ended: list[Ended]) -> int:
    print(f"\n{'part':28}{'clock':>9}{'CPU':>9}{'in loops':>10}")
    for line in _rows(ended):
        print(line)
    failed = [each.part for each in ended if each.code]
    for part in failed:
        print(f"again: TESTS_SEED={tree_hash()} python3 -m tests.suite.parts ci --only '{part.name}'")
    return 1 if failed else 0


def _rows(ended: list[Ended]) -> Iterator[str]:
    for each in ended:
        yield f"{each.part.name:28}{each.seconds:7.0f} s{each.cpu:7.0f} s{each.cpu / each.loops:10,.0f}"
    cpu, loops = sum(each.cpu for each in ended), sum(each.cpu / each.loops for each in ended)
    yield f"{'in all':28}{'':9}{cpu:7.0f} s{loops:10,.0f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
