"""Rounds: one scenario after the other, for every subject in turn and every second round backwards, each on a server
and processes of its own.

So a machine that gets slower or faster meanwhile does so for all of them alike, and those who are compared are measured
within a minute.
"""

from __future__ import annotations

import time
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from benchmarks.crew import Crew
from benchmarks.environments import Unavailable
from benchmarks.scenarios import SCENARIOS, Sample
from benchmarks.subjects import CLOSEST, SUBJECTS, Subject

REFERENCE_STEPS = 1_000_000
EVERYTHING = frozenset(scenario.needs for scenario in SCENARIOS.values())


class Plan(Struct, frozen=True):
    subjects: tuple[str, ...]
    scenarios: tuple[str, ...]
    rounds: int
    size: float  # share of each scenario's usual number of tasks
    cache: str  # the folder of the peers' environments
    closest: bool = False  # of each scenario only those who come closest to the best

    def wants(self, subject: str, scenario: str) -> bool:
        if SCENARIOS[scenario].only_together and not SUBJECTS[subject].together:
            return False
        return not self.closest or subject in CLOSEST.get(scenario, ())


class Round(Struct):
    """One subject in one scenario, or in several, and one round."""

    subject: str
    number: int
    about: str = ""
    reference_wall: float = 0.0
    reference_cpu: float = 0.0
    samples: dict[str, Sample] = field(default_factory=dict)
    lacks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    offers: list[str] = field(default_factory=list)


def order(subjects: tuple[str, ...], number: int) -> tuple[str, ...]:
    return subjects if number % 2 else tuple(reversed(subjects))


def play_all(plan: Plan) -> list[Round]:
    rounds: list[Round] = []
    offers: dict[
        str, list[str]
    ] = {}  # nothing, if its environment cannot be made: it will not be there next time either
    turns = ((number, scenario) for number in range(1, plan.rounds + 1) for scenario in plan.scenarios)
    for number, scenario in turns:
        for name in order(plan.subjects, number):
            if not plan.wants(name, scenario) or not SCENARIOS[scenario].offered_by(offers.get(name, EVERYTHING)):
                continue
            done = play_round(replace(plan, scenarios=(scenario,)), SUBJECTS[name], number)
            offers[name] = done.offers
            rounds.append(done)
    return rounds


def joined(runs: list[tuple[Plan, list[Round]]]) -> tuple[Plan, list[Round]]:
    """Several runs as one: their rounds are numbered on, and subjects and scenarios are those of any of them."""
    subjects = {name for plan, _ in runs for name in plan.subjects}
    scenarios = {name for plan, _ in runs for name in plan.scenarios}
    played: list[Round] = []
    for _, rounds in runs:
        last = max((done.number for done in played), default=0)
        played += [replace(done, number=last + done.number) for done in rounds]
    plan = Plan(
        tuple(name for name in SUBJECTS if name in subjects),
        tuple(name for name in SCENARIOS if name in scenarios),
        max((done.number for done in played), default=0),
        min(plan.size for plan, _ in runs),
        runs[0][0].cache,
        all(plan.closest for plan, _ in runs),
    )
    return plan, played


def play_round(plan: Plan, subject: Subject, number: int) -> Round:
    done = Round(subject.name, number)
    done.reference_wall, done.reference_cpu = reference()
    for name in plan.scenarios:
        said, told = len(done.problems), len(done.samples)
        try:
            _play(plan, subject, name, done)
        except Unavailable as error:
            done.problems.append(f"left out: {error}")
        except Exception as error:  # one scenario that breaks must not cost the others
            done.problems.append(f"{name}: {type(error).__name__}: {error}")
        news = [f"{key:<15}{_line(sample)}" for key, sample in list(done.samples.items())[told:]]
        for line in done.problems[said:] + news:
            print(f"round {number}/{plan.rounds}  {subject.name:<22}{line}", flush=True)
    return done


def tasks_of(plan: Plan, subject: Subject, name: str) -> int:
    scenario = SCENARIOS[name]
    share = subject.share(name) if scenario.paced else 1.0
    return max(round(scenario.tasks * share * plan.size), scenario.fewest)


def _play(plan: Plan, subject: Subject, name: str, done: Round) -> None:
    scenario, tasks = SCENARIOS[name], tasks_of(plan, subject, name)
    with Crew(
        subject, tasks, scenario.concurrency, cache=Path(plan.cache), scenario=name, filler=scenario.filler
    ) as crew:
        done.about, done.offers = crew.client.about, sorted(crew.client.offers)
        if scenario.offered_by(crew.client.offers):
            done.samples |= {name + part: sample for part, sample in scenario.play(crew).items()}
        else:
            done.lacks.append(name)


def _line(sample: Sample) -> str:
    if sample.is_idle:
        return f"{sample.cpu / sample.wall * 1e3:.2f} ms/s CPU{sample.redis_cpu / sample.wall * 1e3:>8.2f} ms/s Redis"
    late = f"  p50 {sample.p50 * 1e3:,.2f} ms" if sample.p50 is not None else ""
    redis = f"{sample.redis_us:>8,.1f} us Redis" if sample.redis_cpu else ""
    return f"{sample.tasks:>7,} tasks{sample.rate:>9,.0f}/s{sample.cpu_us:>9,.1f} us CPU{redis}{late}"


def reference() -> tuple[float, float]:
    """The same piece of plain Python every time: when it changes, the machine has changed."""
    wall, cpu = time.perf_counter(), time.process_time()
    total, table = 0, {number: number for number in range(256)}
    for step in range(REFERENCE_STEPS):
        total += table[step & 255]
    assert total > 0
    return time.perf_counter() - wall, time.process_time() - cpu
