"""Which machine this is, and what a tree of processes has used, read from outside (Linux): the same for every peer,
whatever it is written in."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.support.redis import KINDS, binary

from benchmarks.environments import ROOT

TICKS = os.sysconf("SC_CLK_TCK")


class Stat:
    """The fields of /proc/PID/stat that are needed, read once."""

    def __init__(self, pid: int) -> None:
        text = Path(f"/proc/{pid}/stat").read_text()
        fields = text[text.rindex(")") + 2 :].split()  # the name before it may hold blanks and brackets
        self.parent = int(fields[1])
        self.cpu = (int(fields[11]) + int(fields[12])) / TICKS
        self.ended_children_cpu = (int(fields[13]) + int(fields[14])) / TICKS


def tree(root: int) -> list[int]:
    """The process and all its descendants."""
    parents = dict(_parents())
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), Stat(int(entry.name)).parent
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a process, to the nanosecond; its ticks where that clock cannot be read."""
    try:
        return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3)
    except OSError:
        return Stat(pid).cpu


def tree_cpu(root: int) -> float:
    """CPU seconds of a process, its descendants, and those of them that ended and were waited for."""
    total = 0.0
    for pid in tree(root):
        try:
            total += cpu_seconds(pid) + Stat(pid).ended_children_cpu
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def tree_rss(root: int) -> int:
    """Resident bytes of a process and its descendants, shared pages counted in each."""
    total = 0
    for pid in tree(root):
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def server_binary() -> Path | None:
    """The Redis server that the benchmarks start, or None where there is none."""
    return next((found for kind in KINDS if (found := binary(kind)) is not None), None)


def facts(load: str = "") -> dict[str, str]:
    """What a report says of where it was made; `load` is that before it began."""
    server = server_binary()
    redis = re.search(r"v=(\S+)", _said(str(server), "--version")) if server else None
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "sqlite": sqlite3.sqlite_version,
        "redis": f"{redis.group(1) if redis else 'unknown'}, loopback, no persistence",
        # Which Tickwork this is; with a plus where files were changed since.
        "commit": _said("git", "describe", "--always", "--dirty=+", "--exclude=*"),
        "load before": load,
    }


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
