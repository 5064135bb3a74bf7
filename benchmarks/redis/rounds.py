"""Rounds: every subject in turn, every second round backwards, each scenario on a server and processes of its own."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from benchmarks.redis.crew import Crew
from benchmarks.redis.environments import Unavailable, command
from benchmarks.redis.scenarios import SCENARIOS, Sample
from benchmarks.redis.subjects import SUBJECTS, Subject
from benchmarks.rounds import reference


class Plan(Struct, frozen=True):
    subjects: tuple[str, ...]
    scenarios: tuple[str, ...]
    rounds: int
    size: float  # share of each scenario's usual number of tasks
    cache: str  # the folder of the peers' environments


class Round(Struct):
    """One subject, one round."""

    subject: str
    number: int
    about: str = ""
    reference_wall: float = 0.0
    reference_cpu: float = 0.0
    samples: dict[str, Sample] = field(default_factory=dict)
    lacks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def order(subjects: tuple[str, ...], number: int) -> tuple[str, ...]:
    return subjects if number % 2 else tuple(reversed(subjects))


def play_all(plan: Plan) -> list[Round]:
    rounds: list[Round] = []
    missing: set[str] = set()
    for number in range(1, plan.rounds + 1):
        for name in order(plan.subjects, number):
            if name not in missing:
                done = play_round(plan, SUBJECTS[name], number)
                rounds.append(done)
                missing |= {name} if not done.about else set()  # its environment will not be there next time either
    return rounds


def play_round(plan: Plan, subject: Subject, number: int) -> Round:
    done = Round(subject.name, number)
    head = f"round {number}/{plan.rounds}  {subject.name:<16}"
    done.reference_wall, done.reference_cpu = reference()
    for name in plan.scenarios:
        try:
            _play(plan, subject, name, done)
        except Unavailable as error:
            done.problems.append(f"left out: {error}")
        except Exception as error:  # one scenario that breaks must not cost the others
            done.problems.append(f"{name}: {type(error).__name__}: {error}")
        for told in done.problems[-1:]:
            if told.startswith((name, "left out")):
                _say(f"{head}{told}")
        if not done.about:
            break
        for key, sample in done.samples.items():
            if key.startswith(name):
                _say(f"{head}{key:<15}{_line(sample)}")
    return done


def tasks_of(plan: Plan, subject: Subject, name: str) -> int:
    scenario = SCENARIOS[name]
    return max(round(scenario.tasks * subject.share(name) * plan.size), scenario.fewest)


def _play(plan: Plan, subject: Subject, name: str, done: Round) -> None:
    scenario, cache = SCENARIOS[name], Path(plan.cache)
    with tempfile.TemporaryDirectory(prefix="tickwork-bench-") as folder:
        crew = Crew(
            partial(command, subject, cache),
            Path(folder),
            tasks_of(plan, subject, name),
            scenario.concurrency,
            warm=subject.warm,
            scenario=name,
            variant=subject.variant,
        )
        with crew:
            done.about = crew.client.about
            if scenario.offered_by(crew.client.offers):
                done.samples |= {name + part: sample for part, sample in scenario.play(crew).items()}
            else:
                done.lacks.append(name)


def _line(sample: Sample) -> str:
    late = f"  p50 {sample.p50 * 1e3:,.2f} ms" if sample.p50 is not None else ""
    return (
        f"{sample.tasks:>7,} tasks{sample.rate:>9,.0f}/s{sample.cpu_us:>9,.1f} us CPU"
        f"{sample.redis_us:>8,.1f} us Redis{late}"
    )


def _say(line: str) -> None:
    print(line, flush=True)
