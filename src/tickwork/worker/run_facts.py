"""What becomes of runs, told to the listeners of this process: a start at once, an end when the store has taken it."""

from __future__ import annotations

from tickwork.executors.calling import UnfitPayload
from tickwork.executors.process import ChildError
from tickwork.model.facts import Event, Fact
from tickwork.model.outcomes import Aborted, Failed, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.tasks import Lease, Status
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.store.contract import Grant, Store, Verdict

_FACTS: dict[type, Fact] = {
    Succeeded: Fact.TASK_SUCCEEDED,
    Failed: Fact.TASK_RETRYING,
    Aborted: Fact.TASK_DIED,
    Snoozed: Fact.TASK_SNOOZED,
    Released: Fact.TASK_RELEASED,
    Stopped: Fact.TASK_CANCELLED,
}
# What the store made of an outcome that could have led elsewhere.
_OTHERWISE = {Status.CANCELLED: Fact.TASK_CANCELLED, Status.FAILED: Fact.TASK_FAILED}


class RunFacts:
    def __init__(self, bus: Bus, store: Store, worker_id: str, log: Log) -> None:
        self._bus = bus
        self._store = store
        self._worker_id = worker_id
        self._log = log
        self._ending: dict[Lease, tuple[Grant, BaseException | None]] = {}
        self._tells_success = True  # asked with each batch of starts rather than for each task

    def started(self, grants: list[Grant]) -> None:
        self._tells_success = self._bus.wants(Fact.TASK_SUCCEEDED)
        if self._bus.wants(Fact.TASK_CLAIMED):
            for grant in grants:
                self._bus.publish(self._event(Fact.TASK_CLAIMED, grant))

    def ending(self, grant: Grant, outcome: Outcome, error: BaseException | None = None) -> None:
        """The run is over; whether that counts is for the store to say. `error` is what the handler raised."""
        if self._tells_success or not isinstance(outcome, Succeeded):
            if isinstance(error, ChildError):
                error.__traceback__ = None  # it has the child's own; the way from there to here is no news
            # The handler was not called, and the text may hold parts of the payload, which listeners are not shown.
            self._ending[grant.lease] = grant, None if isinstance(error, UnfitPayload) else error

    def ended(self, batch: list[Outcome], verdicts: list[Verdict]) -> None:
        for outcome, verdict in zip(batch, verdicts, strict=True):
            known = self._ending.pop(outcome.lease, None) if self._ending else None
            if verdict.kind == "lost":
                self._log.warning("task %s was finished here, but is not ours any more: refused", outcome.lease.id)
            elif known is not None:
                self._tell(outcome, verdict, *known)

    def _tell(self, outcome: Outcome, verdict: Verdict, grant: Grant, error: BaseException | None) -> None:
        fact = _FACTS[type(outcome)]
        if verdict.status is not None:
            fact = _OTHERWISE.get(verdict.status, fact)
        if self._bus.wants(fact):
            retry_in = outcome.retry_in / 1000 if isinstance(outcome, Failed) else None
            self._bus.publish(self._event(fact, grant, outcome), error, retry_in)

    def _event(self, fact: Fact, grant: Grant, outcome: Outcome | None = None) -> Event:
        spec = grant.spec
        duration, detail = getattr(outcome, "duration", 0.0), getattr(outcome, "error", "")
        return Event(
            0, self._store.now(), fact, spec.id, spec.type, spec.queue, self._worker_id, grant.attempt, duration, detail
        )
