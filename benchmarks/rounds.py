"""Rounds: every subject in turn, each in a fresh process, so that memory, threads and CPU time are its own.

Subjects are interleaved and every second round goes backwards, so that a machine that gets slower or faster meanwhile
does so for all of them alike. Ratios are taken within a round.
"""

from __future__ import annotations

import gc
import importlib
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct, field

from benchmarks.subject import SCENARIOS, Sample, Setting, Subject

SUBJECTS: dict[str, str] = {
    "tickwork memory": "benchmarks.tickwork_memory",
    "apscheduler memory": "benchmarks.apscheduler_memory",
    "tickwork sqlite": "benchmarks.tickwork_sqlite",
    "tickwork sqlite disk": "benchmarks.tickwork_sqlite_disk",
    "huey sqlite": "benchmarks.huey_sqlite",
    "huey sqlite nosync": "benchmarks.huey_sqlite_nosync",
}
FEWEST = 10  # tasks a scenario, however slow the subject and quick the run
LIMIT = 600.0  # seconds for one subject's round
REFERENCE_STEPS = 1_000_000


class Plan(Struct, frozen=True):
    subjects: tuple[str, ...]
    scenarios: tuple[str, ...]
    rounds: int
    size: float  # share of each scenario's usual number of tasks
    uvloop: bool = False


class Round(Struct):
    """What one process had to say: one subject, one round."""

    subject: str
    number: int
    about: str = ""
    reference_wall: float = 0.0
    reference_cpu: float = 0.0
    samples: dict[str, Sample] = field(default_factory=dict)
    problem: str = ""


def play_all(plan: Plan) -> list[Round]:
    rounds: list[Round] = []
    for number in range(1, plan.rounds + 1):
        order = plan.subjects if number % 2 else tuple(reversed(plan.subjects))
        rounds += [_in_child(plan, name, number) for name in order]
    return rounds


def _in_child(plan: Plan, subject: str, number: int) -> Round:
    with tempfile.TemporaryDirectory(prefix="tickwork-bench-") as folder:
        order = Path(folder, "plan.json")
        order.write_bytes(msgspec.json.encode((plan, subject, number)))
        command = [sys.executable, "-m", "benchmarks.rounds", folder]
        try:
            code = subprocess.run(command, timeout=LIMIT, check=False).returncode
        except subprocess.TimeoutExpired:
            return _failed(subject, number, f"no end after {LIMIT:g} s")
        answer = Path(folder, "round.json")
        if not answer.exists():
            return _failed(subject, number, f"its process ended with code {code}")
        return msgspec.json.decode(answer.read_bytes(), type=Round)


def _failed(subject: str, number: int, problem: str) -> Round:
    _say(f"round {number}  {subject:<21}{problem}")
    return Round(subject, number, problem=problem)


# --- in the child


def play_round(plan: Plan, name: str, number: int, folder: Path) -> Round:
    done = Round(name, number)
    head = f"round {number}/{plan.rounds}  {name:<21}"
    try:
        subject: Subject = importlib.import_module(SUBJECTS[name]).subject
    except ImportError as error:
        done.problem = f"left out: {error}"
        _say(head + done.problem)
        return done
    done.about = subject.about
    done.reference_wall, done.reference_cpu = reference()
    for scenario in _known(plan.scenarios, subject):
        share = subject.pace.get(scenario, subject.pace.get("", 1.0)) * plan.size
        tasks = max(round(SCENARIOS[scenario].tasks * share), FEWEST)
        own = folder / scenario
        own.mkdir()
        gc.collect()
        try:
            sample = subject.plays[scenario](Setting(tasks, own, min(plan.size, 1.0), plan.uvloop))
        except Exception as error:  # one scenario that breaks must not cost the others
            logging.getLogger("benchmarks").exception("%s, %s", name, scenario)
            done.problem = f"{scenario}: {type(error).__name__}: {error}"
            continue
        done.samples[scenario] = sample
        _say(f"{head}{scenario:<14}{sample.tasks:>7,} tasks{sample.rate:>10,.0f}/s{sample.cpu_us:>9.1f} us CPU")
    return done


def _known(scenarios: Iterable[str], subject: Subject) -> list[str]:
    return [scenario for scenario in scenarios if scenario in subject.plays]


def reference() -> tuple[float, float]:
    """The same piece of plain Python every time: when it changes, the machine has changed."""
    wall, cpu = time.perf_counter(), time.process_time()
    total, table = 0, {number: number for number in range(256)}
    for step in range(REFERENCE_STEPS):
        total += table[step & 255]
    assert total > 0
    return time.perf_counter() - wall, time.process_time() - cpu


def _say(line: str) -> None:
    print(line, flush=True)


def main(folder: Path) -> None:
    logging.basicConfig(level=logging.WARNING)
    plan, name, number = msgspec.json.decode((folder / "plan.json").read_bytes(), type=tuple[Plan, str, int])
    done = play_round(plan, name, number, folder)
    (folder / "round.json").write_bytes(msgspec.json.encode(done))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
