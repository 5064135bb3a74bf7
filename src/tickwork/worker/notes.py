"""Progress and log lines of running handlers, gathered and written a few times a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tickwork.errors import StoreError, StoreFull, StoreUnavailable
from tickwork.model.outcomes import Outcome
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store
from tickwork.worker.run import Run

INTERVAL = 0.25


class Notes:
    def __init__(self, store: Store, on_lost: Callable[[Run], None], log: Log) -> None:
        self._store = store
        self._on_lost = on_lost
        self._log = log
        self._noted: set[Run] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def later(self, run: Run) -> None:
        """Write the notes of a run soon. Called by handlers, from any thread."""
        if run not in self._noted and not run.ended:
            self._noted.add(run)
            self._loop.call_soon_threadsafe(self._arm)

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(INTERVAL, self._send)

    def _send(self) -> None:
        self._timer = None
        self._task = self._loop.create_task(self._flush(list(self._noted)))

    async def _flush(self, runs: list[Run]) -> None:
        for run in runs:
            if run.ended and run.reason != "lost":
                continue  # `write_last` writes its notes, before its outcome is handed in
            self._noted.discard(run)
            if run.context is None or run.ended:
                continue
            notes = run.context._notes.take()
            try:
                if not await self._store.tasks.note(run.grant.lease, *notes):
                    self._on_lost(run)
            except StoreUnavailable:  # the outage is logged elsewhere
                run.context._notes.put_back(*notes)
                self.later(run)
            except StoreError as error:
                self._log.warning("task %s: progress could not be written: %s", run.grant.spec.id, error)

    async def write_last(self, batch: list[Outcome]) -> set[str]:
        """Write the notes of runs that are about to be finished, as their leases end with that. Answers the ids of
        tasks whose partition cannot be reached."""
        unwritten: set[str] = set()
        if not self._noted:
            return unwritten
        ending = {outcome.lease.id for outcome in batch}
        for run in [run for run in list(self._noted) if run.grant.spec.id in ending]:
            self._noted.discard(run)
            if run.context is None:
                continue
            notes = run.context._notes.take()
            try:
                await self._store.tasks.note(run.grant.lease, *notes)
            except StoreError as error:
                if isinstance(error, StoreUnavailable) and not isinstance(error, StoreFull):
                    run.context._notes.put_back(*notes)
                    self._noted.add(run)
                    if self._store.capabilities.partitions == 1:
                        raise  # the outcome cannot be handed in either; both are sent again
                    unwritten.add(run.grant.spec.id)
                    continue
                # The outcome is handed in all the same.
                self._log.warning("task %s: its last notes could not be written: %s", run.grant.spec.id, error)
        return unwritten

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
