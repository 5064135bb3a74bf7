"""`python -m benchmarks`: from the options of the command line to the report."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click
import msgspec
from msgspec.structs import replace

from benchmarks.charts import write
from benchmarks.environments import CACHE
from benchmarks.markdown import pages, write_docs
from benchmarks.report import Report, draw, lines, make_report
from benchmarks.rounds import Plan, joined, play_all
from benchmarks.scenarios import SCENARIOS
from benchmarks.subjects import STORES, SUBJECTS

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.option("--store", multiple=True, type=click.Choice(STORES), help="Only on this store; may be repeated.")
@click.option("--quick", is_flag=True, help="One round of few tasks: to see that all is well, not to quote.")
@click.option("--closest", is_flag=True, help="Of each scenario only those who come closest to the best.")
@click.option(
    "--rounds",
    default=3,
    show_default=True,
    type=click.IntRange(min=0),
    help="Rounds; 3 or more to quote. 0 measures nothing, and reports what --with brings.",
)
@click.option("--size", default=1.0, show_default=True, type=click.FloatRange(0.001, 100), help="Times the tasks.")
@click.option("--only", multiple=True, help="Subjects whose name contains this; may be repeated.")
@click.option("--scenario", multiple=True, help="Scenarios whose name starts so (drain, submit.one); may be repeated.")
@click.option(
    "--with",
    "earlier",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Add the rounds of an earlier run, from what --json wrote; may be repeated.",
)
@click.option("--json", "json_file", type=FILE, help="Write all figures there.")
@click.option("--markdown", "markdown_file", type=FILE, help="Write tables in Markdown there.")
@click.option("--docs", is_flag=True, help="Write the tables into docs/performance.md, a line of them into the README.")
@click.option("--svg", "svg_file", type=FILE, help="Draw a chart of what was measured on Redis there.")
@click.option(
    "--cache",
    default=CACHE,
    show_default=True,
    type=FOLDER,
    help="Where the environments of the peers are; made on first use.",
)
def main(
    store: tuple[str, ...],
    quick: bool,
    closest: bool,
    rounds: int,
    size: float,
    only: tuple[str, ...],
    scenario: tuple[str, ...],
    earlier: tuple[Path, ...],
    json_file: Path | None,
    markdown_file: Path | None,
    docs: bool,
    svg_file: Path | None,
    cache: Path,
) -> None:
    """Measure Tickwork and its peers, interleaved, each round of each subject in processes of its own."""
    if sys.platform != "linux":
        raise click.UsageError("the benchmarks read /proc, so they need Linux")
    shrunk = size * (0.1 if quick else 1.0)
    plan = _plan(store, only, scenario, Plan((), (), min(rounds, 1) if quick else rounds, shrunk, str(cache), closest))
    before = [msgspec.json.decode(path.read_bytes(), type=Report) for path in earlier]
    if not rounds and not before:
        raise click.UsageError("--rounds 0 measures nothing: name an earlier run with --with")
    started, load = time.monotonic(), " ".join(f"{number:.1f}" for number in os.getloadavg())
    runs = [(done.plan, done.rounds) for done in before]
    plan, played = joined([*runs, (plan, play_all(plan))] if rounds else runs)
    report = make_report(plan, played, load if rounds else before[0].machine["load before"])
    print("", *lines(report), f"{time.monotonic() - started:.0f} s in all.", sep="\n")
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    if markdown_file is not None:
        markdown_file.write_text("\n".join(pages(report)) + "\n", encoding="utf-8")
    if docs:
        write_docs(report)
    if svg_file is not None:
        write(svg_file, draw(report))
    sys.exit(1 if report.problems or any(row.lost or row.duplicates for row in report.rows) else 0)


def _plan(stores: tuple[str, ...], only: tuple[str, ...], starts: tuple[str, ...], plan: Plan) -> Plan:
    """The plan with the subjects and scenarios that were asked for."""
    subjects = tuple(
        name
        for name, subject in SUBJECTS.items()
        if (not stores or subject.store in stores) and (not only or any(part in name for part in only))
    )
    scenarios = tuple(name for name in SCENARIOS if not starts or name.startswith(starts))
    if not any(plan.wants(name, scenario) for name in subjects for scenario in scenarios):
        raise click.UsageError(f"nothing fits; known are {', '.join([*SUBJECTS, *SCENARIOS])}")
    return replace(plan, subjects=subjects, scenarios=scenarios)


main()
