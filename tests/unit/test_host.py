"""What one process can know of another one of its host."""

from __future__ import annotations

import os

import pytest

from tickwork import host


def test_a_process_that_cannot_be_read_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = os.getppid()
    started = host.process_started(parent)
    monkeypatch.setattr(host, "process_started", lambda pid: "")
    monkeypatch.setattr(host, "_is_zombie", lambda pid: False)
    assert not host.is_gone(host.host_id(), parent, started)
    assert not host.is_gone(host.host_id(), os.getpid(), started)
