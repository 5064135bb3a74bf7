"""The benchmarks end to end with Tickwork itself and few tasks, so that they do not rot between runs."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.costs import on_redis
from benchmarks.environments import ROOT
from benchmarks.growth.points import Ask
from benchmarks.growth.questions import QUESTIONS
from benchmarks.guard import BOUNDS, REFERENCES, measure
from benchmarks.rounds import Plan, play_round
from benchmarks.subjects import SUBJECTS

from tests.support.redis import default_binary

TINY = {"queued": 100, "partitions": 1, "payloads": 20_000}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("subject", "scenario", "named"),
    [
        ("tickwork", "submit.bulk", ["submit.bulk"]),
        ("tickwork", "drain.10", ["drain.10"]),
        ("tickwork", "latency", ["latency.start", "latency.result"]),
        ("tickwork", "submit.sync", ["submit.sync"]),
        ("tickwork", "payload", ["payload"]),
        ("tickwork memory", "drain.10", ["drain.10"]),
        ("tickwork memory", "roundtrip", ["roundtrip"]),
        ("tickwork memory", "through.live", ["through.live"]),
        ("tickwork sqlite", "through.bulk", ["through.bulk"]),
        ("tickwork sqlite apart", "drain.10", ["drain.10"]),
    ],
)
def test_tickwork_plays_its_part(subject: str, scenario: str, named: list[str], tmp_path: Path) -> None:
    default_binary()  # skips where there is no server
    done = play_round(Plan((subject,), (scenario,), 1, 0.001, str(tmp_path)), SUBJECTS[subject], 1)
    assert done.problems == []
    assert list(done.samples) == named
    for sample in done.samples.values():
        assert (sample.lost, sample.duplicates) == (0, 0)
        assert sample.cpu > 0
        assert (sample.redis_cpu > 0) is (SUBJECTS[subject].store == "redis")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("question", "store"),
    [(name, store) for name, question in QUESTIONS.items() if name != "workers" for store in question.sizes],
)
def test_every_question_of_growth_is_answered(question: str, store: str) -> None:
    """By `workers` it is a drain, as above."""
    default_binary()
    asked = QUESTIONS[question]
    ask = Ask(store, TINY.get(question, 3), effort=0.005)
    measured = asked.play(ask)
    assert (measured.lost, measured.duplicates) == (0, 0)
    judged = {each.column for each in asked.judged}
    if store == "redis":
        assert judged <= measured.costs.keys()
    assert judged & measured.costs.keys()
    assert all(cost >= 0 for cost in measured.costs.values())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", REFERENCES)
def test_every_reference_of_the_guard_can_be_measured(name: str) -> None:
    default_binary()
    cost = REFERENCES[name](0.01)
    assert all(getattr(cost, bound.side) > 0 for bound in BOUNDS if bound.reference == name)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_guard_measures_the_parts_of_a_scenario() -> None:
    costs = measure("tickwork memory", "latency", 0.01)
    assert costs["latency.start"].p50 > 0
    assert costs["latency.result"].python > 0


def test_costs_are_counted_by_command() -> None:
    """A script that comes to call more commands shows here, whatever the machine."""
    default_binary()
    spent = {(each.name, each.batch): each for each in asyncio.run(on_redis(500))}
    assert spent["submit", 50].count < 3
    assert spent["finish + claim", 50].count < 3
    assert spent["finish + claim", 1].count < 29
    assert all(each.commands < each.call for each in spent.values())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_calls_are_measured_while_they_are_open() -> None:
    command = [sys.executable, "-m", "benchmarks.calls", "--calls=20", "--seconds=0.2", "--rounds=2"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"round 2: 20 calls, \d+ at a time, in .* us of CPU a call, at most [+-]", ended.stdout)
    assert "20 calls at a time: " in ended.stdout
