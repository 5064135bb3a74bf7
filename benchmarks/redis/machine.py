"""What a tree of processes has used, read from outside (Linux): the same for every peer, whatever it is written in."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

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
