"""Pieces of a screen that is drawn from a snapshot of the store: for `tickwork top` and the demo. Drawing is pure."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeAlias

import click

from tickwork.cli import output
from tickwork.cli.tasks import first_line
from tickwork.client.schedules import ScheduleInfo
from tickwork.client.watching import HISTORY, Snapshot
from tickwork.model.facts import Fact
from tickwork.model.info import Event, TaskInfo, WorkerInfo
from tickwork.model.tasks import Band, Status, band_of

BLOCKS = "▁▂▃▄▅▆▇█"
SHOWN: dict[str, tuple[str, str]] = {
    Fact.TASK_SUBMITTED: ("submitted", "cyan"),
    Fact.TASK_SUCCEEDED: ("succeeded", "green"),
    Fact.TASK_RETRYING: ("retrying", "yellow"),
    Fact.TASK_DIED: ("died", "red"),
    Fact.TASK_LOST: ("taken back", "magenta"),
    Fact.TASK_RELEASED: ("given back", "magenta"),
    Fact.TASK_RETRIED: ("sent again", "magenta"),
    Fact.TASK_CANCELLED: ("cancelled", "magenta"),
    Fact.SCHEDULE_FIRED: ("fired", "blue"),
    Fact.WORKER_JOINED: ("joined", "blue"),
    Fact.WORKER_LEFT: ("left", "blue"),
    Fact.WORKER_LOST: ("lost", "red"),
    Fact.QUEUE_PAUSED: ("paused", "magenta"),
    Fact.QUEUE_RESUMED: ("resumed", "magenta"),
    Fact.LEADER_ELECTED: ("leads", "blue"),
    Fact.SCHEDULE_STOPPED: ("stopped", "red"),
    Fact.ALERT_FIRED: ("alert", "red"),
    Fact.ALERT_RESOLVED: ("resolved", "green"),
    Fact.TASK_FAILED: ("failed", "red"),
}
FAILURES = (Fact.TASK_RETRYING, Fact.TASK_DIED, Fact.TASK_FAILED)

Part: TypeAlias = tuple[str, dict[str, Any]]
Line: TypeAlias = list[Part]


def rate(series: Sequence[float], seconds: int = 5) -> float:
    return sum(series[-seconds:]) / seconds


def paint(line: Line, columns: int, color: bool) -> str:
    painted, left = "", columns
    for text, style in line:
        text = output.clip(output.clean(text), left)
        left -= output.width(text)
        painted += click.style(text, **style) if color and style and text else text
    return painted


def cell(text: object, columns: int, right: bool = False) -> str:
    """Exactly so many columns, whatever the text holds."""
    return output.pad(output.clip(output.clean(text), columns), columns, right)


def fill(lines: list[Line], count: int) -> list[Line]:
    """Exactly `count` lines, so that nothing below moves."""
    return lines[:count] + [[] for _ in range(count - len(lines))]


def ends(left: Line, right: str, columns: int) -> Line:
    used = sum(output.width(text) for text, _ in left)
    return [*left, (" " * max(columns - used - len(right), 1), {}), (right, {"dim": True})]


def rule(title: str, columns: int) -> Line:
    return [(f"{title} ", {"bold": True}), ("─" * max(columns - len(title) - 1, 0), {"dim": True})]


def padded(line: Line, columns: int) -> Line:
    return [*line, (" " * max(columns - sum(output.width(text) for text, _ in line), 1), {})]


def counts(snap: Snapshot) -> list[Line]:
    statuses = (Status.READY, Status.RUNNING, Status.RETRYING, Status.PENDING, Status.SUCCESS, Status.DEAD)
    lines: list[Line] = [[("TASKS", {"bold": True})]]
    for status in statuses:
        count = snap.stats.statuses.get(status, 0)
        style = {"fg": output.status_color(status)} if count else {"dim": True}
        lines.append([(f"{status:<9}", style), (f"{count:>7,}", {"bold": True} if count else {"dim": True})])
    return lines


def rates(snap: Snapshot) -> list[Line]:
    lines: list[Line] = [[(f"A SECOND, LAST {HISTORY}", {"bold": True})]]
    top = max([*snap.submitted, *snap.done, 1])
    for name, series, fg in (
        ("in", snap.submitted, "cyan"),
        ("done", snap.done, "green"),
        ("failed", snap.failed, "yellow"),
    ):
        lines.append([(f"{name:<6}{rate(series):>5.1f} ", {}), (sparks(series, top), {"fg": fg})])
    return lines


def sparks(series: Sequence[float], top: float) -> str:
    return "".join(" " if not n else BLOCKS[min(int(n * len(BLOCKS) / (top + 1)), len(BLOCKS) - 1)] for n in series)


def waiting(snap: Snapshot) -> list[Line]:
    bands = dict.fromkeys(Band, 0)
    for (_, band), count in snap.stats.ready.items():
        bands[Band(band)] += count
    top = max(bands.values(), default=0)
    lines: list[Line] = [[("READY, BY PRIORITY", {"bold": True})]]
    for band, fg in ((Band.HIGH, "red"), (Band.NORMAL, "yellow"), (Band.LOW, "blue")):
        count = bands[band]
        drawn = bar(count, max(top, 10), 10)
        lines.append([(f"{band.name.lower():<7}", {}), (drawn, {"fg": fg}), (f"{count:>5,}", {})])
    return lines


def bar(value: float, top: float, size: int) -> str:
    full = round(min(value / top, 1) * size) if top else 0
    return "█" * full + "░" * (size - full)


def running_line(task: TaskInfo, now: datetime) -> Line:
    since = "" if task.started_at is None else output.duration(max((now - task.started_at).total_seconds(), 0))
    band = band_of(task.priority).name.lower()
    line: Line = [(f"{cell(task.type, 16)} ", {"fg": "yellow"}), (f"{band:<7}{since:>6}  ", {"dim": True})]
    if task.progress is not None:
        return [
            *line,
            (bar(task.progress, 1, 20), {"fg": "green"}),
            (f" {task.progress:>4.0%} {task.progress_note}", {}),
        ]
    return [*line, (f"{task.id}  attempt {task.attempt}", {"dim": True})]


def schedule_line(schedule: ScheduleInfo, now: datetime) -> Line:
    ahead = "" if schedule.next_at is None else output.age(schedule.next_at, now)
    last = f", last {schedule.last_status}" if schedule.last_status else ""
    return [(f"{cell(schedule.id, 16)} ", {"fg": "blue"}), (f"{schedule.description}, next {ahead}{last}", {})]


def worker_line(worker: WorkerInfo) -> Line:
    busy = f" {worker.running}/{worker.capacity} busy, pid {worker.pid}"
    return [
        (f"{cell(worker.id, max(min(output.width(worker.id), 24), 16))} ", {"fg": "blue"}),
        (bar(worker.running, worker.capacity, 10), {"fg": "green"}),
        (busy, {}),
    ]


def dead_line(task: TaskInfo) -> Line:
    attempts = "1 attempt" if task.attempt == 1 else f"{task.attempt} attempts"
    return [(f"{cell(task.type, 16)} ", {"fg": "red"}), (f"{first_line(task.last_error)}, {attempts}", {})]


def event_line(event: Event, now: datetime) -> Line:
    word, fg = SHOWN[event.kind]
    at = event.at.astimezone()
    today = at.date() == now.astimezone().date()
    moment = f"{at:%H:%M:%S}" if today else f"{at:%d %b  }"
    about = f"{cell(event.type or event.id, 16)} "
    rest = event.id if event.type else ""
    if event.kind in FAILURES:
        rest = f"attempt {event.attempt}: {first_line(event.detail)}"
    elif event.kind == Fact.TASK_SUCCEEDED:
        rest += f"  in {output.duration(event.duration)}" + (f", attempt {event.attempt}" if event.attempt > 1 else "")
    elif not event.type:
        rest = event.detail
    return [(f"{moment} ", {"dim": True}), (f"{word:<11}", {"fg": fg}), (about, {}), (rest, {"dim": True})]


def plain_line(snap: Snapshot) -> str:
    """For where there is no terminal."""
    count = snap.stats.statuses
    shown = " ".join(
        f"{status}={count.get(status, 0)}"
        for status in (Status.READY, Status.RUNNING, Status.RETRYING, Status.PENDING, Status.SUCCESS, Status.DEAD)
    )
    return f"{datetime.now():%H:%M:%S} {shown} in={rate(snap.submitted):.1f}/s done={rate(snap.done):.1f}/s"


class Picture:
    """Draws over the last picture, without a screen of its own: if we are killed, the terminal is as it should be."""

    def __init__(self) -> None:
        self._drawn: tuple[int, int, int] | None = None  # lines, and the size of the terminal they were drawn for

    def show(self, lines: list[str], size: os.terminal_size) -> None:
        shown = (len(lines), *size)
        if self._drawn is None:
            start = "\n" * len(lines) + f"\x1b[{len(lines)}A"
        elif self._drawn == shown:
            start = f"\x1b[{len(lines)}A"
        else:
            start = "\x1b[2J\x1b[H"
        self._drawn = shown
        sys.stdout.write(start + "".join(f"\r{line}\x1b[K\n" for line in lines) + "\x1b[J")
        sys.stdout.flush()
