"""A user's file for type checkers. Lines marked `type: ignore` are mistakes that they have to find, the rest is right.

`tests/unit/test_typing.py` takes the marks away and compares. `if TYPE_CHECKING` keeps all of it from running.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, assert_type

from tickwork import (
    Config,
    Depends,
    Event,
    FixedDelay,
    Handle,
    Handler,
    Lock,
    Misfire,
    Overlap,
    Page,
    PeriodicTask,
    Priority,
    QueueStats,
    RetryPolicy,
    ScheduleInfo,
    Scheduler,
    SchedulerStatus,
    SyncHandle,
    Task,
    TaskContext,
    TaskFunction,
    TaskInfo,
    TaskResult,
)

P = ParamSpec("P")
R = TypeVar("R")


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
async def four_and_context(a: int, b: int, c: int, d: int, ctx: TaskContext) -> float:
    return a / b


@app.task
async def nine_and_context(
    a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int, i: int, context: TaskContext
) -> float:
    return a / b


@app.task
async def context_between(a: int, ctx: TaskContext, b: str = "x") -> str:
    return b * a


@app.task
async def optional_last(a: int, b: str = "x", ctx: TaskContext | None = None) -> str:
    return b * a


@app.task
async def optional_first(ctx: TaskContext | None = None, a: int = 1) -> int:
    return a


@app.task
async def context_by_name(a: int, b: str = "x", *, ctx: TaskContext) -> str:
    return b * a


@app.task(queue="slow")
def blocking_by_name(a: int, b: str = "x", *, ctx: TaskContext | None = None) -> str:
    return b * a


def of_context(ctx: TaskContext) -> int:
    return ctx.attempt


async def awaited() -> str:
    return ""


async def generated() -> AsyncIterator[bytes]:
    yield b""


@asynccontextmanager
async def entered(ctx: TaskContext) -> AsyncGenerator[float, None]:
    yield 1.0


@app.task
async def with_dependencies(
    a: int,
    b: int = Depends(of_context),
    c: str = Depends(awaited),
    d: bytes = Depends(generated),
    e: float = Depends(entered),
) -> int:
    return a


@app.task
async def takes_anything(data: Any) -> Any:
    return data


@app.task
async def takes_a_number_and_anything(number: int, data: Any) -> int:
    return number


@app.task
async def takes_a_table(table: dict[str, Any], ctx: TaskContext) -> int:
    return len(table)


@app.periodic("@daily", overlap=Overlap.QUEUE, misfire=Misfire.SKIP, queue="slow")
async def nightly(ctx: TaskContext, days: int = 1) -> int:
    return days


@app.periodic("@hourly", payload={"a": 1}, id="hourly", misfire_grace=timedelta(minutes=5))
@app.task(queue="reports")
def report(a: int) -> list[str]:
    return ["x"] * a


class Cleanup(PeriodicTask):
    name = "cleanup"
    spec = "@daily"
    overlap = Overlap.ALLOW
    misfire = "skip"

    def run(self, ctx: TaskContext) -> None: ...


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
        assert_type(await (await with_dependencies.submit(1)).result(), int)
        assert_type(await with_dependencies(1, 2, c="a test gives what it likes"), int)
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
            assert_type(event.seq, int)
        app.sync.submit("send_email", {"to": "a"}, delay=5)
        await send_email.submit(payload=Email("a@b.c"))
        assert_type(await four_and_context.submit(1, 2, 3, 4), Handle[float])
        assert_type(await four_and_context.submit(1, 2, c=3, d=4), Handle[float])
        assert_type(await nine_and_context.submit(1, 2, 3, 4, 5, 6, 7, 8, 9), Handle[float])
        assert_type(await context_between.submit(1), Handle[str])
        assert_type(await context_between.submit(1, "y"), Handle[str])
        assert_type(await context_between.submit(1, b="y"), Handle[str])
        assert_type(await optional_last.submit(1), Handle[str])
        assert_type(await optional_last.submit(1, b="y"), Handle[str])
        assert_type(await optional_last.submit(b="y", a=1), Handle[str])
        assert_type(await optional_first.submit(), Handle[int])
        assert_type(await optional_first.submit(a=2), Handle[int])
        assert_type(await context_by_name.submit(1), Handle[str])
        assert_type(await context_by_name.submit(1, b="y"), Handle[str])
        assert_type(await blocking_by_name.submit(1, b="y"), Handle[str])
        await takes_anything.submit([1, 2])
        await takes_anything.submit(data={"a": 1})
        await takes_a_number_and_anything.submit(1, [2])
        await takes_a_number_and_anything.submit(1, data=None)
        await takes_a_table.submit({"a": 1})
        await takes_a_table.submit(table={"a": 1})
        assert_type(await nightly.submit(days=3), Handle[int])
        assert_type(await report.submit(3), Handle[list[str]])
        app.periodic("@weekly", payload={"a": 2}, id="weekly")(report)
        app.register(Cleanup())

    async def right_calls() -> None:
        assert_type(await send_email.call(Email("a")), str)
        assert_type(await send_email.call(Email("a"), timeout=5), str)
        assert_type(await send_email.call(payload=Email("a"), timeout=timedelta(seconds=5)), str)
        assert_type(await context_first.call(1, b="x"), int)
        assert_type(await context_first.call(1, b="x", timeout=None), int)
        assert_type(await context_first.options(delay=5).call(1), int)
        assert_type(await four_and_context.call(1, 2, 3, 4, timeout=5), float)
        assert_type(await context_by_name.call(1, b="y"), str)
        assert_type(await nothing.call(timeout=5), None)
        assert_type(await app.call(send_email, Email("a"), timeout=5, priority=10), str)
        assert_type(await app.call("send_email", {"to": "a"}), Any)
        assert_type(context_first.sync.call(1, b="x"), int)
        assert_type(context_first.sync.call(1, timeout=5), int)
        assert_type(app.sync.call(resize, {"path": "p", "width": 3}, timeout=5), bytes)

    async def right_direct_calls(ctx: TaskContext) -> None:
        assert_type(await send_email(Email("a"), ctx), str)
        assert_type(await send_email(payload=Email("a"), ctx=ctx), str)
        assert_type(await context_first(ctx, 1, b="x"), int)
        assert_type(await context_first(ctx=ctx, a=1), int)
        assert_type(await no_context(1, b="x"), list[int])
        assert_type(resize("p", width=3), bytes)
        assert_type(await context_between(1, ctx, b="y"), str)
        assert_type(await optional_last(1), str)
        assert_type(await optional_last(1, ctx=ctx), str)
        assert_type(await optional_first(), int)
        assert_type(await optional_first(a=2), int)
        assert_type(await context_by_name(1, ctx=ctx), str)
        assert_type(blocking_by_name(1, b="y"), str)
        assert_type(await nightly(ctx, days=3), int)
        assert_type(report(3), list[str])
        assert_type(await send_email.options(delay=5)(Email("a"), ctx), str)

    async def submit_later(task: TaskFunction[P, R], *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        return await task.options(delay=60).submit(*args, **kwargs)

    async def right_by_function() -> None:
        assert_type(await submit_later(context_first, 1, b="x"), Handle[int])
        assert_type(await submit_later(send_email, Email("a")), Handle[str])
        assert_type(await app.submit(send_email, Email("a")), Handle[str])
        assert_type(await app.submit(context_first.options(priority=10), {"a": 1}), Handle[int])
        assert_type(await app.submit_many(resize, [{"path": "p", "width": 3}]), list[Handle[bytes]])
        assert_type(await app.submit("send_email"), Handle[Any])
        assert_type(await app.submit_many("send_email", []), list[Handle[Any]])
        assert_type(await resize.submit_many([{"path": "p", "width": 3}]), list[Handle[bytes]])
        text: str = await (await app.submit("send_email", {"to": "a"})).result()
        print(text)
        any_task: list[TaskFunction[..., Any]] = [send_email, context_first, resize, context_by_name, nightly]
        print(any_task)

    def right_blocking_code() -> None:
        handle = context_first.sync.submit(1, b="x")
        assert_type(handle, SyncHandle[int])
        assert_type(handle.result(timeout=5), int)
        assert_type(handle.info(), TaskInfo)
        assert_type(send_email.sync.submit(payload=Email("a")).result(), str)
        assert_type(context_first.sync.options(delay=60).submit(1).result(), int)
        assert_type(resize.sync.submit_many([{"path": "p", "width": 3}]), list[SyncHandle[bytes]])
        assert_type(app.sync.submit(resize, {"path": "p", "width": 3}).result(), bytes)
        assert_type(app.sync.submit("send_email", {"to": "a"}, delay=5), SyncHandle[Any])
        assert_type(app.sync.submit_task(Task(type="send_email")), SyncHandle[Any])
        assert_type(app.sync.get_task("id"), TaskInfo)
        assert_type(app.sync.list_tasks("ready", limit=5), Page[TaskInfo])
        assert_type(app.sync.queue_stats("default"), QueueStats)
        assert_type(app.sync.status(), SchedulerStatus)
        assert_type(app.sync.retry("id", cascade=True), list[str])
        assert_type(app.sync.dlq.retry_all(), int)
        assert_type(app.sync.dlq.list(limit=3), Page[TaskInfo])
        assert_type(app.sync.schedules.put("s", "nothing", cron="@daily", overlap=Overlap.QUEUE), ScheduleInfo)
        assert_type(app.sync.queues.resume("default"), bool)
        assert_type(next(app.sync.events.subscribe(kinds=["task.died"])), Event)

    def right_options() -> None:
        Scheduler("memory://", concurrency=5, queues=["a", "b"], lease_ttl=timedelta(minutes=1), renew_interval=10)
        Scheduler(timeout=2.5, retry=FixedDelay(5), labels={"zone": "eu"}, durability="disk", serializer="msgpack")
        Scheduler(worker_concurrency=5, redis_addr="localhost:6379", max_retries=3, heartbeat_timeout=30)
        Scheduler(config=Config(timeout=timedelta(seconds=5), retention=3600, queues=("a",)))
        Scheduler(config={"worker": {"concurrency": "5"}})
        Scheduler(None, namespace="x", config="tickwork.yaml", store_timeout=None, log_level="INFO")
        app.configure(store="memory://", concurrency=3, shutdown_timeout=timedelta(seconds=3))
        assert_type(app.config.timeout, float)

    async def right_locks() -> None:
        async with app.lock("report", ttl=timedelta(minutes=1)) as lock:
            assert_type(lock, Lock)
            assert_type(lock.fence, int)
        assert_type(await app.lock("report").acquire(timeout=0), bool)
        with app.sync.lock("report") as blocking:
            assert_type(blocking.held, bool)

    async def wrong() -> None:
        await send_email.submit("a@b.c")  # type: ignore[arg-type]
        await send_email.submit(Email("a"), Email("b"))  # type: ignore[arg-type]
        await context_first.submit()  # type: ignore[call-arg]
        await context_first.submit(1, ctx=None)  # type: ignore[call-arg]
        await four_and_context.submit(1, 2, 3, "4")  # type: ignore[arg-type]
        await four_and_context.submit(1, 2, 3, 4, 5)  # type: ignore[arg-type]
        await optional_last.submit("1")  # type: ignore[arg-type]
        await optional_first.submit(b=1)  # type: ignore[call-arg]
        await nightly.submit(days="3")  # type: ignore[arg-type]
        await report.submit()  # type: ignore[call-arg]
        await send_email.options(delay=5).submit(3)  # type: ignore[arg-type]
        await send_email.options(dely=5).submit(Email("a"))  # type: ignore[call-arg]
        await send_email.options(delay="5m").submit(Email("a"))  # type: ignore[arg-type]
        await context_first.submit("one")  # type: ignore[arg-type]
        await with_dependencies.submit("one")  # type: ignore[arg-type]
        len(Depends(of_context))  # type: ignore[arg-type]
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
        app.periodic("@daily", overlap="maybe")  # type: ignore[arg-type]

    async def wrong_calls() -> None:
        await context_first.call()  # type: ignore[call-overload]
        await context_first.call("one")  # type: ignore[call-overload]
        await context_first.call(1, c=2)  # type: ignore[call-overload]
        await four_and_context.call(1, 2, 3, "4", timeout=5)  # type: ignore[arg-type]
        await send_email.call(Email("a"), timeout="5")  # type: ignore[arg-type]
        text: str = await context_first.call(1, timeout=5)  # type: ignore[assignment]
        text = app.sync.call(context_first, 1)  # type: ignore[assignment]
        print(text)
        await app.call("send_email", {}, timeout="soon")  # type: ignore[arg-type]
        await app.call("send_email", {}, cron="@daily")  # type: ignore[call-arg]
        context_first.sync.call("one")  # type: ignore[call-overload]

    async def wrong_direct_calls(ctx: TaskContext) -> None:
        await no_context("a")  # type: ignore[arg-type]
        await no_context()  # type: ignore[call-arg]
        await context_first(1)  # type: ignore[call-overload]
        await context_first(ctx, "a")  # type: ignore[call-overload]
        resize("p")  # type: ignore[call-arg]
        report("3")  # type: ignore[arg-type]
        number: int = await send_email(Email("a"), ctx)  # type: ignore[assignment]
        number = resize("p", 3)  # type: ignore[assignment]
        number = await (await app.submit(send_email, Email("a"))).result()  # type: ignore[assignment]
        print(number)
        await submit_later(context_first, "a")  # type: ignore[arg-type]

    def wrong_blocking_code() -> None:
        context_first.sync.submit("a")  # type: ignore[arg-type]
        context_first.sync.submit(1, c=2)  # type: ignore[call-arg]
        number: str = context_first.sync.submit(1).result()  # type: ignore[assignment]
        number = app.sync.submit(context_first, 1).result()  # type: ignore[assignment]
        print(number)
        app.sync.get_task(5)  # type: ignore[arg-type]
        app.sync.get_tsk("5")  # type: ignore[attr-defined]
        app.sync.list_tasks(limt=5)  # type: ignore[call-arg]
        app.sync.dlq.retry_al()  # type: ignore[attr-defined]
        app.sync.schedules.put("s", "nothing", overlap="maybe")  # type: ignore[arg-type]
        app.sync.events.subscribe(kind=["task.died"])  # type: ignore[call-arg]
        app.sync.limits.set("type:mail", rate=[])  # type: ignore[arg-type]
        app.sync.limits.set("type:mail", per="tag")  # type: ignore[arg-type]
        app.sync.breakers.open("type:mail", until="noon")  # type: ignore[arg-type]
        number = app.sync.breakers.get("type:mail").failures  # type: ignore[assignment]
        app.sync.switches.off(5)  # type: ignore[arg-type]
        number = app.sync.switches.on("type:mail")  # type: ignore[assignment]

    def wrong_options() -> None:
        Scheduler("memory://", concurency=5)  # type: ignore[call-arg]
        Scheduler("memory://", concurrency="5")  # type: ignore[arg-type]
        Scheduler("memory://", lease_ttl="30s")  # type: ignore[arg-type]
        Scheduler("memory://", durability="dsik")  # type: ignore[arg-type]
        Scheduler("memory://", retry=5)  # type: ignore[arg-type]
        Scheduler("memory://", queues=5)  # type: ignore[arg-type]
        app.configure(concurency=5)  # type: ignore[call-arg]
        app.configure(concurrency="5")  # type: ignore[arg-type]
        Config(concurency=5)  # type: ignore[call-arg]
        Config(timeout="30s")  # type: ignore[arg-type]
