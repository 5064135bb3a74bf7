"""What one process can know of another one of its host."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tickwork import host


def test_a_process_that_cannot_be_read_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = os.getppid()
    started = host.process_started(parent)
    monkeypatch.setattr(host, "process_started", lambda pid: "")
    monkeypatch.setattr(host, "_is_zombie", lambda pid: False)
    assert not host.is_gone(host.host_id(), parent, started)
    assert not host.is_gone(host.host_id(), os.getpid(), started)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A machine that has just these files."""
    files: dict[str, str] = {}
    monkeypatch.setattr(host, "_first_line", lambda path: files.get(path, ""))
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    for cached in (host.host_id, host.machine):
        cached.cache_clear()
    yield files
    for cached in (host.host_id, host.machine):
        cached.cache_clear()


def test_machines_of_one_name_are_told_apart_by_their_boot(elsewhere: dict[str, str]) -> None:
    elsewhere.update({"/proc/sys/kernel/random/boot_id": "boot-1", "/etc/machine-id": "copied"})
    assert host.host_id().startswith("localhost/boot-1")


@pytest.mark.parametrize("path", ["/etc/machine-id", "/var/lib/dbus/machine-id"])
def test_where_the_boot_cannot_be_read_the_installation_tells_them_apart(elsewhere: dict[str, str], path: str) -> None:
    elsewhere[path] = "machine-1"
    assert host.host_id().startswith("localhost/machine-1")


def test_a_name_alone_proves_nothing(elsewhere: dict[str, str]) -> None:
    """Another machine may be called localhost too, and its processes live."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert host.is_gone(host.host_id(), ended.pid, "1") is False
    elsewhere["/etc/machine-id"] = "machine-1"
    for cached in (host.host_id, host.machine):
        cached.cache_clear()
    assert host.is_gone(host.host_id(), ended.pid, "1") is True


@pytest.mark.skipif(not os.path.exists("/bin/ps"), reason="no ps here")
def test_without_proc_a_process_is_known_by_what_ps_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = host.process_started(child.pid)
        assert re.search(r"\d\d:\d\d:\d\d", started)
        assert host.lives(host.host_id(), child.pid, started)
        assert not host.is_gone(host.host_id(), child.pid, started)
    assert host.process_started(child.pid) == ""
    assert host.is_gone(host.host_id(), child.pid, started)


def test_where_nothing_is_known_of_processes_none_is_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    assert host.process_started(os.getppid()) == ""
    assert not host.lives(host.host_id(), os.getppid(), "")
    assert not host.is_gone(host.host_id(), os.getppid(), "")


def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert host._first_line(str(tmp_path / "none")) == ""
