"""A history of what processes saw, written so that it survives their death, and the judge that reads it."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tickwork.model import Record, Status


class History:
    """JSON lines in one file; each is one `write` to a file opened for appending, so a killed process tears none."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, what: str, **facts: Any) -> None:
        line = json.dumps({"what": what, "pid": os.getpid(), "at": time.time(), **facts})
        os.write(self._file, line.encode() + b"\n")

    @staticmethod
    def read(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@dataclass
class Judgement:
    acked: int = 0
    starts: int = 0
    reruns: int = 0
    lost: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    ended_twice: list[str] = field(default_factory=list)
    unexplained_reruns: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.lost or self.unfinished or self.ended_twice or self.unexplained_reruns)


def judge(history: Iterable[dict[str, Any]], records: dict[str, Record], ends: Counter[str]) -> Judgement:
    """Nothing that was acknowledged is lost, nothing ends twice, and a task starts again only after a lost worker."""
    found = Judgement()
    starts: Counter[str] = Counter()
    for line in history:
        if line["what"] == "ack":
            found.acked += 1
            record = records.get(line["id"])
            if record is None:
                found.lost.append(line["id"])
            elif record.status is not Status.SUCCESS:
                found.unfinished.append(f"{record.id} is {record.status}")
        elif line["what"] == "start":
            starts[line["id"]] += 1
    found.starts = starts.total()
    for task_id, count in starts.items():
        losses = records[task_id].losses if task_id in records else 0
        found.reruns += count - 1
        if count > 1 + losses:
            found.unexplained_reruns.append(f"{task_id}: {count} starts, {losses} lost workers")
    found.ended_twice = [f"{task_id}: {count} ends" for task_id, count in ends.items() if count > 1]
    return found
