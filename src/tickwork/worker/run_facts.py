"""Publishes the starts and ends of runs to the listeners of this process: an end only when the store has accepted
it."""

from __future__ import annotations

from tickwork.errors import ExecutorError
from tickwork.executors.calling import UnfitPayload
from tickwork.model.facts import Fact
from tickwork.model.outcomes import Aborted, Failed, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.tasks import Lease, Status
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.observe.observations import TaskEnded, TaskStarted
from tickwork.store.contract import Grant, Store, Verdict

_FACTS: dict[type, Fact] = {
    Succeeded: Fact.TASK_SUCCEEDED,
    Failed: Fact.TASK_RETRYING,
    Aborted: Fact.TASK_DIED,
    Snoozed: Fact.TASK_SNOOZED,
    Released: Fact.TASK_RELEASED,
    Stopped: Fact.TASK_CANCELLED,
}
# The fact, where the store has moved the task to another status than the outcome asked for.
_OTHERWISE = {Status.CANCELLED: Fact.TASK_CANCELLED, Status.FAILED: Fact.TASK_FAILED}


class RunFacts:
    def __init__(self, bus: Bus, store: Store, worker_id: str, log: Log) -> None:
        self._bus = bus
        self._store = store
        self._worker_id = worker_id
        self._log = log
        self._ending: dict[Lease, tuple[Grant, BaseException | None]] = {}
        self._wants_success = True  # whether somebody listens for successes; looked up once for each batch

    def started(self, grants: list[Grant]) -> None:
        self._wants_success = self._bus.wants(Fact.TASK_SUCCEEDED)
        if self._bus.wants(Fact.TASK_CLAIMED):
            now = self._store.now()
            for grant in grants:
                self._bus.publish(Fact.TASK_CLAIMED, self._start_of(grant, now))

    def ending(self, grant: Grant, outcome: Outcome, error: BaseException | None = None) -> None:
        """A run is over, but the store has not accepted its outcome yet. `error` is what the handler raised."""
        if self._wants_success or not isinstance(outcome, Succeeded):
            if isinstance(error, ExecutorError):
                error.__traceback__ = None  # the failure was elsewhere, and how it was reported is of no use
            # The handler was not called, and the text may hold parts of the payload, which listeners are not shown.
            self._ending[grant.lease] = grant, None if isinstance(error, UnfitPayload) else error

    def ended(self, batch: list[Outcome], verdicts: list[Verdict]) -> None:
        for outcome, verdict in zip(batch, verdicts, strict=True):
            known = self._ending.pop(outcome.lease, None) if self._ending else None
            if verdict.kind == "lost":
                self._log.warning(
                    "task %s was finished here, but this worker had lost its lease: the outcome is refused",
                    outcome.lease.id,
                )
            elif known is not None:
                self._publish(outcome, verdict, *known)

    def _publish(self, outcome: Outcome, verdict: Verdict, grant: Grant, error: BaseException | None) -> None:
        fact = _FACTS[type(outcome)]
        if verdict.status is not None:
            fact = _OTHERWISE.get(verdict.status, fact)
        if self._bus.wants(fact):
            retry_in = outcome.retry_in / 1000 if isinstance(outcome, Failed) else None
            spec = grant.spec
            duration, detail = getattr(outcome, "duration", 0.0), getattr(outcome, "error", "")
            ended = TaskEnded(
                fact, spec.id, spec.type, spec.queue, self._worker_id, grant.attempt, duration, detail, error, retry_in
            )
            self._bus.publish(fact, ended)

    def _start_of(self, grant: Grant, now: int) -> TaskStarted:
        spec = grant.spec
        is_first = grant.attempt == 1 and grant.losses == 0
        waited = max(now - max(grant.due_at, grant.submitted_at), 0) / 1000 if is_first else None
        return TaskStarted(spec.id, spec.type, spec.queue, self._worker_id, grant.attempt, waited)
