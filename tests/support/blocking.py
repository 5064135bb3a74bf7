"""For tests of code that blocks: whether it needed the background thread, and waiting without an event loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tickwork.client.sync import Sync
from tickwork.store.redis.net import sockets

PATIENCE = 60.0


class Hops:
    """How often the background thread was asked for something."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        background = Sync._background

        def counted(sync: Sync) -> Any:
            self.count += 1
            return background(sync)

        patch.setattr(Sync, "_background", counted)

    def of(self, work: Callable[[], object]) -> int:
        before = self.count
        work()
        return self.count - before


def be_patient(patch: pytest.MonkeyPatch) -> None:
    """No connection is given up because the machine is slow."""
    patch.setattr(sockets.SocketPool, "answer_time", PATIENCE)
    patch.setattr(sockets, "CONFIRMED", PATIENCE)


def wait_until(condition: Callable[[], object], what: str) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up_at, f"not in {PATIENCE:g} s: {what}"
        time.sleep(0.005)
