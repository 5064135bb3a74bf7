"""`python -m benchmarks`: memory and SQLite against their peers; `--redis` takes Redis instead, `--all` both."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from benchmarks.redis import scenarios as redis_scenarios
from benchmarks.redis import subjects as redis_subjects
from benchmarks.redis.compare import compare, make_plan
from benchmarks.redis.environments import CACHE
from benchmarks.report import lines, make_report, publish
from benchmarks.rounds import SUBJECTS, Plan, play_all
from benchmarks.subject import SCENARIOS

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--redis", "part", flag_value="redis", help="Redis against its peers, instead of memory and SQLite.")
@click.option("--all", "part", flag_value="all", help="Memory, SQLite and Redis.")
@click.option("--quick", is_flag=True, help="Few tasks: to see that all is well, not to quote.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1), help="Rounds; 3 or more to quote.")
@click.option("--size", default=1.0, show_default=True, type=click.FloatRange(0.001, 100), help="Times the tasks.")
@click.option("--only", multiple=True, help="Subjects whose name contains this; may be repeated.")
@click.option("--scenario", multiple=True, help="Scenarios whose name starts so (drain, submit.one); may be repeated.")
@click.option("--uvloop", is_flag=True, help="Memory and SQLite: run everything that is asyncio on uvloop.")
@click.option("--json", "json_file", type=FILE, help="Write all figures there; with --all, those of Redis beside it.")
@click.option("--svg", "svg_file", type=FILE, help="Redis: draw a chart there.")
@click.option(
    "--cache",
    default=CACHE,
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Redis: where the environments of the peers are; made on first use.",
)
def main(
    part: str | None,
    quick: bool,
    rounds: int,
    size: float,
    only: tuple[str, ...],
    scenario: tuple[str, ...],
    uvloop: bool,
    json_file: Path | None,
    svg_file: Path | None,
    cache: Path,
) -> None:
    """Measure Tickwork and its peers, interleaved, each round of each subject in processes of its own."""
    size, good = size * (0.1 if quick else 1.0), True
    here = _local_plan(only, scenario, rounds, size, uvloop) if part != "redis" else None
    redis = make_plan(only, scenario, 1 if quick else rounds, size, cache) if part else None
    if here is None and redis is None:
        raise click.UsageError(f"nothing fits; known are {_known(part)}")
    if here is not None:
        good = local(here, json_file)
    if redis is not None:
        good = compare(redis, _beside(json_file) if part == "all" else json_file, svg_file) and good
    sys.exit(0 if good else 1)


def _local_plan(
    only: tuple[str, ...], scenario: tuple[str, ...], rounds: int, size: float, uvloop: bool
) -> Plan | None:
    subjects = tuple(name for name in SUBJECTS if not only or any(part in name for part in only))
    scenarios = tuple(name for name in SCENARIOS if not scenario or name.startswith(scenario))
    return Plan(subjects, scenarios, rounds, size, uvloop) if subjects and scenarios else None


def _known(part: str | None) -> str:
    here = [] if part == "redis" else [*SUBJECTS, *SCENARIOS]
    redis = [*redis_subjects.SUBJECTS, *redis_scenarios.SCENARIOS] if part else []
    return ", ".join(dict.fromkeys(here + redis))


def local(plan: Plan, json_file: Path | None) -> bool:
    """Memory and SQLite: measure and print; whether every task ran exactly once and nothing broke."""
    started, load = time.monotonic(), " ".join(f"{number:.1f}" for number in os.getloadavg())
    report = make_report(plan, play_all(plan), load)
    return publish(report, lines(report), started, json_file)


def _beside(json_file: Path | None) -> Path | None:
    return None if json_file is None else json_file.with_stem(json_file.stem + "-redis")


main()
