"""Traces by OpenTelemetry: `app.use(OpenTelemetry())`. Needs the extra `otel`; docs/tracing.md tells of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tickwork import __version__
from tickwork.contrib.outcomes import UNFIT, outcome_of
from tickwork.errors import ConfigError
from tickwork.executors.calling import UnfitPayload
from tickwork.executors.process import ChildError
from tickwork.handlers.context import TaskContext
from tickwork.handlers.middleware import Middleware, NewTask, RunCall, RunNext, SubmitCall, SubmitNext
from tickwork.model.ticks import is_tick
from tickwork.outbound import call_headers
from tickwork.store.contract import Receipt

try:
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context, attach, detach
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
except ImportError as error:
    raise ConfigError(
        f'traces need packages that are not installed here: pip install "tickwork[otel]" ({error})'
    ) from None

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import TracerProvider

SYSTEM = "tickwork"


class OpenTelemetry(Middleware):
    """Spans for each submit, for the time that a task waits, and for each of its runs.

    The submit is named in the `context` of the task, by the keys of the propagator: `traceparent`, `tracestate` and
    `baggage` by default. All runs of a task belong to the trace of its submit; with `new_traces=True` each run begins a
    trace of its own, which is linked to the submit.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        propagator: TextMapPropagator | None = None,
        new_traces: bool = False,
    ) -> None:
        """`tracer_provider` and `propagator` are the global ones of OpenTelemetry, if none are given."""
        self._tracer = trace.get_tracer(SYSTEM, __version__, tracer_provider)
        self._own_propagator = propagator
        self._new_traces = new_traces

    @property
    def _propagator(self) -> TextMapPropagator:
        """The global one may be set later than this object is made."""
        return self._own_propagator or propagate.get_global_textmap()

    # --- around a submit

    async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
        tasks = call.tasks
        # A tick has no cause but the time; the leader may have been started inside of a span.
        parent = Context() if all(task.schedule_id and is_tick(task.id) for task in tasks) else None
        types = {task.type for task in tasks}
        name = f"submit {types.pop()}" if len(types) == 1 else "submit"
        with self._tracer.start_as_current_span(name, parent, SpanKind.PRODUCER, _of_submit(tasks)) as span:
            carried = self._carried()
            for task in tasks:
                if not carried.keys() & task.context.keys():  # else the caller has said which trace it belongs to
                    task.context.update(carried)
            receipts = await next(call)
            span.set_attributes(_of_receipts(receipts))
            return receipts

    def _carried(self) -> dict[str, str]:
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier

    # --- around a run

    async def run(self, call: RunCall, next: RunNext) -> Any:
        cause = self._extracted(call.ctx.context)
        began = time.time_ns()
        about = _of_run(call)
        if trace.get_current_span(cause).get_span_context().is_valid:  # else it would be a trace of its own
            due = min(_nanoseconds(max(call.ctx.scheduled_at, call.submitted_at)), began)
            self._tracer.start_span(f"wait {call.type}", cause, attributes=about, start_time=due).end(began)
        with self._started(call, cause, about, began) as span, call_headers.added(self._carried):
            try:
                result = await next(call)
            except BaseException as error:
                _tell(span, call, error)
                raise
            span.set_attribute("tickwork.run.outcome", "success")
            return result

    def _extracted(self, carrier: Mapping[str, Any]) -> Context:
        """What the carrier says, and nothing of the context in which this worker was started."""
        texts = {name: value for name, value in carrier.items() if isinstance(value, str)}
        return self._propagator.extract(texts, Context())

    @contextmanager
    def _started(self, call: RunCall, cause: Context, about: dict[str, Any], began: int) -> Iterator[Span]:
        parent, links = cause, []
        if self._new_traces:
            submitted = trace.get_current_span(cause).get_span_context()
            parent = trace.set_span_in_context(trace.INVALID_SPAN, cause)
            links = [Link(submitted)] if submitted.is_valid else []
        operation = {"messaging.operation.name": "run", "messaging.operation.type": "process"}
        token = attach(parent)  # what the submit has carried beside its span, such as baggage
        try:
            span = self._tracer.start_span(
                f"run {call.type}", parent, SpanKind.CONSUMER, about | operation, links, began
            )
            with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
                yield span
        finally:
            detach(token)

    def in_child(self, ctx: TaskContext, headers: Mapping[str, str]) -> AbstractContextManager[object]:
        return _attached(self._extracted(headers))


@contextmanager
def _attached(context: Context) -> Iterator[None]:
    token = attach(context)
    try:
        yield
    finally:
        detach(token)


def _of_submit(tasks: list[NewTask]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": "submit",
        "messaging.operation.type": "send",
    }
    alike = {
        "messaging.destination.name": {task.queue for task in tasks},
        "tickwork.task.type": {task.type for task in tasks},
        "messaging.message.id": {task.id for task in tasks},
        "tickwork.schedule.id": {task.schedule_id for task in tasks if task.schedule_id},
    }
    told |= {name: values.pop() for name, values in alike.items() if len(values) == 1}
    if len(tasks) != 1:
        told["messaging.batch.message_count"] = len(tasks)
    return told


def _of_receipts(receipts: list[Receipt]) -> dict[str, Any]:
    """Whether there is a new task, or for several how many there are."""
    if len(receipts) == 1:
        return {"tickwork.submit.verdict": receipts[0].verdict}
    return {"tickwork.submit.created": sum(receipt.verdict == "created" for receipt in receipts)}


def _of_run(call: RunCall) -> dict[str, Any]:
    told = {
        "messaging.system": SYSTEM,
        "messaging.destination.name": call.queue,
        "messaging.message.id": call.id,
        "messaging.client.id": call.worker_id,
        "tickwork.task.type": call.type,
        "tickwork.task.attempt": call.attempt,
    }
    if call.schedule_id:
        told["tickwork.schedule.id"] = call.schedule_id
    return told


def _nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000) * 1000


# --- how a run ended


def _tell(span: Span, call: RunCall, error: BaseException) -> None:
    outcome, is_error = outcome_of(call, error)
    span.set_attribute("tickwork.run.outcome", outcome)
    if not is_error:
        return
    kind = error.type_name if isinstance(error, ChildError) else type(error).__qualname__
    span.set_attribute("error.type", "timeout" if outcome == "timeout" else kind)
    if isinstance(error, UnfitPayload):
        span.set_status(Status(StatusCode.ERROR, UNFIT))
    elif outcome == "timeout":
        span.set_status(Status(StatusCode.ERROR, f"timed out after {call._spec.timeout:g} s"))
    else:
        span.set_status(Status(StatusCode.ERROR, _recorded(span, error, kind)))


def _recorded(span: Span, error: BaseException, kind: str) -> str:
    """Record an exception; answers what to say of it."""
    try:
        text = str(error) if isinstance(error, ChildError) else f"{kind}: {error}"
        of_child = {}
        if isinstance(error, ChildError):  # the exception itself is there, and so is its traceback
            of_child = {
                "exception.type": kind,
                "exception.message": error.text,
                "exception.stacktrace": error.traceback,
            }
        span.record_exception(error, of_child)
    except Exception:  # an exception class of the program may fail when its text is asked for
        text = f"{kind}: (cannot be shown)"
        span.add_event("exception", {"exception.type": kind, "exception.message": text})
    return text
