"""Who this process is, and whether another process of the same host is still there."""

from __future__ import annotations

import functools
import getpass
import os
import platform
import socket
import subprocess

DEAD = (b"Z", b"X")

is_pool_child = False  # it was started to run handlers with run_in="process"


def user_at_host() -> str:
    """Whose process this is, for people."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that has no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


@functools.cache
def host_id() -> str:
    """Names the set of processes whose pids mean something to us: host, boot (or machine) and pid namespace."""
    return "/".join(part for part in (socket.gethostname(), machine(), _pid_namespace()) if part)


@functools.cache
def machine() -> str:
    """What tells this machine from another of the same name: its boot, or where that cannot be read its installation.

    Empty where neither is known. Machines that were copied while they ran have one boot: give them names of their own.
    """
    boot = _first_line("/proc/sys/kernel/random/boot_id")
    if not boot and platform.system() == "Darwin":
        command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        boot = shown.stdout.strip()
    return boot or _first_line("/etc/machine-id") or _first_line("/var/lib/dbus/machine-id")


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:  # not Linux
        return ""


def _first_line(path: str) -> str:
    try:
        with open(path) as file:
            return file.readline().strip()
    except OSError:
        return ""


def process_started(pid: int) -> str:
    """A text that tells a process from a later one with the same pid; empty when it is gone or cannot be known."""
    system = platform.system()
    if system == "Linux":
        fields = _stat(pid)
        return "" if not fields or fields[0] in DEAD else fields[19].decode()
    if system == "Darwin":
        command = ["/bin/ps", "-p", str(pid), "-o", "lstart="]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        return shown.stdout.strip()
    return ""


def lives(host: str, pid: int, started: str) -> bool:
    """True only when it can be seen: that very process of this host is there."""
    return bool(started) and host == host_id() and process_started(pid) == started


def is_gone(host: str, pid: int, started: str) -> bool:
    """True only when it can be proved: a process of this very host that is not there any more."""
    if not started or host != host_id() or not machine() or pid == os.getpid():
        return False
    now_there = process_started(pid)
    if now_there:
        return now_there != started
    # Nothing could be read: too many open files, or hidden. The kernel knows whether there is such a process at all.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    fields = _stat(pid)
    return bool(fields) and fields[0] in DEAD


def _stat(pid: int) -> list[bytes]:
    """What Linux says of a process, from its state on; nothing when it cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()  # the name in parentheses may hold anything
    except OSError:
        return []
