"""Traces by OpenTelemetry: spans of submits and runs, and the context that goes from one to the other."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from tests.integration import child_traces
from tests.integration.apps import Make, eventually
from tests.integration.test_remote_calls import calling
from tests.support import grpc_service
from tests.support.hostile_http import always, answer, serving
from tests.support.serving import served
from tests.support.traces import Traces
from tickwork import (
    Abort,
    FixedDelay,
    Middleware,
    RateLimited,
    Receipt,
    Retry,
    Snooze,
    SubmitCall,
    SubmitNext,
    TaskContext,
    TaskFailed,
)
from tickwork.client.remote_workers import WorkerKeys
from tickwork.clock import ManualClock
from tickwork.contrib.opentelemetry import OpenTelemetry
from tickwork.outbound import call_headers
from tickwork.remote import RemoteCall, RemoteWorkerApp
from tickwork.testing import drain
from tickwork.testing import run as running

LONG = 60.0


@pytest.fixture
def traces() -> Iterator[Traces]:
    traces = Traces()
    yield traces
    traces.provider.shutdown()


def identity(span: ReadableSpan) -> tuple[int, int]:
    found = span.get_span_context()
    assert found is not None
    return found.trace_id, found.span_id


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def traceparent(span: ReadableSpan) -> str:
    found = span.get_span_context()
    assert found is not None
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def recorded(span: ReadableSpan) -> list[dict[str, Any]]:
    return [dict(event.attributes or {}) for event in span.events if event.name == "exception"]


# --- the spans of a task


async def test_a_task_has_spans_for_its_submit_its_wait_and_its_run(make: Make, url: str, traces: Traces) -> None:
    app = traces.used_by(make(url))

    @app.task(queue="default")
    async def double(number: int) -> int:
        with traces.tracer.start_as_current_span("inside"):
            return 2 * number

    async with app:
        with traces.tracer.start_as_current_span("request"):
            handle = await double.submit(21)
        assert await handle.result(LONG) == 42
        await eventually(lambda: traces.named("run double"))
    request, submit, wait, run = (
        traces.one(name) for name in ("request", "submit double", "wait double", "run double")
    )
    assert parent_of(submit) == identity(request)
    assert parent_of(wait) == parent_of(run) == identity(submit)
    assert parent_of(traces.one("inside")) == identity(run)
    assert (submit.kind, wait.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.INTERNAL, SpanKind.CONSUMER)
    assert told(submit) == {
        "messaging.system": "tickwork", "messaging.operation.name": "submit", "messaging.operation.type": "send",
        "messaging.destination.name": "default", "messaging.message.id": handle.id, "tickwork.task.type": "double",
        "tickwork.submit.verdict": "created",
    }  # fmt: skip
    worker = told(run).pop("messaging.client.id")
    assert told(run) == {
        "messaging.system": "tickwork", "messaging.operation.name": "run", "messaging.operation.type": "process",
        "messaging.destination.name": "default", "messaging.message.id": handle.id, "messaging.client.id": worker,
        "tickwork.task.type": "double", "tickwork.task.attempt": 1, "tickwork.run.outcome": "success",
    }  # fmt: skip
    assert wait.end_time == run.start_time
    assert run.status.status_code is StatusCode.UNSET


async def test_the_wait_begins_when_a_task_could_run(make: Make, traces: Traces, clock: ManualClock) -> None:
    app = traces.used_by(make("memory://", clock=clock))
    app.task(max_retry=0)(nothing)
    async with app:
        handle = await app.submit("nothing", delay=3600)
        await drain(app, until=timedelta(hours=2))
        info = await handle.info()
    wait = traces.one("wait nothing")
    assert wait.start_time == round(info.scheduled_at.timestamp() * 1000) * 1_000_000
    assert wait.start_time - round(info.submitted_at.timestamp() * 1000) * 1_000_000 == 3600 * 10**9


async def nothing() -> None:
    pass


async def test_all_attempts_are_children_of_the_submit(make: Make, traces: Traces) -> None:
    app = traces.used_by(make("memory://", retry=FixedDelay(0.01)))

    @app.task(max_retry=2)
    async def fail() -> None:
        raise ConnectionError("no answer")

    async with app:
        with pytest.raises(TaskFailed):
            await (await fail.submit()).result(LONG)
        await eventually(lambda: len(traces.named("run fail")) == 3)
    submit, runs = traces.one("submit fail"), traces.named("run fail")
    assert [told(run)["tickwork.task.attempt"] for run in runs] == [1, 2, 3]
    assert {parent_of(run) for run in runs} == {identity(submit)}
    assert len(traces.named("wait fail")) == 3
    for run in runs:
        assert (run.status.status_code, run.status.description) == (StatusCode.ERROR, "ConnectionError: no answer")
        assert (told(run)["tickwork.run.outcome"], told(run)["error.type"]) == ("failed", "ConnectionError")
        (error,) = recorded(run)
        assert (error["exception.type"], error["exception.message"]) == ("ConnectionError", "no answer")
        assert "in fail" in error["exception.stacktrace"]


async def test_runs_may_begin_traces_of_their_own(make: Make, traces: Traces) -> None:
    app = traces.used_by(make("memory://"), new_traces=True)
    app.task(nothing)
    async with app:
        await (await app.submit("nothing")).result(LONG)
        await eventually(lambda: traces.named("run nothing"))
    submit, run = traces.one("submit nothing"), traces.one("run nothing")
    assert run.parent is None
    assert identity(run)[0] != identity(submit)[0]
    (link,) = run.links
    assert (link.context.trace_id, link.context.span_id) == identity(submit)
    assert parent_of(traces.one("wait nothing")) == identity(submit)


async def test_a_batch_is_one_span(make: Make, traces: Traces) -> None:
    app = traces.used_by(make("memory://"))
    app.task(nothing)
    async with app:
        handles = await app.submit_many("nothing", [{}, {}, {}], queue="default")
        for handle in handles:
            await handle.result(LONG)
        await eventually(lambda: len(traces.named("run nothing")) == 3)
    submit = traces.one("submit nothing")
    assert (told(submit)["messaging.batch.message_count"], told(submit)["tickwork.submit.created"]) == (3, 3)
    assert "messaging.message.id" not in told(submit)
    assert {parent_of(run) for run in traces.named("run nothing")} == {identity(submit)}


async def test_a_duplicate_is_told(make: Make, traces: Traces) -> None:
    app = traces.used_by(make("memory://"))
    app.task(nothing)
    async with app:
        first = await app.submit("nothing", dedup_key="one", delay=3600)
        assert (await app.submit("nothing", dedup_key="one", if_exists="return")).id == first.id
    verdicts = [told(span)["tickwork.submit.verdict"] for span in traces.named("submit nothing")]
    assert verdicts == ["created", "duplicate"]


async def test_a_refused_submit_is_an_error(make: Make, traces: Traces) -> None:
    class Refusing(Middleware):
        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            raise RateLimited(1.0)

    app = traces.used_by(make("memory://"))
    app.use(Refusing())
    app.task(nothing)
    async with app:
        with pytest.raises(RateLimited):
            await app.submit("nothing")
    submit = traces.one("submit nothing")
    assert submit.status.status_code is StatusCode.ERROR
    assert len(recorded(submit)) == 1


async def test_the_tick_of_a_schedule_begins_a_trace(make: Make, traces: Traces, clock: ManualClock) -> None:
    app = traces.used_by(make("memory://", clock=clock))
    app.task(nothing)
    with traces.tracer.start_as_current_span("start of the program"):
        await app.start()
    with traces.tracer.start_as_current_span("request"):
        await app.schedules.put("hourly", "nothing", cron="0 * * * *")
        by_hand = await app.schedules.trigger("hourly")
    await drain(app, until=timedelta(hours=1))
    await app.shutdown()
    submits = {told(span)["messaging.message.id"]: span for span in traces.named("submit nothing")}
    runs = {told(span)["messaging.message.id"]: span for span in traces.named("run nothing")}
    assert parent_of(submits.pop(by_hand)) == identity(traces.one("request"))
    ((tick, submit),) = submits.items()
    assert submit.parent is None
    assert not submit.links
    assert told(submit)["tickwork.schedule.id"] == told(runs[tick])["tickwork.schedule.id"] == "hourly"
    assert parent_of(runs[tick]) == identity(submit)


async def test_a_task_that_was_submitted_without_a_trace_begins_one(
    make: Make, traces: Traces, sqlite_url: str
) -> None:
    plain = make(sqlite_url)
    await plain.submit("nothing", id="plain")
    app = traces.used_by(make(sqlite_url))
    app.task(nothing)
    with traces.tracer.start_as_current_span("start of the program"):
        await app.start()
    await eventually(lambda: traces.named("run nothing"))
    assert traces.one("run nothing").parent is None
    assert not traces.named("wait nothing")


# --- what is carried


async def test_what_the_caller_says_of_the_trace_is_kept(make: Make, traces: Traces) -> None:
    app = traces.used_by(make("memory://"))
    app.task(nothing)
    said = {"traceparent": f"00-{5:032x}-{6:016x}-01", "user": 7}
    async with app:
        handle = await app.submit("nothing", context=said)
        await handle.result(LONG)
        assert (await handle.info()).context == said
        odd = await app.submit("nothing", context={"traceparent": 5, "tracestate": ["x"]})
        await odd.result(LONG)
        await eventually(lambda: len(traces.named("run nothing")) == 2)
    known, unknown = traces.named("run nothing")
    assert parent_of(known) == (5, 6)
    assert unknown.parent is None


async def test_the_keys_of_the_caller_stay_beside_those_of_the_trace(make: Make, traces: Traces) -> None:
    app = traces.used_by(make("memory://"))

    @app.task
    async def who(ctx: TaskContext) -> list[Any]:
        return [ctx.context["user"], baggage.get_baggage("tenant")]

    async with app:
        token = context.attach(baggage.set_baggage("tenant", "acme"))
        try:
            handle = await who.options(context={"user": 7}).submit()
        finally:
            context.detach(token)
        assert await handle.result(LONG) == [7, "acme"]
        assert (await handle.info()).context == {
            "user": 7, "traceparent": traceparent(traces.one("submit who")), "baggage": "tenant=acme",
        }  # fmt: skip


async def test_handlers_in_threads_and_their_submits_are_inside_of_the_run(make: Make, traces: Traces) -> None:
    app = traces.used_by(make("memory://"))
    app.task(nothing)

    @app.task
    def outer() -> str:
        with traces.tracer.start_as_current_span("inside"):
            return app.sync.submit("nothing").id

    async with app:
        await (await outer.submit()).result(LONG)
        await eventually(lambda: traces.named("run nothing"))
        await eventually(lambda: traces.named("run outer"))
    inside = traces.one("inside")
    assert parent_of(inside) == identity(traces.one("run outer"))
    assert parent_of(traces.one("submit nothing")) == identity(inside)


@pytest.mark.parametrize("handler", ["inside", "inside_async"])
async def test_a_handler_in_a_child_process_is_inside_of_the_run(handler: str) -> None:
    traces = child_traces.TRACES
    async with running(child_traces.app) as app:
        found = await (await app.submit(handler)).result(LONG)
        await eventually(lambda: traces.named(f"run {handler}"))
    assert found == traceparent(traces.one(f"run {handler}"))


# --- how a run ends


async def run_once(make: Make, traces: Traces, handler: Any, **options: Any) -> ReadableSpan:
    """The span of the first run of this handler."""
    app = traces.used_by(make("memory://"))
    app.task(max_retry=0, **options)(handler)
    async with app:
        await app.submit(handler.__name__)
        await eventually(lambda: traces.named(f"run {handler.__name__}"))
    return traces.named(f"run {handler.__name__}")[0]


async def snooze(ctx: TaskContext) -> None:
    raise Snooze(3600)


async def abort() -> None:
    raise Abort("no such order")


async def retry() -> None:
    raise Retry(3600)


async def hang() -> None:
    await asyncio.Event().wait()


async def leave() -> None:
    raise SystemExit("bye")


async def cancelled_from_inside() -> None:
    raise asyncio.CancelledError


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def unspeakable() -> None:
    raise Unspeakable


async def wants(number: int = 7) -> None:
    pass


@pytest.mark.parametrize(
    ("handler", "outcome", "text"),
    [
        (snooze, "snoozed", None),
        (abort, "aborted", "Abort: no such order"),
        (retry, "retry", "Retry: "),  # there is none left
        (leave, "failed", "SystemExit: bye"),
        (cancelled_from_inside, "failed", "CancelledError: "),
        (unspeakable, "failed", "Unspeakable: (cannot be shown)"),
    ],
)
async def test_what_becomes_of_a_run(make: Make, traces: Traces, handler: Any, outcome: str, text: str | None) -> None:
    run = await run_once(make, traces, handler)
    assert told(run)["tickwork.run.outcome"] == outcome
    assert run.status.status_code is (StatusCode.UNSET if text is None else StatusCode.ERROR)
    assert (run.status.description or "").startswith(text or "")
    assert len(recorded(run)) == (0 if text is None else 1)


async def test_a_timeout_is_an_error(make: Make, traces: Traces) -> None:
    run = await run_once(make, traces, hang, timeout=0.05)
    assert (told(run)["tickwork.run.outcome"], told(run)["error.type"]) == ("timeout", "timeout")
    assert (run.status.status_code, run.status.description) == (StatusCode.ERROR, "timed out after 0.05 s")


async def test_a_retry_that_will_come_is_no_error(make: Make, traces: Traces) -> None:
    app = traces.used_by(make("memory://"))
    app.task(max_retry=1)(retry)
    async with app:
        await app.submit("retry")
        await eventually(lambda: traces.named("run retry"))
    run = traces.one("run retry")
    assert (told(run)["tickwork.run.outcome"], run.status.status_code) == ("retry", StatusCode.UNSET)


async def test_a_cancelled_run_is_no_error(make: Make, traces: Traces) -> None:
    app = traces.used_by(make("memory://"))
    began = asyncio.Event()

    @app.task(timeout=0)
    async def wait() -> None:
        began.set()
        await asyncio.Event().wait()

    async with app:
        handle = await wait.submit()
        await began.wait()
        await app.cancel(handle.id, force=True)
        await eventually(lambda: traces.named("run wait"))
    run = traces.one("run wait")
    assert (told(run)["tickwork.run.outcome"], run.status.status_code) == ("stopped", StatusCode.UNSET)
    assert not recorded(run)


async def test_a_payload_that_does_not_fit_is_not_shown(make: Make, traces: Traces) -> None:
    app = traces.used_by(make("memory://"))
    app.task(max_retry=0)(wants)
    async with app:
        store = await app._open()
        spec = app._access.spec("wants", {"number": 7}, {})
        await store.tasks.submit([replace(spec, payload=b'{"number": "a secret"}')])
        await eventually(lambda: traces.named("run wants"))
    run = traces.one("run wants")
    assert run.status.description == "the payload does not fit the handler"
    assert not recorded(run)
    assert "secret" not in run.to_json()


async def test_an_error_in_a_child_process_is_recorded_as_it_was_there() -> None:
    traces = child_traces.TRACES
    async with running(child_traces.app) as app:
        with pytest.raises(TaskFailed):
            await (await app.submit("fail")).result(LONG)
        await eventually(lambda: traces.named("run fail"))
    span = traces.one("run fail")
    assert (told(span)["error.type"], span.status.description) == ("KeyError", "KeyError: 'no such template'")
    (error,) = recorded(span)
    assert error["exception.type"] == "KeyError"
    assert "in fail" in error["exception.stacktrace"]


# --- calls to other services


async def test_a_call_of_the_http_executor_names_the_run(make: Make, traces: Traces) -> None:
    async with serving(always(answer(b"{}"))) as server:
        endpoints = {
            "plain": {"url": server.url, "types": ["ship"]},
            "own": {"url": server.url, "types": ["weigh"], "headers": {"Traceparent": "mine"}},
        }
        app = traces.used_by(make("memory://", allow_addresses=[server.url], endpoints=endpoints))
        async with app:
            await (await app.submit("ship", {})).result(LONG)
            await (await app.submit("weigh", {})).result(LONG)
            await eventually(lambda: traces.named("run ship"))
    ship, weigh = server.requests
    assert ship.header("traceparent") == traceparent(traces.one("run ship"))
    assert weigh.header("traceparent") == "mine"


async def test_a_call_of_the_grpc_executor_names_the_run(make: Make, traces: Traces) -> None:
    service = grpc_service.Service()
    async with grpc_service.serving(service) as port:
        address = f"http://127.0.0.1:{port}"
        targets = {"stock": {"address": address, "types": ["ship"]}}
        app = traces.used_by(make("memory://", allow_addresses=[address], grpc_targets=targets))
        async with app:
            await (await app.submit("ship", {})).result(LONG)
            await eventually(lambda: traces.named("run ship"))
    assert service.metadata[0]["traceparent"] == traceparent(traces.one("run ship"))


async def test_a_remote_worker_is_told_of_the_run(make: Make, traces: Traces, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(range(32)))
    app = traces.used_by(make("memory://", secret_file=str(tmp_path / "secret")))
    worker = RemoteWorkerApp("w1", secret=WorkerKeys(app.config).secret("w1"))

    @worker.task("echo")
    async def echo(payload: Any, call: RemoteCall) -> dict[str, str]:
        return call.trace

    async with served(worker) as address:
        calling(app, address)
        async with app:
            trace = await (await app.submit("echo")).result(LONG)
            await eventually(lambda: traces.named("run echo"))
    assert trace == {"traceparent": traceparent(traces.one("run echo"))}


def test_headers_that_cannot_be_sent_are_left_out() -> None:
    odd = {"Trace": "1", "bad name": "2", "line": "3\r\nx: y", "": "4", "empty": ""}
    with call_headers.added(lambda: odd), call_headers.added(lambda: {"other": "5"}):
        assert call_headers.current() == {"trace": "1", "other": "5"}
        assert call_headers.with_current({"TRACE": "own"}) == {"TRACE": "own", "other": "5"}
    assert call_headers.current() == {}


# --- what it needs


def test_nothing_of_it_is_imported_unless_it_is_used() -> None:
    code = """
import asyncio, sys
from tickwork import Scheduler
app = Scheduler("memory://")
@app.task
async def nothing() -> None: ...
async def main() -> None:
    async with app:
        await (await nothing.submit()).result(60)
asyncio.run(main())
print([name for name in sys.modules if name.partition(".")[0] in ("opentelemetry", "sentry_sdk")])
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)
    assert shown.stdout.strip() == "[]"


def test_a_missing_package_is_named() -> None:
    code = "import sys; sys.modules['opentelemetry'] = None; import tickwork.contrib.opentelemetry"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert 'pip install "tickwork[otel]"' in shown.stderr


async def test_without_an_sdk_nothing_is_carried(make: Make) -> None:
    app = make("memory://")
    app.use(OpenTelemetry(trace.NoOpTracerProvider()))
    app.task(nothing)
    async with app:
        handle = await app.submit("nothing")
        await handle.result(LONG)
        assert (await handle.info()).context == {}
