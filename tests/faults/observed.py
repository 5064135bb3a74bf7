"""What was seen of a random history: by its processes, in the log of the store, and in the store at its end.

Lines (`what`) beside those of `history`: `submit`, a task is asked for; `ack`, `answered`, `refused`, `unknown`, how a
request ended; `lock` and `unlock`, a process was sure from then till then that it held a lock; `fault`, from `at` to
`till` process `victim` (none: every process) was stopped or cut off from the store; `gone`, process `victim` has ended,
and before it `deserted` if nobody had told it to, or `hung` if it was told to and did not.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tests.faults.history import Line
from tests.support.scrapes import Scrape
from tickwork.model.facts import Event
from tickwork.model.reports import Report
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Record

Finding = Iterator[tuple[str, str]]  # of a rule: the id of the task, or the name of what else is concerned, and why
ALWAYS = float("inf")
SLACK = 1.5  # seconds in which a fault and its consequences may be apart, beside a lease


class Window(NamedTuple):
    at: float
    till: float


class Run(NamedTuple):
    """A handler's call, or the time in which a process held a lock."""

    id: str
    pid: int
    fence: int
    at: float
    till: float


@dataclass
class Observed:
    lines: list[Line]
    events: list[Event]
    records: dict[str, Record]
    followed: dict[str, tuple[int, list[int], list[str]]] = field(default_factory=dict)
    audit: list[str] = field(default_factory=list)
    schedules: dict[str, Schedule] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)  # by what they are made
    pages: dict[str, Scrape] = field(default_factory=dict)  # the metrics of each node that lives
    lease: float = 2.0
    partitions: int = 1
    forgets: bool = False

    def of(self, *what: str) -> list[Line]:
        return [line for line in self._sorted if line["what"] in what]

    @cached_property
    def _sorted(self) -> list[Line]:
        return sorted(self.lines, key=lambda line: float(line["at"]))

    @cached_property
    def facts(self) -> dict[str, list[Event]]:
        """The facts of each task, in order."""
        found: defaultdict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            if event.kind.startswith("task."):
                found[event.id].append(event)
        return dict(found)

    @cached_property
    def asked(self) -> dict[str, Line]:
        """What was asked for each task that somebody submitted."""
        return {line["id"]: line for line in self.of("submit")}

    @cached_property
    def gone(self) -> dict[int, float]:
        return {line["victim"]: line["at"] for line in self.of("gone")}

    @cached_property
    def runs(self) -> dict[str, list[Run]]:
        """The runs of each task by their start. One without an end ended with its process."""
        ends = {(line["id"], line["fence"], line["pid"]): line["at"] for line in self.of("end")}
        return self._spans("start", "id", ends)

    @cached_property
    def holds(self) -> dict[str, list[Run]]:
        """Who held each lock, by the moment from which he was sure."""
        ends = {(line["id"], line["fence"], line["pid"]): line["at"] for line in self.of("unlock")}
        return self._spans("lock", "name", ends)

    def _spans(self, what: str, key: str, ends: dict[tuple[str, int, int], float]) -> dict[str, list[Run]]:
        found: defaultdict[str, list[Run]] = defaultdict(list)
        for line in self.of(what):
            pid, fence = line["pid"], line["fence"]
            till = ends.get((line["id"], fence, pid), self.gone.get(pid, ALWAYS))
            found[line[key]].append(Run(line["id"], pid, fence, line["at"], till))
        return dict(found)

    # --- faults

    def trouble(self, pid: int | None, *kinds: str) -> list[Window]:
        """The times in which this process (none: any) was hit by such faults (none: by any), joined where nothing could
        recover between two of them."""
        hits = sorted(
            Window(line["at"], line["till"])
            for line in self.of("fault")
            if pid is None or line["victim"] in (None, pid)
            if not kinds or line["kind"] in kinds
        )
        joined: list[Window] = []
        for hit in hits:
            if joined and hit.at <= joined[-1].till + SLACK:
                joined[-1] = Window(joined[-1].at, max(joined[-1].till, hit.till))
            else:
                joined.append(hit)
        return joined

    def was_troubled(self, pid: int, since: float, until: float, longer_than: float, *kinds: str) -> bool:
        """Whether the process was stopped or cut off for longer than that, in a time or shortly before it."""
        return any(
            window.at <= until and window.till + self.lease + SLACK >= since and window.till - window.at >= longer_than
            for window in self.trouble(pid, *kinds)
        )

    # --- words

    def story(self, subject: str) -> str:
        """All that is known of a task, a lock, a schedule or a queue, by time, with the faults in between."""
        told = [(event.at / 1000, f"log {event.seq} {event.kind} {event.worker_id} {event.detail[:80]}")
                for event in self.events if event.id == subject]  # fmt: skip
        own = [line for line in self._sorted if subject in (line.get("id"), line.get("name"))]
        told += [(line["at"], _words(line)) for line in own]
        pids = {line["pid"] for line in own}
        if told:
            first, last = min(at for at, _ in told) - self.lease, max(at for at, _ in told)
            beside = [line for line in self.of("fault", "gone", "deserted", "up")
                      if line.get("victim", line["pid"]) in (None, *pids)]  # fmt: skip
            told += [(line["at"], _words(line)) for line in beside
                     if first <= float(line.get("till") or line["at"]) and line["at"] <= last]  # fmt: skip
        lines = [f"  {_clock(at)} {words}" for at, words in sorted(told)]
        if subject in self.facts or subject in self.asked:
            record = self.records.get(subject)
            lines.append(f"  at the end: {'no record' if record is None else f'{record.status}, fence {record.fence}'}")
        return "\n".join(lines)

    def __str__(self) -> str:
        runs = [list(found) for found in self.runs.values()]
        overlaps = sum(after.at < before.till for found in runs for before, after in itertools.pairwise(found))
        faults = Counter(line["kind"] for line in self.of("fault") if line["kind"] not in ("stalled", "slow"))
        figures = {
            "tasks": len(self.facts),
            "runs": sum(map(len, runs)),
            "overlaps": overlaps,
            "ends": sum(event.kind in ("task.succeeded", "task.died", "task.cancelled") for event in self.events),
            "ticks": sum(event.kind == "schedule.fired" for event in self.events),
            "locks": sum(map(len, self.holds.values())),
            "facts": len(self.events),
            "workers gone": len(self.gone),
            "runs in metrics": round(sum(page.sum("scheduler_worker_task_total") for page in self.pages.values())),
        }
        return ", ".join(f"{count} {what}" for what, count in (*figures.items(), *sorted(faults.items())))


def _words(line: Line) -> str:
    rest = {name: value for name, value in line.items() if name not in ("what", "at", "pid", "id", "till")}
    lasted = f" for {line['till'] - line['at']:.2f} s" if "till" in line else ""
    return f"{line['what']} by {line['pid']} {' '.join(f'{name}={value}' for name, value in rest.items())}{lasted}"


def _clock(at: float) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{round(at * 1000) % 1000:03d}"
