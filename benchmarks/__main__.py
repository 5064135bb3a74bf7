"""`python -m benchmarks`: the whole comparison in one run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click
import msgspec

from benchmarks.report import lines, make_report
from benchmarks.rounds import SUBJECTS, Plan, play_all
from benchmarks.subject import SCENARIOS


@click.command()
@click.option("--quick", is_flag=True, help="Few tasks, about 20 seconds: to see that all is well, not to quote.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1), help="Rounds; 3 or more to quote.")
@click.option("--size", default=1.0, show_default=True, type=click.FloatRange(0.001, 100), help="Times the tasks.")
@click.option("--only", multiple=True, help="Subjects whose name contains this; may be repeated.")
@click.option("--scenario", multiple=True, help="Scenarios whose name starts so (drain, submit.one); may be repeated.")
@click.option("--uvloop", is_flag=True, help="Run everything that is asyncio on uvloop.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write all figures there.")
def main(
    quick: bool,
    rounds: int,
    size: float,
    only: tuple[str, ...],
    scenario: tuple[str, ...],
    uvloop: bool,
    json_file: Path | None,
) -> None:
    """Measure Tickwork and its peers, interleaved, each round of each subject in a process of its own."""
    subjects = tuple(name for name in SUBJECTS if not only or any(part in name for part in only))
    scenarios = tuple(name for name in SCENARIOS if not scenario or name.startswith(scenario))
    if not subjects or not scenarios:
        known = ", ".join(SUBJECTS) if not subjects else ", ".join(SCENARIOS)
        raise click.UsageError(f"nothing fits; known are {known}")
    plan = Plan(subjects, scenarios, rounds, size * (0.1 if quick else 1.0), uvloop)
    started, load = time.monotonic(), " ".join(f"{number:.1f}" for number in os.getloadavg())
    done = play_all(plan)
    report = make_report(plan, done, load)
    print()
    for line in lines(report):
        print(line)
    print(f"{time.monotonic() - started:.0f} s in all.")
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    sys.exit(1 if report.problems or any(row.lost or row.duplicates for row in report.rows) else 0)


main()
