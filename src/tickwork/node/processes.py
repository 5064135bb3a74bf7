"""A parent of several processes that run the same application: it forks them, and replaces those that end."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator

from tickwork.errors import ConfigError
from tickwork.node.forking import HURRY, OVER, READY, STOP, Forked, Signals, Upward
from tickwork.observe.loggers import Log

STEADY = 10.0  # seconds; one that has worked for so long did not end because of how it starts
ATTEMPTS = 5  # ends in a row before that, after which the parent gives up
PAUSE_MIN, PAUSE_MAX = 0.5, 30.0  # seconds before one is started again


def check_forkable(option: str) -> None:
    """Raises if this process has what would not survive a fork."""
    if not hasattr(os, "fork"):
        raise ConfigError(f"{option} needs a system that can fork processes")
    names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if names:
        raise ConfigError(
            f"{option}: the application has started threads while it was imported ({', '.join(sorted(names))}), "
            "which would be missing in the processes that are forked; start them in a function of app.on_startup"
        )


class Place:
    """One of the processes that there are to be."""

    def __init__(self) -> None:
        self.process: Forked | None = None
        self.failures = 0  # ends in a row of processes that were not steady
        self.due = 0.0  # by the monotonic clock: when the next one is forked


class Processes:
    """`run` returns in every process: in the parent with the exit status when all have ended, and in each child with
    its link to the parent."""

    def __init__(self, count: int, log: Log) -> None:
        self._log = log
        self._places = [Place() for _ in range(count)]
        self._leaving: list[Forked] = []  # have been replaced, and finish what they run
        self._forks = 0
        self._stopping = False
        self._heeded = 0  # of the signals to stop
        self._status = 0

    def run(self) -> Upward | int:
        gc.freeze()  # or the first collection of each child would copy the memory that it shares with the parent
        signals = Signals()
        while True:
            if (child := self._fork_due(signals)) is not None:
                return child
            if self._stopping and not any(self._all()):
                return self._status
            signals.wait(self._all(), self._time_left())
            self._hear()
            self._reap()
            self._heed(signals)

    def _all(self) -> Iterator[Forked]:
        yield from (place.process for place in self._places if place.process is not None)
        yield from self._leaving

    def _time_left(self) -> float | None:
        waiting = [place.due for place in self._places if place.process is None and not self._stopping]
        return max(min(waiting) - time.monotonic(), 0.0) if waiting else None

    def _fork_due(self, signals: Signals) -> Upward | None:
        for place in self._places:
            if place.process is None and not self._stopping and place.due <= time.monotonic():
                self._forks += 1
                forked = signals.fork(self._forks, list(self._all()))
                if isinstance(forked, Upward):
                    return forked
                place.process = forked
                self._log.line(logging.INFO, "Process started", number=forked.number, pid=forked.pid)
        return None

    def _hear(self) -> None:
        for process in list(self._all()):
            for word in process.words():
                if word == READY:
                    process.ready, process.began = True, time.monotonic()
                elif word == OVER:
                    self._replace(process)

    def _replace(self, process: Forked) -> None:
        for place in self._places:
            if place.process is process:
                place.process, place.failures, place.due = None, 0, 0.0
                self._leaving.append(process)

    def _reap(self) -> None:
        for process in list(self._leaving):
            if (status := process.status()) is not None:
                self._leaving.remove(process)
                self._tell_end(process, status)
        for place in self._places:
            if place.process is not None and (status := place.process.status()) is not None:
                process, place.process = place.process, None
                self._tell_end(process, status)
                if not self._stopping:
                    self._try_again(place, process, status)

    def _tell_end(self, process: Forked, status: int) -> None:
        level = logging.INFO if status == 0 else logging.ERROR
        self._log.line(level, "Process ended", number=process.number, pid=process.pid, how=_how(status))
        if status and self._stopping:
            self._status = self._status or 1

    def _try_again(self, place: Place, process: Forked, status: int) -> None:
        steady = process.ready and (status == 0 or time.monotonic() - process.began >= STEADY)
        place.failures = 0 if steady else place.failures + 1
        if place.failures >= ATTEMPTS:
            self._log.error(
                "%d processes in a row have ended within %g s of their start, the last one by %s: this program ends",
                ATTEMPTS, STEADY, _how(status),
            )  # fmt: skip
            self._status = status if status > 0 else 1
            self._stop()
            return
        pause = min(PAUSE_MIN * 2 ** (place.failures - 1), PAUSE_MAX) if place.failures else 0.0
        place.due = time.monotonic() + pause

    def _heed(self, signals: Signals) -> None:
        """The first signal lets all finish what they run, the second gives it back, the third kills."""
        while self._heeded < signals.stops:
            self._heeded += 1
            if self._heeded == 1:
                self._stop()
            for process in self._all():
                if self._heeded == 2:
                    process.order(HURRY)
                elif self._heeded > 2:
                    os.kill(process.pid, signal.SIGKILL)

    def _stop(self) -> None:
        self._stopping = True
        for process in self._all():
            process.order(STOP)


def _how(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    names = {known.value: known.name for known in signal.Signals}
    return names.get(-status, f"signal {-status}")
