"""The screen of the demo. Drawing is pure."""

from __future__ import annotations

from collections.abc import Sequence

from tickwork import __version__
from tickwork.cli.screen import (
    Line,
    counts,
    dead_line,
    ends,
    event_line,
    fill,
    padded,
    paint,
    rates,
    rule,
    running_line,
    schedule_line,
    waiting,
    worker_line,
)
from tickwork.client.watching import Snapshot
from tickwork.model.tasks import Status


def draw(
    snap: Snapshot, title: str, found: str, hints: Sequence[str], columns: int, rows: int, color: bool
) -> list[str]:
    """The screen as lines, at most `rows` of at most `columns`."""
    roomy = rows >= 30
    gap: list[Line] = [[]] if roomy else []
    head: Line = [("Tickwork demo", {"bold": True, "fg": "cyan"}), (f"  {title}", {"dim": True})]
    dead = snap.stats.statuses.get(Status.DEAD, 0)
    lines: list[Line] = [
        ends(head, f"v{__version__}", columns),
        [(found, {"dim": True})],
        [],
        *_panels(snap, columns),
        *gap,
        rule("RUNNING", columns),
        *fill([running_line(task, snap.now) for task in snap.running], 4 if roomy else 3),
        *gap,
        rule(f"DEAD LETTERS {dead}" if dead else "DEAD LETTERS", columns),
        *fill([dead_line(task) for task in snap.dead] or [[("none", {"dim": True})]], 2 if roomy else 1),
        *gap,
        rule("EVENTS", columns),
    ]
    tips: list[Line] = [*gap, *([(hint, {"fg": "cyan"})] for hint in hints)]
    left = max(rows - len(lines) - len(tips), 0)
    newest = snap.latest[-left:] if left else []
    lines += fill([event_line(event, snap.now) for event in reversed(newest)], left)
    return [paint(line, columns, color) for line in (lines + tips)[:rows]]


def _panels(snap: Snapshot, columns: int) -> list[Line]:
    """Counts on the left; beside them rates and what waits, and below those the schedule and the workers."""
    first, second = (20, 32) if columns < 96 else (26, 38)
    upper = [padded(left, second) + right for left, right in zip(rates(snap), waiting(snap), strict=True)]
    more = len(snap.workers) - 2
    workers = [worker_line(worker) for worker in snap.workers[:2]]
    if more > 0:
        workers[-1].append((f", and {more} more", {}))
    lower = fill([*(schedule_line(schedule, snap.now) for schedule in snap.schedules[:1]), *workers], 3)
    return [padded(left, first) + right for left, right in zip(counts(snap), upper + lower, strict=True)]
