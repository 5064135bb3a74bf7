"""The screens of the demo and of `tickwork top`, drawn from a snapshot."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click
import pytest
from msgspec.structs import replace

from tickwork import Event, Fact, QueueInfo, ScheduleInfo, Status, TaskInfo, WorkerInfo
from tickwork.cli import demo_screen, top_screen
from tickwork.cli.output import width
from tickwork.cli.screen import dead_line, rate
from tickwork.client.watching import HISTORY, Snapshot
from tickwork.clock import to_datetime
from tickwork.model.schedules import Misfire, Overlap
from tickwork.model.tasks import Band
from tickwork.store.contract import Stats

THEN = to_datetime(1_800_000_000_000)
HOSTILE = "\x1b[2J\x1b]0;title\x07\r\n\x00日本語" + "x" * 10_000
SIZES = [(79, 23), (99, 34), (40, 10), (200, 60), (30, 3), (1, 1)]


def event(number: int, kind: Fact | str, **facts: Any) -> Event:
    return Event(seq=number, at=THEN, kind=kind, **facts)


def task(**changes: Any) -> TaskInfo:
    basis: dict[str, Any] = {
        "id": "task-1", "type": "send", "queue": "default", "priority": 5, "payload": None, "status": Status.RUNNING,
        "attempt": 1, "retry_count": 0, "max_retry": 3, "losses": 0, "worker_id": "w0", "schedule_id": None,
        "submitted_at": THEN, "scheduled_at": THEN, "started_at": THEN - timedelta(seconds=5), "finished_at": None,
        "last_error": None, "execution_time": None, "result": None, "tags": {}, "context": {},
    }  # fmt: skip
    return TaskInfo(**{**basis, **changes})


def worker(**changes: Any) -> WorkerInfo:
    basis: dict[str, Any] = {
        "id": "w0", "status": "idle", "node": "n", "host": "h", "pid": 7, "address": "", "queues": ("default",),
        "task_types": ("send",), "labels": {}, "weight": 1, "capacity": 10, "running": 0, "leaked": 0,
        "started_at": THEN - timedelta(hours=1), "beat_at": THEN, "expires_at": THEN,
    }  # fmt: skip
    return WorkerInfo(**{**basis, **changes})


def schedule(**changes: Any) -> ScheduleInfo:
    basis: dict[str, Any] = {
        "id": "sales_report", "name": "sales_report", "type": "send", "cron": "@daily", "timezone": "UTC",
        "description": "every 5 seconds", "enabled": True, "overlap": Overlap.SKIP, "misfire": Misfire.LATEST,
        "on_exhausted": "continue", "executor": "local", "next_at": THEN + timedelta(seconds=5), "last_fire_at": None,
        "last_task_id": None, "last_status": "", "stopped": "", "created_at": THEN, "updated_at": THEN,
    }  # fmt: skip
    return ScheduleInfo(**{**basis, **changes})


def stats(**counts: int) -> Stats:
    numbers = {**dict.fromkeys(Status, 0), **{Status(name): count for name, count in counts.items()}}
    return Stats(statuses=numbers, ready={("default", Band.HIGH): 5}, parked={}, workers=4, dropped=0)


def snapshot(**changes: Any) -> Snapshot:
    series = [float(n) for n in range(HISTORY)]
    basis = Snapshot(
        now=THEN,
        leader="n0",
        stats=stats(ready=5, success=12_345, dead=2),
        queues=[QueueInfo(name="default", high=5, workers=4)],
        workers=[worker(id=f"w{n}") for n in range(4)],
        running=[],
        all_running=True,
        schedules=[schedule()],
        dead=[],
        latest=[event(n, Fact.TASK_SUCCEEDED, id=f"task-{n}", type="send", duration=0.2) for n in range(40)],
        submitted=series,
        done=series,
        failed=[0.0] * HISTORY,
    )
    return replace(basis, **changes)


def hostile() -> Snapshot:
    return snapshot(
        leader=HOSTILE,
        queues=[QueueInfo(name=HOSTILE, paused=True, note=HOSTILE, parked={HOSTILE: 3})] * 50,
        workers=[worker(id=HOSTILE, queues=(HOSTILE,), address=HOSTILE, pid=0)] * 50,
        running=[task(id=HOSTILE, type=HOSTILE), task(type=HOSTILE, progress=0.5, progress_note=HOSTILE)] * 20,
        schedules=[schedule(id=HOSTILE, description=HOSTILE, last_status=HOSTILE)] * 50,
        dead=[task(type=HOSTILE, last_error=HOSTILE)] * 5,
        latest=[
            event(1, Fact.TASK_DIED, id=HOSTILE, type=HOSTILE, detail=HOSTILE),
            event(2, Fact.WORKER_LOST, id=HOSTILE, detail=HOSTILE),
        ]
        * 20,
    )


def check_fits(lines: list[str], columns: int, rows: int) -> None:
    plain = [click.unstyle(line) for line in lines]
    assert len(plain) == rows
    assert max(width(line) for line in plain) <= columns
    assert all(line.isprintable() for line in plain)


@pytest.mark.parametrize(("columns", "rows"), SIZES)
@pytest.mark.parametrize("snap", [snapshot(), hostile()], ids=["plain", "hostile"])
def test_the_demo_fits_its_terminal(snap: Snapshot, columns: int, rows: int) -> None:
    check_fits(demo_screen.draw(snap, "title", "found", ["hint"], columns, rows, color=True), columns, rows)


@pytest.mark.parametrize(("columns", "rows"), SIZES)
@pytest.mark.parametrize("snap", [snapshot(), hostile()], ids=["plain", "hostile"])
def test_top_fits_its_terminal(snap: Snapshot, columns: int, rows: int) -> None:
    check_fits(top_screen.draw(snap, HOSTILE, HOSTILE, columns, rows, color=True), columns, rows)


def test_the_demo_shows_what_matters_on_a_small_terminal() -> None:
    text = "\n".join(demo_screen.draw(snapshot(), "title", "found", ["a hint"], 79, 23, color=False))
    for wanted in (
        "12,345", "high", "sales_report", "w0", "and 2 more", "DEAD LETTERS 2", "task-39", "a hint", "found",
    ):  # fmt: skip
        assert wanted in text
    assert "\x1b" not in text


def top(snap: Snapshot, columns: int = 79, rows: int = 23) -> list[str]:
    return top_screen.draw(snap, "sqlite:///shop.db", "q quits", columns, rows, color=False)


def row(lines: list[str], start: str) -> str:
    (found,) = [line for line in lines if line.startswith(start)]
    return found


def test_top_shows_every_section_on_a_small_terminal() -> None:
    busy = QueueInfo(name="default", high=5, workers=4, waiting_since=THEN - timedelta(seconds=90))
    queues = [busy, QueueInfo(name="mails", paused=True, note="until noon")]
    running = [task(), task(queue="mails", progress=0.5, progress_note="half")]
    dead = [task(type="pay", last_error="ValueError: no money\n  at line 3", attempt=4)]
    assert dead_line(task(last_error="no", attempt=1))[1][0] == "no, 1 attempt"
    lines = top(snapshot(queues=queues, running=running, dead=dead, stats=stats(ready=5, running=2, dead=1)))
    assert "4 workers, 0 of 40 slots busy; n0 leads" in "\n".join(lines)
    assert "PAUSED: mails" in "\n".join(lines)
    assert " ".join(row(lines, "mails").split()) == "mails 0 ready 1 running PAUSED until noon"
    assert row(lines, "default").split() == ["default", "5", "ready", "1m30s", "1", "running", "4", "workers"]
    assert "WORKERS 2 of 4" in row(lines, "WORKERS")
    assert row(lines, "w0").split()[2:] == ["0/10", "pid", "7", "default", "up", "1h"]
    assert "in 5s" in row(lines, "sales_report")
    assert "ValueError: no money, 4 attempts" in row(lines, "pay")
    assert [line for line in lines if "task-39" in line], "the newest event"
    assert lines[-1] == "q quits"


def test_top_says_that_no_worker_is_up() -> None:
    lines = top(snapshot(workers=[]))
    assert "no worker is up; start one" in "\n".join(lines)


def test_top_counts_what_it_does_not_show() -> None:
    queues = [QueueInfo(name=f"q{n:02}", normal=1, waiting_since=THEN - timedelta(seconds=n)) for n in range(60)]
    lines = top(snapshot(queues=queues))
    assert row(lines, "QUEUES").startswith("QUEUES 3 of 60 ")
    assert row(lines, "q59"), "those that wait longest come first"


def test_top_does_not_count_the_running_tasks_of_a_queue_that_it_has_not_all_seen() -> None:
    lines = top(snapshot(running=[task()] * 100, all_running=False, stats=stats(running=3_000)))
    assert row(lines, "default").split()[3:5] == ["100+", "running"]
    assert "of 3,000" in row(lines, "RUNNING")


def test_rates_are_of_the_last_seconds() -> None:
    assert rate([100, 0, 0, 0, 5, 5]) == 2
