"""The comparison on Redis, from the options of the command line to its report."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from benchmarks.redis import svg
from benchmarks.redis.report import lines, make_report
from benchmarks.redis.rounds import Plan, play_all
from benchmarks.redis.scenarios import SCENARIOS
from benchmarks.redis.subjects import SUBJECTS
from benchmarks.report import publish


def make_plan(only: tuple[str, ...], scenario: tuple[str, ...], rounds: int, size: float, cache: Path) -> Plan | None:
    """None where nothing fits."""
    subjects = tuple(name for name in SUBJECTS if not only or any(part in name for part in only))
    scenarios = tuple(name for name in SCENARIOS if not scenario or name.startswith(scenario))
    return Plan(subjects, scenarios, rounds, size, str(cache)) if subjects and scenarios else None


def compare(plan: Plan, json_file: Path | None, svg_file: Path | None) -> bool:
    """Measure and print; whether every task ran exactly once and nothing broke."""
    if sys.platform != "linux":
        raise click.UsageError("the comparison on Redis reads /proc, so it needs Linux")
    started, load = time.monotonic(), " ".join(f"{number:.1f}" for number in os.getloadavg())
    report = make_report(plan, play_all(plan), load)
    if svg_file is not None:
        svg.write(report, svg_file)
    return publish(report, lines(report), started, json_file)
