"""A user's file for the type checker. Lines marked `type: ignore` are mistakes that it has to find, the rest is right.

`tests/unit/test_typing.py` takes the marks away and compares. `if TYPE_CHECKING` keeps all of it from running.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, assert_type

from tickwork import (
    FixedDelay,
    Handle,
    Handler,
    Lock,
    Page,
    Priority,
    QueueStats,
    RetryPolicy,
    ScheduleInfo,
    Scheduler,
    SchedulerStatus,
    Task,
    TaskContext,
    TaskInfo,
    TaskResult,
)


@dataclass
class Email:
    to: str
    copies: int = 1


app = Scheduler("memory://", concurrency=5)


@app.task(max_retry=5, timeout=30)
async def send_email(payload: Email, ctx: TaskContext) -> str:
    ctx.progress(0.5, "half")
    ctx.logger.info("to %s", payload.to)
    return payload.to


@app.task
async def context_first(ctx: TaskContext, a: int, b: str = "") -> int:
    return a


@app.task
async def no_context(a: int, *, b: str = "x") -> list[int]:
    return [a]


@app.task("named", run_in="process", priority=Priority.HIGH)
def resize(path: str, width: int) -> bytes:
    return b""


@app.task
def with_context(path: str, ctx: TaskContext) -> None: ...


@app.task
async def nothing() -> None: ...


@app.task
async def only_context(ctx: TaskContext) -> datetime:
    return datetime.now(UTC)


class Greeter(Handler[Email]):
    async def handle(self, ctx: TaskContext, payload: Email) -> str:
        return payload.to


class NotAHandler:
    def treat(self) -> None: ...


if TYPE_CHECKING:

    async def right() -> None:
        handle = await send_email.submit(Email("a@b.c"))
        assert_type(handle, Handle[str])
        assert_type(await handle.result(timeout=5), str)
        assert_type(handle.id, str)
        assert_type(await handle.info(), TaskInfo)
        assert_type((await handle.info()).result, TaskResult | None)
        assert_type(await (await context_first.submit(1, b="x")).result(), int)
        assert_type(await (await context_first.submit(1)).result(), int)
        assert_type(await (await no_context.submit(1, b="y")).result(), list[int])
        assert_type(await (await resize.submit("p", width=3)).result(), bytes)
        await with_context.submit("p")
        await nothing.submit()
        assert_type(await (await only_context.submit()).result(), datetime)
        later = send_email.options(priority=Priority.HIGH, delay=60, tags={"a": "b"}, retry=FixedDelay(1))
        assert_type(await later.submit(Email("x")), Handle[str])
        await send_email.options(delay=timedelta(minutes=1), schedule_at=None).submit(Email("x"))
        await app.submit("send_email", {"to": "a"}, priority=10, dedup_key="k", dedup_ttl=3600, depends_on=[handle])
        await app.submit(send_email, Email("a"))
        await app.submit_many("send_email", [Email("a")], tags={"env": "prod"})
        await app.submit_task(Task(type="send_email", payload=Email("a"), delay=5))
        app.registry.register("greet", Greeter())
        app.registry.register("other", resize)
        assert_type(await app.list_tasks("ready", limit=10), Page[TaskInfo])
        assert_type(await app.queue_stats(), QueueStats)
        assert_type(await app.status(), SchedulerStatus)
        assert_type(await app.schedules.put("s", "nothing", cron="@daily", overlap="queue"), ScheduleInfo)
        async for event in app.events.subscribe(kinds=["task.died"]):
            assert_type(event.kind, str)
        app.sync.submit("send_email", {"to": "a"}, delay=5)
        async with app.lock("report", ttl=timedelta(minutes=1)) as lock:
            assert_type(lock, Lock)
            assert_type(lock.fence, int)
        assert_type(await app.lock("report").acquire(timeout=0), bool)
        with app.sync.lock("report") as blocking:
            assert_type(blocking.held, bool)

    async def wrong() -> None:
        await send_email.submit("a@b.c")  # type: ignore[arg-type]
        await send_email.submit()  # type: ignore[call-arg]
        await send_email.submit(Email("a"), Email("b"))  # type: ignore[call-arg]
        await send_email.submit(Email("a"), ctx=None)  # type: ignore[call-arg]
        await send_email.options(delay=5).submit(3)  # type: ignore[arg-type]
        await send_email.options(dely=5).submit(Email("a"))  # type: ignore[call-arg]
        await send_email.options(delay="5m").submit(Email("a"))  # type: ignore[arg-type]
        await context_first.submit("one")  # type: ignore[arg-type]
        await context_first.submit(1, c=2)  # type: ignore[call-arg]
        await context_first.submit(1, 2)  # type: ignore[arg-type]
        await no_context.submit(1, "positional")  # type: ignore[call-arg]
        await no_context.submit("a")  # type: ignore[arg-type]
        await resize.submit("p")  # type: ignore[call-arg]
        await resize.submit("p", "wide")  # type: ignore[arg-type]
        await with_context.submit(5)  # type: ignore[arg-type]
        await nothing.submit(1)  # type: ignore[call-arg]
        await only_context.submit(1)  # type: ignore[call-arg]
        number: int = await (await send_email.submit(Email("a"))).result()  # type: ignore[assignment]
        print(number)
        await app.submit("send_email", {}, priorty=5)  # type: ignore[call-arg]
        await app.submit("send_email", {}, priority="high")  # type: ignore[arg-type]
        await app.submit("send_email", {}, schedule_at="tomorrow")  # type: ignore[arg-type]
        await app.submit(3)  # type: ignore[arg-type]
        app.registry.register("greet", NotAHandler())  # type: ignore[arg-type]
        app.registry.register("greet", Greeter(), run_in="fiber")  # type: ignore[arg-type]
        await app.schedules.put("s", "nothing", cron="@daily", overlap="maybe")  # type: ignore[arg-type]
        await app.schedules.put("s", "nothing", cron=5)  # type: ignore[arg-type]
        RetryPolicy(max_retry=3)  # type: ignore[call-arg]
        app.task(max_rety=5)  # type: ignore[call-overload]
        app.task(run_in="fiber")  # type: ignore[call-overload]
        print((await app.queue_stats()).ready_count)  # type: ignore[attr-defined]
        app.sync.submit("send_email", {}, delay=[])  # type: ignore[arg-type]
        app.lock("report", ttl="5m")  # type: ignore[arg-type]
