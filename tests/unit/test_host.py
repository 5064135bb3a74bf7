"""What one process can know of another one of its host."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator

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
