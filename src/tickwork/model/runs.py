"""The last runs of a schedule, as a text that stores keep as a mark."""

from __future__ import annotations

import re

from msgspec import Struct

from tickwork.model.statistics import pack, unpack

RUNS_MAX = 60
SKIPPED, MISSED = "skipped", "missed"

_RUN_ID = re.compile(r"(.{1,100})@(\d{1,15})(\..+)?", re.DOTALL)


class Run(Struct, array_like=True):
    at: int  # its tick, or when ticks were left out
    outcome: str  # the status in which its task has ended, `skipped` or `missed`
    tail: str = ""  # of the task's id, behind that of the schedule
    late: int | None = None  # milliseconds from the tick to its task
    took: float | None = None  # seconds, of the last attempt
    count: int = 1  # ticks that were missed


class _Data(Struct, array_like=True):
    runs: list[Run]


def mark_of(schedule_id: str) -> str:
    return f"stats:runs:{schedule_id}"


def run_of(task_id: str) -> tuple[str, int, str] | None:
    """The schedule, the tick and the tail of the id, if it is the id of a run. Others may look like one."""
    found = _RUN_ID.fullmatch(task_id)
    return None if found is None else (found[1], int(found[2]), task_id[len(found[1]) :])


def read(text: str) -> list[Run]:
    return unpack(text, _Data).runs


def text_of(runs: list[Run]) -> str:
    return pack(_Data(runs))


def joined(runs: list[Run], more: list[Run]) -> list[Run]:
    """The last ones, in the order of their ticks. A run that is there already is replaced, so that runs may be added
    twice."""
    found = {(run.at, run.tail, run.outcome if run.outcome in (SKIPPED, MISSED) else ""): run for run in runs + more}
    return sorted(found.values(), key=lambda run: run.at)[-RUNS_MAX:]
