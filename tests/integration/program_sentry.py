"""A program that reports to Sentry, by the SDK's own transport: `python -m tests.integration.program_sentry`, with
SENTRY_DSN, and how to report in CAPTURE and PAYLOAD."""

from __future__ import annotations

import asyncio
import json
import os

import sentry_sdk
from msgspec.structs import replace

from tickwork import Abort, FixedDelay, Retry, Scheduler, Snooze
from tickwork.contrib.sentry import report_to_sentry
from tickwork.testing import wait_for

sentry_sdk.init(os.environ["SENTRY_DSN"], traces_sample_rate=1.0, release="shop@1")
app = Scheduler("memory://", retry=FixedDelay(0.01), max_retry=0, version_grace=0)
report_to_sentry(app, capture=os.environ["CAPTURE"], payload=bool(os.environ["PAYLOAD"]))  # type: ignore[arg-type]


@app.task(max_retry=2)
async def charge(order: str) -> None:
    sentry_sdk.set_tag("shop", "eu")
    sentry_sdk.add_breadcrumb(message=f"asked for {len(order)} letters")
    raise ConnectionError("no answer")


@app.task(max_retry=5, abort_on=(ValueError,))
def ship(order: str) -> None:  # in a thread
    sentry_sdk.set_tag("thread", "yes")
    raise ValueError("no such address")


@app.task(timeout=0.05)
async def slow(order: str) -> None:
    await asyncio.sleep(600)


@app.task(run_in="process")
def render(order: str) -> None:
    raise RuntimeError("no such template")


@app.task
async def told_itself(order: str) -> None:
    try:
        raise KeyError("told by the handler")
    except KeyError as error:
        sentry_sdk.capture_exception(error)
        raise


@app.task(max_retry=1)
async def asks(order: str) -> None:
    raise Retry(0.01)


@app.task
async def later(order: str) -> None:
    raise Snooze(3600)


@app.task
async def good(order: str) -> None:
    pass


@app.task
async def wants_number(order: int) -> None:
    pass


@app.task
async def refuse(order: str) -> None:
    raise Abort("refused")


async def main() -> None:
    async with app:
        ids = {}
        with sentry_sdk.start_transaction(name="POST /orders", op="http.server") as request:
            for task in (charge, ship, slow, render, told_itself, later, good, refuse):
                ids[task.type] = (await task.submit("a confidential text")).id
        ids["asks"] = (await asks.submit("a confidential text")).id
        store, spec = await app._open(), app._access.spec("wants_number", {"order": 1}, {})
        await store.tasks.submit([replace(spec, payload=b'{"order": "a confidential text"}')])
        ids["wants_number"] = spec.id
        await app.schedules.put("hourly", "good", "a confidential text", cron="0 * * * *")
        for kind, task_id in ids.items():
            if kind != "later":
                await wait_for(app, task_id, "success" if kind == "good" else "dead", 60)
    print(json.dumps({"ids": ids, "trace": request.trace_id}))


if __name__ == "__main__":
    asyncio.run(main())
