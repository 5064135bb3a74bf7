"""Failures and transactions in Sentry: `report_to_sentry(app)`. Needs the extra `sentry`; docs/recipes/sentry.md."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Context, copy_context
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from tickwork.contrib.outcomes import UNFIT, RunOutcome, outcome_of
from tickwork.errors import ConfigError, Retry
from tickwork.executors.calling import UnfitPayload
from tickwork.handlers.context import TaskContext
from tickwork.handlers.middleware import Middleware, NewTask, RunCall, RunNext, SubmitCall, SubmitNext
from tickwork.model.facts import Fact
from tickwork.model.ticks import is_tick
from tickwork.observe.observations import TaskEnded
from tickwork.scheduler import Scheduler
from tickwork.store.contract import Receipt
from tickwork.texts import shown

try:
    import sentry_sdk
    from sentry_sdk.integrations.logging import ignore_logger
    from sentry_sdk.utils import event_from_exception
except ImportError as error:
    raise ConfigError(
        f'reports to Sentry need a package that is not here: pip install "tickwork[sentry]" ({error})'
    ) from None

if TYPE_CHECKING:
    from sentry_sdk.types import Event, Hint

ORIGIN = "auto.queue.tickwork"
TRACE, BAGGAGE = "sentry-trace", "sentry-baggage"  # keys in the context of a task
RUNS_MAX = 1000  # failed runs of which the store has not said yet whether that was the end
NEVER_REPORTED = ("snoozed", "stopped", "reported")
STATUSES: dict[RunOutcome, str] = {"timeout": "deadline_exceeded", "stopped": "cancelled"}


def report_to_sentry(app: Scheduler, *, capture: Literal["final", "every"] = "final", payload: bool = False) -> None:
    """Report tasks that fail, with the data that was set while they ran, and measure runs as transactions.

    A task is reported once, when it has failed for good; with `capture="every"` each attempt that fails is. `payload`
    sends the payload too, and the local variables, which hold it. Where `sentry_sdk.init` was not called nothing is
    sent.
    """
    if capture not in ("final", "every"):
        raise ConfigError(f"capture must be final or every, not {shown(capture)}")
    middleware = _Sentry(capture == "every", payload)
    app.use(middleware)
    app.observe(middleware.ended, TaskEnded)
    ignore_logger("tickwork")  # or its line about the failed task would be an issue of its own


class _FailedRun:
    """What is needed to report a run once it is known what the store makes of its failure."""

    def __init__(self, call: RunCall, is_unfit: bool) -> None:
        self.context: Context = copy_context()  # with the scopes of the run
        self.call = call
        self.is_unfit = is_unfit


class _Sentry(Middleware):
    def __init__(self, every: bool, payload: bool) -> None:
        self._facts = {Fact.TASK_DIED, Fact.TASK_FAILED} | ({Fact.TASK_RETRYING} if every else set())
        self._sends_payload = payload
        self._failed: dict[tuple[str, int, str], _FailedRun] = {}
        self._lock = threading.Lock()  # observers have threads of their own

    # --- around a submit

    async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
        if not sentry_sdk.get_client().is_active():
            return await next(call)
        # A tick has no cause but the time, so that it begins a trace.
        is_root = all(task.schedule_id and is_tick(task.id) for task in call.tasks)
        with _new_trace() if is_root else nullcontext():
            first = call.tasks[0]
            with sentry_sdk.start_span(op="queue.publish", name=first.type, origin=ORIGIN) as span:
                span.set_data("messaging.destination.name", first.queue)
                if len(call.tasks) == 1:
                    span.set_data("messaging.message.id", first.id)
                else:
                    span.set_data("messaging.batch.message_count", len(call.tasks))
                _carry(call.tasks)
                return await next(call)

    # --- around a run

    async def run(self, call: RunCall, next: RunNext) -> Any:
        if not sentry_sdk.get_client().is_active():
            return await next(call)
        with self._scope(call.ctx) as trace, _transaction(call, trace) as span:
            try:
                return await next(call)
            except BaseException as error:
                outcome, is_error = outcome_of(call, error)
                span.set_status(STATUSES.get(outcome, "internal_error" if is_error else "ok"))
                span.set_data("tickwork.run.outcome", outcome)
                if outcome not in NEVER_REPORTED:
                    self._keep(_FailedRun(call, isinstance(error, UnfitPayload)))
                raise

    def in_child(self, ctx: TaskContext, headers: Mapping[str, str]) -> AbstractContextManager[object]:
        return self._scope(ctx)

    @contextmanager
    def _scope(self, ctx: TaskContext) -> Iterator[Any]:
        """What is set and captured in here belongs to this run; yields a transaction that continues the trace."""
        with sentry_sdk.isolation_scope() as scope:
            scope.clear_breadcrumbs()
            scope.set_transaction_name(ctx.type, source="task")
            scope.set_tags({
                "task.id": ctx.task_id, "task.type": ctx.type, "task.queue": ctx.queue, "task.attempt": ctx.attempt,
            })  # fmt: skip
            if not self._sends_payload:
                scope.add_event_processor(_without_variables)
            carried = {"sentry-trace": ctx.context.get(TRACE), "baggage": ctx.context.get(BAGGAGE)}
            texts = {name: value for name, value in carried.items() if isinstance(value, str)}
            yield sentry_sdk.continue_trace(texts, op="queue.process", name=ctx.type, source="task", origin=ORIGIN)

    # --- what the store has made of it

    def _keep(self, run: _FailedRun) -> None:
        with self._lock:
            if len(self._failed) >= RUNS_MAX:  # the oldest one: its outcome was refused, as its lease was lost
                del self._failed[next(iter(self._failed))]
            self._failed[run.call.id, run.call.attempt, run.call.worker_id] = run

    def ended(self, ended: TaskEnded) -> None:
        """An observer, so that only what the store has accepted is reported."""
        with self._lock:
            run = self._failed.pop((ended.id, ended.attempt, ended.worker_id), None)
        if ended.fact not in self._facts or not sentry_sdk.get_client().is_active():
            return
        if ended.fact is Fact.TASK_RETRYING and isinstance(ended.error, Retry):
            return  # the handler has asked for it
        if run is None:  # it failed before it began, or around this middleware
            with sentry_sdk.isolation_scope() as scope:
                scope.set_tags({"task.id": ended.id, "task.type": ended.type, "task.queue": ended.queue})
                scope.set_tag("task.attempt", ended.attempt)
                self._capture(ended, None)
        else:
            run.context.run(self._capture, ended, run)

    def _capture(self, ended: TaskEnded, run: _FailedRun | None) -> None:
        with sentry_sdk.new_scope() as scope:
            task = {"attempt": ended.attempt, "seconds": ended.duration, "outcome": str(ended.fact)}
            if run is not None:
                task |= {"max_retry": run.call.ctx.max_retry, "schedule": run.call.schedule_id}
                if self._sends_payload:
                    task["payload"] = run.call.payload
            scope.set_context("task", task)
            if ended.error is not None:
                options = sentry_sdk.get_client().options
                event, hint = event_from_exception(
                    ended.error, options, mechanism={"type": "tickwork", "handled": False}
                )
                sentry_sdk.capture_event(event, hint)
                return
            # Nothing was raised that could be shown, as with a timeout. Else those of all types would be one issue.
            text = UNFIT if run is not None and run.is_unfit else ended.detail.partition("\n")[0]
            scope.fingerprint = ["tickwork", ended.type, text]
            sentry_sdk.capture_message(text, level="error")


@contextmanager
def _new_trace() -> Iterator[None]:
    with sentry_sdk.isolation_scope() as scope:
        scope.set_new_propagation_context()
        yield


def _carry(tasks: list[NewTask]) -> None:
    trace, baggage = sentry_sdk.get_traceparent(), sentry_sdk.get_baggage()
    for task in tasks:
        if trace and TRACE not in task.context and BAGGAGE not in task.context:
            task.context[TRACE] = trace
            if baggage:
                task.context[BAGGAGE] = baggage


@contextmanager
def _transaction(call: RunCall, transaction: Any) -> Iterator[Any]:
    """Exceptions pass it unseen, as some of them are no errors."""
    span = sentry_sdk.start_transaction(transaction)
    span.__enter__()
    try:
        due = max(call.ctx.scheduled_at, call.submitted_at)
        span.set_data("messaging.message.id", call.id)
        span.set_data("messaging.destination.name", call.queue)
        span.set_data("messaging.message.retry.count", call.attempt - 1)
        span.set_data("messaging.message.receive.latency", max((datetime.now(UTC) - due).total_seconds() * 1000, 0))
        span.set_status("ok")
        yield span
    finally:
        span.__exit__(None, None, None)


def _without_variables(event: Event, hint: Hint) -> Event:
    """The variables of handlers, and of what calls them and is called by them, hold the payload."""
    for part in (event.get("exception"), event.get("threads")):
        for value in (part or {}).get("values") or ():
            for frame in (value.get("stacktrace") or {}).get("frames") or ():
                frame.pop("vars", None)
    return event
