"""What a worker that stops still runs, in the log: at once, and again while it waits."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from tickwork.observe.loggers import Log
from tickwork.worker.run import Run

INTERVAL = 5.0  # seconds between two times
NAMED_MAX = 20  # runs that are told one by one, the longest first


class LastRuns:
    def __init__(self, worker_id: str, log: Log) -> None:
        self._worker_id = worker_id
        self._log = log
        self._told_at = 0.0

    def tell(self, runs: Collection[Run], until: float) -> None:
        """`until` is when the worker gives them back, by the monotonic clock."""
        now = time.monotonic()
        if not runs or now < self._told_at + INTERVAL:
            return
        self._told_at = now
        self._log.line(
            logging.INFO, "Waiting for running tasks", running=len(runs), worker=self._worker_id,
            time_left=round(until - now, 3),
        )  # fmt: skip
        for run in sorted(runs, key=lambda run: run.started)[:NAMED_MAX]:
            spec = run.grant.spec
            self._log.line(
                logging.INFO, "Task still running", task=spec.type, id=spec.id, attempt=run.grant.attempt,
                running_for=round(now - run.started, 3),
            )  # fmt: skip

    def give_back(self, runs: Collection[Run]) -> None:
        if runs:
            self._log.line(logging.INFO, "Giving back what runs", running=len(runs), worker=self._worker_id)
