"""Handlers that run in child processes and say in which trace they are."""

from __future__ import annotations

from opentelemetry import propagate

from tests.support.traces import Traces
from tickwork import Scheduler

TRACES = Traces()
app = TRACES.used_by(Scheduler("memory://"))


def _traceparent() -> str:
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier["traceparent"]


@app.task(run_in="process")
def inside() -> str:
    return _traceparent()


@app.task(run_in="process")
async def inside_async() -> str:
    return _traceparent()


@app.task(run_in="process", max_retry=0)
def fail() -> None:
    raise KeyError("no such template")
