"""Tasks whose payload does not fit the handler of this worker. While a new version is rolled out, or rolled back,
another worker may have the handler that they were meant for, so they wait for a while before they become dead
letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tickwork.clock import to_datetime
from tickwork.executors.calling import UnfitPayload
from tickwork.model.outcomes import Aborted, Outcome, Snoozed
from tickwork.observe.loggers import Log
from tickwork.observe.tracebacks import ERROR_MAX
from tickwork.store.contract import Grant
from tickwork.texts import storable

KNOWN_MAX = 10_000  # tasks for which the time of the first misfit is kept
SHORTEST, LONGEST = 1_000, 60_000  # milliseconds until it is tried again


class Met(NamedTuple):
    first_at: int
    times: int


class Misfits:
    def __init__(self, grace: float, now: Callable[[], int], log: Log) -> None:
        self._grace = round(grace * 1000)
        self._longest = min(max(self._grace // 60, SHORTEST), LONGEST)
        self._now = now
        self._log = log
        self._met: dict[str, Met] = {}  # in the order in which they were first found

    def outcome(self, grant: Grant, problem: UnfitPayload, duration: float) -> Outcome:
        """The outcome of a run whose payload did not fit: try again later, here or elsewhere; dead when `version_grace`
        is over, or when no version of the handler could read the payload."""
        spec, now = grant.spec, self._now()
        text = storable(f"the payload does not fit the handler: {problem}")[: ERROR_MAX // 2]
        met = self._met.get(spec.id, Met(now, 0))
        until = met.first_at + self._grace
        if problem.is_damaged or until <= now:
            self._met.pop(spec.id, None)
            return Aborted(grant.lease, text, duration)
        text += f"; it waits for a worker of another version, until {to_datetime(until):%Y-%m-%d %H:%M:%S} UTC"
        if met.times == 0:
            self._log.warning("task %s (%s): %s", spec.id, spec.type, text)
        pause = self._longest if not self._remember(spec.id, met, now) else SHORTEST << min(met.times, 6)
        return Snoozed(grant.lease, delay=min(pause, self._longest, until - now), error=text)

    def wait(self, grant: Grant, why: str) -> Outcome:
        """The outcome of a task that this worker has no means to run: it waits for one that has, however long. No
        attempt is charged."""
        spec, now = grant.spec, self._now()
        met = self._met.get(spec.id, Met(now, 0))
        if met.times == 0:
            self._log.warning("task %s (%s): %s", spec.id, spec.type, why)
        known = self._remember(spec.id, met, now)
        return Snoozed(grant.lease, delay=min(SHORTEST << min(met.times, 6), LONGEST) if known else LONGEST, error=why)

    def _remember(self, task_id: str, met: Met, now: int) -> bool:
        """Keep when the task was first found not to fit. False if too many are kept already; it is then counted
        later."""
        if task_id not in self._met and len(self._met) >= KNOWN_MAX:
            oldest = next(iter(self._met))
            if self._met[oldest].first_at + self._grace + 2 * self._longest > now:
                return False
            del self._met[oldest]  # it would have been claimed here again by now, so another worker has run it
        self._met[task_id] = Met(met.first_at, met.times + 1)
        return True
