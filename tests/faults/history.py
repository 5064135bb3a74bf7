"""A history of what processes saw, written so that it survives their death, and the judge that reads it.

Lines (`what`): `up`, a node works; `ack`, a submit was answered; `start` and `end` of a handler; `verdict`, what the
store said to an outcome, and `note`, to progress and log lines; `kill`, `stop`, `cont`, a signal to process `victim`,
which came between `at` and `till`.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tickwork.model.tasks import Record, Status

Line = dict[str, Any]


class History:
    """JSON lines in one file; each is one `write` to a file opened for appending, so a killed process tears none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._seen: list[Line] = []
        self._offset = 0

    def write(self, what: str, **facts: Any) -> None:
        line = json.dumps({"what": what, "pid": os.getpid(), "at": time.time(), **facts})
        os.write(self._file, line.encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)

    def lines(self) -> list[Line]:
        """All lines so far; only what is new is read."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._offset += len(whole)
        self._seen += [json.loads(line) for line in whole.splitlines()]
        return self._seen

    @staticmethod
    def read(path: Path) -> list[Line]:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@dataclass
class Judgement:
    acked: int = 0
    starts: int = 0
    reruns: int = 0
    refused: int = 0
    recoveries: list[float] = field(default_factory=list)  # seconds from a fault to the next start of what it hit
    lost: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    ended_twice: list[str] = field(default_factory=list)
    unexplained_reruns: list[str] = field(default_factory=list)
    late_reruns: list[str] = field(default_factory=list)
    stale_ends: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        kinds = ("lost", "unfinished", "ended_twice", "unexplained_reruns", "late_reruns", "stale_ends")
        return [f"{kind}: {problem}" for kind in kinds for problem in getattr(self, kind)]

    @property
    def clean(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        slowest = f", at most {max(self.recoveries):.2f} s after the fault" if self.recoveries else ""
        figures = f"{self.acked} acknowledged, {self.starts} starts, {self.reruns} reruns{slowest}, "
        return figures + f"{self.refused} late outcomes refused" + "".join(f"\n  {each}" for each in self.problems[:20])


def judge(
    history: Iterable[Line], records: dict[str, Record], ends: Counter[str], recovery: float | None = None
) -> Judgement:
    """Nothing that was acknowledged is lost, nothing ends twice or by a run that was not the last, and a task starts
    again only after a lost worker.

    With `recovery` the history tells of every fault: a rerun must follow one that hit the process of the run before, by
    no more than so many seconds.
    """
    found = Judgement()
    starts: defaultdict[str, list[Line]] = defaultdict(list)
    faults: defaultdict[int, list[Line]] = defaultdict(list)
    verdicts: list[Line] = []
    for line in sorted(history, key=lambda line: float(line.get("at", 0))):
        what = line["what"]
        if what == "ack":
            _check_acked(found, line["id"], records)
        elif what == "start":
            starts[line["id"]].append(line)
        elif what == "verdict":
            verdicts.append(line)
        elif what in ("kill", "stop"):
            faults[line["victim"]].append(line)
    for task_id, runs in starts.items():
        found.starts += len(runs)
        _check_reruns(found, task_id, runs, records.get(task_id))
        if recovery is not None:
            _check_recovery(found, runs, faults, recovery)
    _check_ends(found, verdicts, starts, records)
    found.ended_twice = [f"{task_id}: {count} ends" for task_id, count in ends.items() if count > 1]
    return found


def _check_acked(found: Judgement, task_id: str, records: dict[str, Record]) -> None:
    found.acked += 1
    record = records.get(task_id)
    if record is None:
        found.lost.append(task_id)
    elif record.status is not Status.SUCCESS:
        found.unfinished.append(f"{task_id} is {record.status}: {record.last_error}")


def _check_reruns(found: Judgement, task_id: str, runs: list[Line], record: Record | None) -> None:
    losses = 0 if record is None else record.losses
    found.reruns += len(runs) - 1
    if len(runs) > 1 + losses:
        found.unexplained_reruns.append(f"{task_id}: {len(runs)} starts, {losses} lost workers")


def _check_recovery(found: Judgement, runs: list[Line], faults: dict[int, list[Line]], bound: float) -> None:
    for before, after in itertools.pairwise(runs):
        pid, since, until = before["pid"], before["at"], after["at"]
        told = faults.get(pid, [])
        hits = [each["at"] for each in told if each["at"] <= until and since <= each.get("till", each["at"])]
        if not hits:
            when = f"between {since:.3f} and {until:.3f}"
            found.unexplained_reruns.append(f"{after['id']}: nothing had happened to process {pid} {when}")
            continue
        took = until - max(since, hits[0])
        found.recoveries.append(took)
        if took > bound:
            found.late_reruns.append(f"{after['id']}: {took:.2f} s after the fault, not {bound:g}")


def _check_ends(
    found: Judgement, verdicts: list[Line], starts: dict[str, list[Line]], records: dict[str, Record]
) -> None:
    """Only the newest fence may end a task. Where fences were not written down there is nothing to compare."""
    newest = {task_id: max(run.get("fence", 0) for run in runs) for task_id, runs in starts.items()}
    for line in verdicts:
        found.refused += line["kind"] == "lost"
        if line["kind"] == "done" and line["fence"] < newest.get(line["id"], 0):
            found.stale_ends.append(f"{line['id']}: fence {line['fence']} was accepted after {newest[line['id']]}")
    for task_id, fence in newest.items():
        record = records.get(task_id)
        if fence and record is not None and record.status is Status.SUCCESS and record.fence != fence:
            found.stale_ends.append(f"{task_id}: ended under fence {record.fence}, last started under {fence}")
