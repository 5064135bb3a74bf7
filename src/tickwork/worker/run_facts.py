"""Publishes the starts and ends of runs to the listeners of this process: an end only when the store has accepted
it. A worker starts and ends many at a time. Who counts them hears of each batch once; an observation for each run is
made only where somebody wants to hear of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from tickwork.errors import ExecutorError
from tickwork.executors.calling import UnfitPayload
from tickwork.model.facts import Fact
from tickwork.model.outcomes import Aborted, Failed, Held, Outcome, Released, Snoozed, Stopped, Succeeded
from tickwork.model.tasks import Status
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.observe.observations import TaskEnded, TaskStarted
from tickwork.store.contract import Grant, Store, Verdict

_FACTS: dict[type, Fact] = {
    Succeeded: Fact.TASK_SUCCEEDED,
    Failed: Fact.TASK_RETRYING,
    Aborted: Fact.TASK_DIED,
    Snoozed: Fact.TASK_SNOOZED,
    Held: Fact.TASK_HELD,
    Released: Fact.TASK_RELEASED,
    Stopped: Fact.TASK_CANCELLED,
}
_SUCCEEDED, _SUCCESS = {Succeeded}, {Status.SUCCESS}
# The fact, where the store has moved the task to another status than the outcome asked for.
_OTHERWISE = {Status.CANCELLED: Fact.TASK_CANCELLED, Status.FAILED: Fact.TASK_FAILED}


class RunsStarted(Struct, frozen=True):
    """Runs that a worker has started at `now`."""

    worker_id: str
    grants: Sequence[Grant]
    now: int


# A run that is over, and what its handler raised in this process; and one whose end the store has accepted.
Ending = tuple[Grant, BaseException | None]
Ended = tuple[Fact, Grant, Outcome, BaseException | None]


class RunsEnded(Struct, frozen=True):
    worker_id: str
    runs: Sequence[Ended]


def seconds_of(outcome: Outcome) -> float:
    return 0.0 if isinstance(outcome, Snoozed | Held | Released) else outcome.duration


class RunFacts:
    def __init__(self, bus: Bus, store: Store, worker_id: str, log: Log) -> None:
        self._bus = bus
        self._store = store
        self._worker_id = worker_id
        self._log = log
        # By task. If it was lost and claimed again meanwhile, its first run is forgotten: that end will be refused.
        self._ending: dict[str, Ending] = {}
        self._wants_success = True  # whether somebody listens for successes; looked up once for each batch

    def started(self, grants: list[Grant]) -> None:
        bus = self._bus
        self._wants_success = bus.wants(RunsEnded) or bus.wants(Fact.TASK_SUCCEEDED)
        wants_all, wants_each = bus.wants(RunsStarted), bus.wants(Fact.TASK_CLAIMED)
        if wants_all or wants_each:
            now = self._store.now()
            bus.publish(RunsStarted, RunsStarted(self._worker_id, grants, now))
            for grant in grants if wants_each else ():
                bus.publish(Fact.TASK_CLAIMED, self._start_of(grant, now))

    def ending(self, grant: Grant, outcome: Outcome, error: BaseException | None = None) -> None:
        """A run is over, but the store has not accepted its outcome yet. `error` is what the handler raised."""
        if self._wants_success or not isinstance(outcome, Succeeded):
            if isinstance(error, ExecutorError):
                error.__traceback__ = None  # the failure was elsewhere, and how it was reported is of no use
            elif isinstance(error, UnfitPayload):
                error = None  # the handler was not called, and listeners are not shown parts of the payload
            self._ending[grant.lease.id] = grant, error

    def ended(self, batch: Sequence[Outcome], verdicts: list[Verdict]) -> None:
        runs = self._successes(batch, verdicts) if self._ending else []
        if len(runs) < len(batch):
            runs = [*self._runs(batch, verdicts)]
        if runs:
            self._publish(runs)

    def _successes(self, batch: Sequence[Outcome], verdicts: list[Verdict]) -> list[Ended]:
        """All of a batch in which every run has succeeded, as in most; of another none, or some."""
        if {verdict.status for verdict in verdicts} != _SUCCESS or {*map(type, batch)} != _SUCCEEDED:
            return []
        ending = self._ending
        runs: list[Ended] = [
            (Fact.TASK_SUCCEEDED, known[0], outcome, None)
            for outcome in batch
            if (known := ending.get(outcome.lease.id)) is not None and known[0].lease is outcome.lease
        ]
        if len(runs) == len(batch):
            for outcome in batch:
                ending.pop(outcome.lease.id, None)
        return runs

    def _runs(self, batch: Sequence[Outcome], verdicts: list[Verdict]) -> Iterator[Ended]:
        for outcome, verdict in zip(batch, verdicts, strict=True):
            lease = outcome.lease
            known = self._ending.pop(lease.id, None)
            if known is not None and known[0].lease != lease:
                self._ending[lease.id], known = known, None  # it is that of a later run
            if verdict.kind == "lost":
                self._log.warning(
                    "task %s was finished here, but this worker had lost its lease: the outcome is refused", lease.id
                )
            elif known is not None:
                yield _fact_of(outcome, verdict), known[0], outcome, known[1]

    def _publish(self, runs: list[Ended]) -> None:
        bus = self._bus
        bus.publish(RunsEnded, RunsEnded(self._worker_id, runs))
        heard = {fact for fact in {run[0] for run in runs} if bus.wants(fact)}
        for run in runs if heard else ():
            if run[0] in heard:
                bus.publish(run[0], self._end_of(*run))

    def _end_of(self, fact: Fact, grant: Grant, outcome: Outcome, error: BaseException | None) -> TaskEnded:
        retry_in = outcome.retry_in / 1000 if isinstance(outcome, Failed) else None
        spec, detail = grant.spec, getattr(outcome, "error", "")
        return TaskEnded(
            fact, spec.id, spec.type, spec.queue, self._worker_id, grant.attempt, seconds_of(outcome), detail, error,
            retry_in,
        )  # fmt: skip

    def _start_of(self, grant: Grant, now: int) -> TaskStarted:
        since = grant.ready_at if grant.attempt == 1 and grant.losses == 0 else None
        waited = None if since is None else max(now - since, 0) / 1000
        spec = grant.spec
        return TaskStarted(spec.id, spec.type, spec.queue, self._worker_id, grant.attempt, waited)


def _fact_of(outcome: Outcome, verdict: Verdict) -> Fact:
    fact = _FACTS[type(outcome)]
    return fact if verdict.status is None else _OTHERWISE.get(verdict.status, fact)
