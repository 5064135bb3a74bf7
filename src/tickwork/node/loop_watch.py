"""Notices from another thread when the event loop of the handlers is blocked, and warns which handler blocks it."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Protocol

from tickwork.model.tasks import Lease
from tickwork.observe.loggers import Log
from tickwork.observe.tracebacks import is_own
from tickwork.worker.run import Run

PATIENCE = 1.0  # seconds for the loop to answer
LATE = 0.5  # if this thread itself was delayed by more than this, it cannot judge the loop
SELDOM = 60.0  # seconds between two warnings about a loop that no handler blocks

_STDLIB = os.path.dirname(os.__file__) + os.sep
_LIBRARIES = f"{os.sep}site-packages{os.sep}"


class Runs(Protocol):
    running: dict[str, Run]


class LoopWatch:
    """Create it on the event loop that is watched, and run it on another."""

    def __init__(self, workers: Sequence[Runs], log: Log) -> None:
        self._home = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._workers = workers
        self._log = log
        self._answered = True
        self._waiting_since: float | None = None
        self._worst_lag = 0.0
        self._warned: set[Lease] = set()
        self._warned_at = -SELDOM

    async def run(self) -> None:
        while True:
            if not any(worker.running for worker in self._workers):
                await asyncio.sleep(PATIENCE)
                continue
            try:
                asked_at = self.ask()
            except RuntimeError:  # it is closed
                return
            await asyncio.sleep(PATIENCE)
            if not self._answered and time.monotonic() - asked_at < PATIENCE + LATE:
                self._warn()

    def ask(self) -> float:
        """Ask the loop for an answer; returns when that was."""
        self._answered, asked_at = False, time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = asked_at
        self._home.call_soon_threadsafe(self._answer, asked_at)
        return asked_at

    def _answer(self, asked_at: float) -> None:
        self._answered, self._waiting_since = True, None
        self._worst_lag = max(self._worst_lag, time.monotonic() - asked_at)

    def take_lag(self) -> float:
        """The longest that the loop took to answer since this was last asked, in seconds. A loop that runs no handler
        is not watched."""
        since = self._waiting_since
        waiting = 0.0 if since is None else time.monotonic() - since
        worst, self._worst_lag = self._worst_lag, 0.0
        return max(worst, waiting)

    def _warn(self) -> None:
        """Warn once for each run that blocks the loop."""
        runs = [run for worker in self._workers for run in list(worker.running.values())]
        self._warned &= {run.grant.lease for run in runs}
        current = asyncio.current_task(self._home)
        place = _place(sys._current_frames().get(self._thread))
        for run in runs:
            if run.task is current and run.grant.lease not in self._warned:
                self._warned.add(run.grant.lease)
                self._log.warning(
                    "task %s (%s) keeps the event loop busy for more than %g s%s; all others wait for it. Let it "
                    'await, or run it with run_in="thread" or "process"',
                    run.grant.spec.id, run.grant.spec.type, PATIENCE, place,
                )  # fmt: skip
        if all(run.task is not current for run in runs) and time.monotonic() - self._warned_at >= SELDOM:
            self._warned_at = time.monotonic()
            self._log.warning("the event loop has not answered for more than %g s%s", PATIENCE, place)


def _place(frame: FrameType | None) -> str:
    """The innermost line of the user's own code, else the innermost of all."""
    found = frame
    while found is not None and _is_foreign(found.f_code.co_filename):
        found = found.f_back
    found = found or frame
    return "" if found is None else f", in {found.f_code.co_filename}:{found.f_lineno}, {found.f_code.co_name}()"


def _is_foreign(filename: str) -> bool:
    return is_own(filename) or filename.startswith(_STDLIB) or _LIBRARIES in filename
