"""The screen of `tickwork top`. Drawing is pure."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import NamedTuple

from tickwork import __version__
from tickwork.cli import output
from tickwork.cli.schedules import state_of
from tickwork.cli.screen import (
    SHOWN,
    Line,
    bar,
    cell,
    counts,
    dead_line,
    ends,
    event_line,
    padded,
    paint,
    rates,
    rule,
    running_line,
    waiting,
)
from tickwork.client.queues import QueueInfo
from tickwork.client.schedules import ScheduleInfo
from tickwork.client.watching import Snapshot
from tickwork.model.info import WorkerInfo
from tickwork.model.tasks import Status

WIDE = 110  # columns from which names get more room


class Section(NamedTuple):
    title: str
    lines: list[Line]
    total: int  # how many there are, of which `lines` may be the first


def draw(snap: Snapshot, title: str, notice: str, columns: int, rows: int, color: bool) -> list[str]:
    """The screen as lines, at most `rows` of at most `columns`. `notice` says what is wrong, or how to leave."""
    head: Line = [("Tickwork top", {"bold": True, "fg": "cyan"}), (f"  {output.clean(title)}", {"dim": True})]
    lines = [ends(head, f"v{__version__}", columns), *_panels(snap, columns)]
    for section, shown in _shared(_sections(snap, columns), rows - len(lines) - 1):
        more = "" if shown >= section.total else f" {shown} of {section.total:,}"
        lines += [rule(f"{section.title}{more}", columns), *section.lines[:shown]]
    last: list[Line] = [[(notice, {"fg": "cyan"})]] if rows > 1 else []
    filler: list[Line] = [[] for _ in range(rows - len(lines) - len(last))]
    return [paint(line, columns, color) for line in [*lines[: rows - len(last)], *filler, *last]]


def _shared(sections: list[Section], rows: int) -> list[tuple[Section, int]]:
    """The sections that fit, and how many lines of each: one more of each by turns, as long as it has more."""
    sections = sections[: max(rows // 2, 0)]
    shown = [1] * len(sections)
    left = rows - 2 * len(sections)
    while left > 0:
        growing = [n for n, section in enumerate(sections) if shown[n] < len(section.lines)][:left]
        if not growing:
            break
        for n in growing:
            shown[n] += 1
        left -= len(growing)
    return list(zip(sections, shown, strict=True))


def _sections(snap: Snapshot, columns: int) -> list[Section]:
    dead, running = (snap.stats.statuses.get(status, 0) for status in (Status.DEAD, Status.RUNNING))
    names = 16 if columns < WIDE else 32
    busy = Counter(task.queue for task in snap.running)
    none: Line = [("no worker is up; start one with `tickwork up MODULE:APP`", {"fg": "red"})]
    workers = [_worker(worker, snap.now, names) for worker in snap.workers] or [none]
    found = [
        Section("QUEUES", [_queue(queue, busy, snap, names) for queue in _by_need(snap.queues)], len(snap.queues)),
        Section("WORKERS", workers, len(snap.workers)),
        Section("RUNNING", [running_line(task, snap.now) for task in snap.running], running),
        Section("SCHEDULES", [_schedule(each, snap.now, names) for each in snap.schedules], len(snap.schedules)),
        Section("DEAD LETTERS", [dead_line(task) for task in snap.dead], dead),
    ]
    latest = [event_line(event, snap.now) for event in reversed(snap.latest) if event.kind in SHOWN]
    return [each for each in found if each.lines] + ([Section("EVENTS", latest, 0)] if latest else [])


def _panels(snap: Snapshot, columns: int) -> list[Line]:
    first, second = (20, 32) if columns < 96 else (26, 38)
    upper = [padded(left, second) + right for left, right in zip(rates(snap), waiting(snap), strict=True)]
    busy, slots = sum(worker.running for worker in snap.workers), sum(worker.capacity for worker in snap.workers)
    leader = "nobody leads" if snap.leader is None else f"{snap.leader} leads"
    paused = ", ".join(snap.paused)
    lower: list[Line] = [
        [],
        [(f"{output.many(len(snap.workers), 'worker')}, {busy} of {slots} slots busy; {leader}", {})],
        [(f"PAUSED: {paused}", {"fg": "magenta", "bold": True})] if paused else [],
    ]
    return [padded(left, first) + right for left, right in zip(counts(snap), upper + lower, strict=True)]


def _by_need(queues: list[QueueInfo]) -> list[QueueInfo]:
    """Those that are paused, then those whose first task waits longest."""
    last = datetime.max.replace(tzinfo=UTC)
    return sorted(queues, key=lambda queue: (not queue.paused, queue.waiting_since or last, queue.name))


def _queue(queue: QueueInfo, busy: Counter[str], snap: Snapshot, names: int) -> Line:
    ready = queue.high + queue.normal + queue.low
    running = f"{busy[queue.name]:,}" if snap.all_running else f"{busy[queue.name]:,}+"
    line: Line = [
        (f"{cell(queue.name, names)} ", {"fg": "cyan"}),
        (f"{ready:>9,} ready", {"bold": True} if ready else {"dim": True}),
        (f"{_waits(queue, snap.now):>7}", {"fg": "yellow"}),
        (f" {running:>6} running", {}),
    ]
    if queue.paused:
        line.append((f"  PAUSED {queue.note}", {"fg": "magenta", "bold": True}))
    else:
        line.append((f"  {output.many(queue.workers, 'worker')}", {} if queue.workers or not ready else {"fg": "red"}))
    if queue.parked:
        line.append((f"  {sum(queue.parked.values()):,} set aside", {"fg": "yellow"}))
    return line


def _waits(queue: QueueInfo, now: datetime) -> str:
    """How long its first ready task has waited."""
    if queue.waiting_since is None:
        return ""
    return output.duration(max((now - queue.waiting_since).total_seconds(), 0) // 1)


def _worker(worker: WorkerInfo, now: datetime, names: int) -> Line:
    where = f"pid {worker.pid}" if worker.pid else worker.address
    leaked = f"  {output.many(worker.leaked, 'handler')} stuck" if worker.leaked else ""
    return [
        (f"{cell(worker.id, max(names, 28))} ", {"fg": "blue"}),
        (bar(worker.running, worker.capacity, 10), {"fg": "green"}),
        (f" {worker.running:>3}/{worker.capacity:<4} {where}", {}),
        (f"  {', '.join(worker.queues)}  up {output.duration(max((now - worker.started_at).total_seconds(), 0) // 1)}",
         {"dim": True}),
        ("  draining" if worker.status == "draining" else "", {"fg": "yellow"}),
        (leaked, {"fg": "red"}),
    ]  # fmt: skip


def _schedule(schedule: ScheduleInfo, now: datetime, names: int) -> Line:
    ahead = state_of(schedule) if schedule.next_at is None else output.age(schedule.next_at, now)
    zone = f" {schedule.timezone}" if schedule.timezone != "UTC" else ""
    last = f"  last {schedule.last_status}" if schedule.last_status else ""
    return [
        (f"{cell(schedule.id, names)} ", {"fg": "blue"}),
        (f"{cell(ahead, 10)} ", {}),
        (f"{schedule.description}{zone}{last}", {"dim": True}),
    ]
