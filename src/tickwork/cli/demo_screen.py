"""What the demo shows: a snapshot of the store, and the screen drawn from it. Drawing is pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import click

from tickwork import __version__
from tickwork.cli import output
from tickwork.cli.schedules import with_last_status
from tickwork.cli.stats import counted
from tickwork.cli.tasks import first_line
from tickwork.client.schedules import ScheduleInfo
from tickwork.clock import to_datetime
from tickwork.model.facts import Fact
from tickwork.model.info import Event, TaskInfo
from tickwork.model.members import Worker
from tickwork.model.tasks import Band, Status, band_of
from tickwork.scheduler import Scheduler
from tickwork.store.contract import Stats

HISTORY = 18  # seconds of the small charts
BLOCKS = "▁▂▃▄▅▆▇█"
SHOWN = {
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
}
FAILURES = (Fact.TASK_RETRYING, Fact.TASK_DIED, Fact.TASK_FAILED)

Part: TypeAlias = tuple[str, dict[str, Any]]
Line: TypeAlias = list[Part]


class Snapshot(NamedTuple):
    now: datetime
    stats: Stats
    running: list[TaskInfo]
    dead: list[TaskInfo]
    workers: list[Worker]
    schedules: list[ScheduleInfo]
    paused: list[str]  # queues
    latest: list[Event]
    submitted: list[int]  # a second, the newest last
    done: list[int]
    failed: list[int]


class Watcher:
    """Follows the log, so that rates need no counting of tasks."""

    def __init__(self, app: Scheduler) -> None:
        self._app = app
        self._seen: int | None = None
        self._latest: deque[Event] = deque(maxlen=60)
        self._counts: dict[str, Counter[int]] = {"submitted": Counter(), "done": Counter(), "failed": Counter()}

    async def look(self) -> Snapshot:
        store = await self._app._open()
        await self._read_log()
        now = to_datetime(store.now())
        running = await self._app.list_tasks(Status.RUNNING, limit=100)
        workers = [worker for worker in await store.members.workers() if worker.lost_at is None]
        if running.cursor is None:
            workers = counted(workers, (task.worker_id for task in running))
        return Snapshot(
            now=now,
            stats=await store.queries.stats(),
            running=sorted(running, key=lambda task: (task.progress is None, task.started_at or task.submitted_at)),
            dead=(await self._app.dlq.list(limit=5)).items,
            workers=workers,
            schedules=await with_last_status(self._app, (await self._app.schedules.list()).items),
            paused=[pause.name for pause in await store.queries.paused() if pause.kind == "queue"],
            latest=list(self._latest),
            submitted=self._series("submitted", now),
            done=self._series("done", now),
            failed=self._series("failed", now),
        )

    async def _read_log(self) -> None:
        if self._seen is None:
            store = await self._app._open()
            self._seen = max(await store.log.last() - 100, 0)
        while found := await self._app.events.read(self._seen, 1000):
            for event in found:
                self._note(event)
            self._seen = found[-1].seq

    def _note(self, event: Event) -> None:
        second = int(event.at.timestamp())
        if event.kind == Fact.TASK_SUBMITTED:
            self._counts["submitted"][second] += 1
        elif event.kind == Fact.TASK_SUCCEEDED:
            self._counts["done"][second] += 1
        elif event.kind in FAILURES:
            self._counts["failed"][second] += 1
        if event.kind in SHOWN:
            self._latest.append(event)

    def _series(self, what: str, now: datetime) -> list[int]:
        counts, last = self._counts[what], int(now.timestamp()) - 1  # the second that runs is not over
        for second in [second for second in counts if second < last - 2 * HISTORY]:
            del counts[second]
        return [counts[second] for second in range(last - HISTORY + 1, last + 1)]


def rate(series: Sequence[int], seconds: int = 5) -> float:
    return sum(series[-seconds:]) / seconds


# --- drawing


def draw(
    snap: Snapshot, title: str, found: str, hints: Sequence[str], columns: int, rows: int, color: bool
) -> list[str]:
    """The screen as lines, at most `rows` of at most `columns`."""
    roomy = rows >= 30
    gap: list[Line] = [[]] if roomy else []
    head: Line = [("Tickwork demo", {"bold": True, "fg": "cyan"}), (f"  {title}", {"dim": True})]
    dead = snap.stats.statuses.get(Status.DEAD, 0)
    lines: list[Line] = [
        _ends(head, f"v{__version__}", columns),
        [(found, {"dim": True})],
        [],
        *_panels(snap, columns),
        *gap,
        _rule("RUNNING", columns),
        *_fill([_running(task, snap.now) for task in snap.running], 4 if roomy else 3),
        *gap,
        _rule(f"DEAD LETTERS {dead}" if dead else "DEAD LETTERS", columns),
        *_fill([_dead(task) for task in snap.dead] or [[("none", {"dim": True})]], 2 if roomy else 1),
        *gap,
        _rule("EVENTS", columns),
    ]
    tips: list[Line] = [*gap, *([(hint, {"fg": "cyan"})] for hint in hints)]
    left = max(rows - len(lines) - len(tips), 0)
    newest = snap.latest[-left:] if left else []
    lines += _fill([_event(event, snap.now) for event in reversed(newest)], left)
    return [paint(line, columns, color) for line in (lines + tips)[:rows]]


def paint(line: Line, columns: int, color: bool) -> str:
    painted, left = "", columns
    for text, style in line:
        text = output.clip(output.clean(text), left)
        left -= output.width(text)
        painted += click.style(text, **style) if color and style and text else text
    return painted


def _fill(lines: list[Line], count: int) -> list[Line]:
    """Exactly `count` lines, so that nothing below moves."""
    return lines[:count] + [[] for _ in range(count - len(lines))]


def _ends(left: Line, right: str, columns: int) -> Line:
    used = sum(output.width(text) for text, _ in left)
    return [*left, (" " * max(columns - used - len(right), 1), {}), (right, {"dim": True})]


def _rule(title: str, columns: int) -> Line:
    return [(f"{title} ", {"bold": True}), ("─" * max(columns - len(title) - 1, 0), {"dim": True})]


def _panels(snap: Snapshot, columns: int) -> list[Line]:
    """Counts on the left; beside them rates and what waits, and below those the schedule and the workers."""
    first, second = (20, 32) if columns < 96 else (26, 38)
    upper = [_padded(left, second) + right for left, right in zip(_rates(snap), _waiting(snap), strict=True)]
    more = len(snap.workers) - 2
    workers = [_worker(worker) for worker in snap.workers[:2]]
    if more > 0:
        workers[-1].append((f", and {more} more", {}))
    lower = _fill([*(_schedule(schedule, snap.now) for schedule in snap.schedules[:1]), *workers], 3)
    return [_padded(left, first) + right for left, right in zip(_counts(snap), upper + lower, strict=True)]


def _padded(line: Line, columns: int) -> Line:
    return [*line, (" " * max(columns - sum(output.width(text) for text, _ in line), 1), {})]


def _counts(snap: Snapshot) -> list[Line]:
    statuses = (Status.READY, Status.RUNNING, Status.RETRYING, Status.PENDING, Status.SUCCESS, Status.DEAD)
    lines: list[Line] = [[("TASKS", {"bold": True})]]
    for status in statuses:
        count = snap.stats.statuses.get(status, 0)
        style = {"fg": output.status_color(status)} if count else {"dim": True}
        lines.append([(f"{status:<9}", style), (f"{count:>7,}", {"bold": True} if count else {"dim": True})])
    return lines


def _rates(snap: Snapshot) -> list[Line]:
    lines: list[Line] = [[(f"A SECOND, LAST {HISTORY}", {"bold": True})]]
    top = max([*snap.submitted, *snap.done, 1])
    for name, series, fg in (
        ("in", snap.submitted, "cyan"),
        ("done", snap.done, "green"),
        ("failed", snap.failed, "yellow"),
    ):
        lines.append([(f"{name:<6}{rate(series):>5.1f} ", {}), (_sparks(series, top), {"fg": fg})])
    return lines


def _sparks(series: Sequence[int], top: int) -> str:
    return "".join(" " if not n else BLOCKS[min(n * len(BLOCKS) // (top + 1), len(BLOCKS) - 1)] for n in series)


def _waiting(snap: Snapshot) -> list[Line]:
    bands = dict.fromkeys(Band, 0)
    for (_, band), count in snap.stats.ready.items():
        bands[Band(band)] += count
    top = max(bands.values(), default=0)
    lines: list[Line] = [[("READY, BY PRIORITY", {"bold": True})]]
    for band, fg in ((Band.HIGH, "red"), (Band.NORMAL, "yellow"), (Band.LOW, "blue")):
        count = bands[band]
        bar = _bar(count, max(top, 10), 10)
        lines.append([(f"{band.name.lower():<7}", {}), (bar, {"fg": fg}), (f"{count:>5}", {})])
    return lines


def _bar(value: float, top: float, size: int) -> str:
    full = round(min(value / top, 1) * size) if top else 0
    return "█" * full + "░" * (size - full)


def _running(task: TaskInfo, now: datetime) -> Line:
    since = "" if task.started_at is None else output.duration(max((now - task.started_at).total_seconds(), 0))
    band = band_of(task.priority).name.lower()
    line: Line = [(f"{task.type:<16} ", {"fg": "yellow"}), (f"{band:<7}{since:>6}  ", {"dim": True})]
    if task.progress is not None:
        return [
            *line,
            (_bar(task.progress, 1, 20), {"fg": "green"}),
            (f" {task.progress:>4.0%} {task.progress_note}", {}),
        ]
    return [*line, (f"{task.id}  attempt {task.attempt}", {"dim": True})]


def _schedule(schedule: ScheduleInfo, now: datetime) -> Line:
    ahead = "" if schedule.next_at is None else output.age(schedule.next_at, now)
    last = f", last {schedule.last_status}" if schedule.last_status else ""
    return [(f"{schedule.id:<16} ", {"fg": "blue"}), (f"{schedule.description}, next {ahead}{last}", {})]


def _worker(worker: Worker) -> Line:
    busy = f" {worker.running}/{worker.capacity} busy, pid {worker.pid}"
    return [
        (f"{worker.id[:24]:<16} ", {"fg": "blue"}),
        (_bar(worker.running, worker.capacity, 10), {"fg": "green"}),
        (busy, {}),
    ]


def _dead(task: TaskInfo) -> Line:
    return [(f"{task.type:<16} ", {"fg": "red"}), (f"{first_line(task.last_error)}, {task.attempt} attempts", {})]


def _event(event: Event, now: datetime) -> Line:
    word, fg = SHOWN[Fact(event.kind)]
    at = event.at.astimezone()
    today = at.date() == now.astimezone().date()
    moment = f"{at:%H:%M:%S}" if today else f"{at:%d %b  }"
    about = f"{event.type or event.id:<16} "
    rest = event.id if event.type else ""
    if event.kind in FAILURES:
        rest = f"attempt {event.attempt}: {first_line(event.detail)}"
    elif event.kind == Fact.TASK_SUCCEEDED:
        rest += f"  in {output.duration(event.duration)}" + (f", attempt {event.attempt}" if event.attempt > 1 else "")
    elif not event.type:
        rest = event.detail
    return [(f"{moment} ", {"dim": True}), (f"{word:<11}", {"fg": fg}), (about, {}), (rest, {"dim": True})]
