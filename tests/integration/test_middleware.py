"""Middleware: code of a program around each submit and each run."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.integration import child_handlers
from tests.integration.apps import Make, eventually
from tickwork import (
    Abort,
    ConfigError,
    DuplicateTask,
    ExecutorError,
    Grant,
    Handle,
    Middleware,
    PayloadError,
    RateLimited,
    Receipt,
    Retry,
    RunCall,
    RunNext,
    Scheduler,
    SubmitCall,
    SubmitNext,
    Task,
    TaskContext,
    TaskFailed,
    TaskResult,
    TickworkError,
)
from tickwork.client.middleware import send_plainly
from tickwork.clock import ManualClock
from tickwork.handlers.registry import RunIn
from tickwork.testing import drain, submitted, wait_for

tenant = contextvars.ContextVar("tenant", default="nobody")


class Around(Middleware):
    """Calls a function with each submit before it goes on, and writes down what it sees."""

    def __init__(self, change: Callable[[SubmitCall], Any] = lambda call: None) -> None:
        self.change = change
        self.calls: list[list[str]] = []
        self.receipts: list[Receipt] = []

    async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
        self.calls.append([task.id for task in call.tasks])
        self.change(call)
        receipts = await next(call)
        self.receipts += receipts
        return receipts


def with_task(make: Make, *middleware: Middleware, store: str = "memory://", **options: Any) -> Scheduler:
    app = make(store, **options)

    @app.task
    async def work(ctx: TaskContext, n: int = 0) -> dict[str, Any]:
        return {"n": n, "queue": ctx.queue, "tags": ctx.tags, "context": ctx.context}

    for each in middleware:
        app.use(each)
    return app


# --- submits


async def test_a_middleware_reads_and_changes_what_is_submitted(make: Make, url: str) -> None:
    seen: list[Any] = []

    def change(call: SubmitCall) -> None:
        (task,) = call.tasks
        seen.append((task.type, task.payload, task.queue, task.tags, task.dedup_key, task.schedule_id))
        task.context["tenant"] = "acme"
        task.tags = {**task.tags, "by": "middleware"}
        task.key, task.queue, task.priority = "k1", "other", 10
        task.max_retry, task.timeout = 7, 5.0

    app = with_task(make, Around(change), store=url, queues=("default", "other"))
    async with app:
        handle = await app.submit("work", 3, tags={"a": "b"}, dedup_key="d")
        result = await handle.result(10)
    assert seen == [("work", {"n": 3}, "default", {"a": "b"}, "d", None)]
    assert result == {"n": 3, "queue": "other", "tags": {"a": "b", "by": "middleware"}, "context": {"tenant": "acme"}}
    info = await app.get_task(handle.id)
    assert (info.priority, info.key, info.max_retry, info.timeout) == (10, "k1", 7, 5.0)


async def test_what_one_task_is_given_does_not_reach_the_next(make: Make) -> None:
    """Specs of one handler share what they have in common."""
    app = make("memory://")

    @app.task(tags={"of": "type"}, context={"deep": {"list": [1]}})
    async def work() -> None: ...

    def change(call: SubmitCall) -> None:
        for task in call.tasks:
            task.tags[task.id] = "x"
            task.context["deep"]["list"].append(2)

    app.use(Around(change))
    first, second = await work.submit(), await work.submit()
    many = await work.submit_many([{}, {}])
    for handle in (first, second, *many):
        info = await handle.info()
        assert (info.tags, info.context) == ({"of": "type", handle.id: "x"}, {"deep": {"list": [1, 2]}})


async def test_the_first_used_is_the_outermost(make: Make) -> None:
    order: list[str] = []

    class Named(Middleware):
        def __init__(self, name: str) -> None:
            self.name = name

        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            order.append(f"{self.name} in")
            receipts = await next(call)
            order.append(f"{self.name} out")
            return receipts

    app = with_task(make, Named("first"), Named("second"))
    await app.submit("work")
    assert order == ["first in", "second in", "second out", "first out"]


async def test_every_way_of_submitting_goes_through_it(make: Make, url: str) -> None:
    around = Around(lambda call: [task.tags.update(seen="yes") for task in call.tasks])
    app = with_task(make, around, store=url)
    function = app.task("typed")(_double)
    await app.submit("work")
    await function.submit(1)
    await app.submit_many("work", [1, 2])
    await app.submit_task(Task(type="work"))
    await app.submit_tasks([Task(type="work"), Task(type="typed", payload=1)])
    await asyncio.to_thread(lambda: app.sync.submit("work"))
    await asyncio.to_thread(lambda: function.sync.submit_many([1, 2, 3]))
    await app.schedules.put("by-hand", "work")
    await app.schedules.trigger("by-hand")
    assert [len(call) for call in around.calls] == [1, 1, 2, 1, 2, 1, 3, 1]
    tasks = await submitted(app)
    assert len(tasks) == 12
    assert all(task.tags == {"seen": "yes"} for task in tasks)
    assert {receipt.verdict for receipt in around.receipts} == {"created"}


async def _double(n: int) -> int:
    return 2 * n


async def test_a_long_list_is_one_call_a_thousand(make: Make) -> None:
    around = Around()
    app = with_task(make, around)
    await app.submit_many("work", range(2100))
    assert [len(call) for call in around.calls] == [1000, 1000, 100]


async def test_a_context_variable_is_seen_by_the_middleware_of_every_submit(make: Make) -> None:
    def change(call: SubmitCall) -> None:
        for task in call.tasks:
            task.context["tenant"] = tenant.get()

    app = with_task(make, Around(change))

    def in_a_thread() -> str:
        tenant.set("flask")
        return app.sync.submit("work").id

    tenant.set("async")
    ids = [(await app.submit("work")).id, await asyncio.to_thread(in_a_thread)]
    assert [(await app.get_task(each)).context for each in ids] == [{"tenant": "async"}, {"tenant": "flask"}]


async def test_what_it_raises_refuses_the_submit(make: Make, url: str) -> None:
    def refuse(call: SubmitCall) -> None:
        if any(task.payload == {"n": 13} for task in call.tasks):
            raise RateLimited(5)

    app = with_task(make, Around(refuse), store=url)
    with pytest.raises(RateLimited):
        await app.submit("work", 13)
    with pytest.raises(RateLimited):
        await app.submit_many("work", [1, 13])
    with pytest.raises(RateLimited) as refused:
        await app.submit_many("work", range(13, 1014)[::-1])  # 13 is in the second thousand
    assert len(refused.value.submitted) == 1000
    answers = await app.submit_tasks([Task(type="work", payload=1), Task(type="work", payload=13)])
    assert [type(answer) for answer in answers] == [RateLimited, RateLimited]
    assert len(await submitted(app)) == 1000


async def test_an_error_that_is_not_ours_reaches_the_caller_as_it_is(make: Make) -> None:
    def fail(call: SubmitCall) -> None:
        raise LookupError("a defect")

    app = with_task(make, Around(fail))
    for submit in (
        lambda: app.submit("work"),
        lambda: app.submit_many("work", [1]),
        lambda: app.submit_tasks([Task(type="work")]),
    ):
        with pytest.raises(LookupError, match="a defect"):
            await submit()
    assert await submitted(app) == []


async def test_what_it_changes_is_checked(make: Make) -> None:
    wrong: dict[str, Any] = {}

    def change(call: SubmitCall) -> None:
        for name, value in wrong.items():
            setattr(call.tasks[0], name, value)

    app = with_task(make, Around(change), payload_limit=1000)
    for name, value, text in (
        ("priority", 11, "priority must be a whole number from 1"),
        ("queue", None, "queue must be 1 to 128 letters"),
        ("tags", {"a": 1}, "tag 'a' must be a text"),
        ("context", {"a": object()}, "context must be plain values"),
        ("key", "", "key must be a text of 1 to 512"),
        ("timeout", -1, "timeout must not be negative"),
    ):
        wrong = {name: value}
        with pytest.raises(ConfigError, match=text):
            await app.submit("work")
    wrong = {"context": {"a": "x" * 1000}}
    with pytest.raises(PayloadError, match="its context, tags, key and dependencies"):
        await app.submit("work", 1)
    wrong = {"id": "another"}
    with pytest.raises(AttributeError):
        await app.submit("work")
    wrong = {"key": None, "retry": None, "timeout": None, "max_retry": None}
    await app.submit("work")


async def test_it_sees_a_refusal_of_the_store_and_may_answer_itself(make: Make) -> None:
    around = Around()

    class Remembering(Middleware):
        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            if call.tasks[0].payload == {"n": 1}:
                return [Receipt(call.tasks[0].id, "duplicate", "an-earlier-one")]
            return await next(call)

    app = with_task(make, around, Remembering())
    await app.submit("work", id="same")
    handle = await app.submit("work", id="same", if_exists="return")
    assert [receipt.verdict for receipt in around.receipts] == ["created", "exists"]
    assert handle.id == "same"
    with pytest.raises(DuplicateTask) as refused:
        await app.submit("work", 1, dedup_key="d")
    assert refused.value.existing_id == "an-earlier-one"


@pytest.mark.parametrize("answer", [None, [], ["id"], [Receipt("a", "created")] * 2])
async def test_a_middleware_that_does_not_return_receipts_is_named(make: Make, answer: Any) -> None:
    class Forgetful(Middleware):
        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            await next(call)
            return answer  # type: ignore[no-any-return]

    app = with_task(make, Forgetful())
    with pytest.raises(ConfigError, match=r"Forgetful.submit must return a receipt for each task of the call"):
        await app.submit("work")


async def test_only_objects_of_a_middleware_are_used_and_only_before_the_start(make: Make) -> None:
    app = with_task(make)
    for wrong in (Around, object(), None):
        with pytest.raises(ConfigError, match=r"app\.use takes an object of a subclass of tickwork\.Middleware"):
            app.use(wrong)  # type: ignore[arg-type]
    async with app:
        with pytest.raises(TickworkError, match="before a scheduler is started"):
            app.use(Around())
    app.use(Around())


async def test_without_a_middleware_around_submits_their_way_is_the_plain_one(make: Make) -> None:
    app = with_task(make, Middleware())
    assert app._access.send is send_plainly
    app.use(Around())
    assert app._access.send is not send_plainly
    app.configure(concurrency=3)
    assert app._access.send is not send_plainly


# --- ticks of schedules


def ticking(make: Make, clock: ManualClock, *middleware: Middleware, store: str = "memory://") -> Scheduler:
    app = with_task(make, *middleware, store=store, clock=clock)
    app.periodic("0 * * * *", id="hourly", tags={"of": "schedule"})(app.task("tick")(_tick))
    app.periodic("30 * * * *", id="half")(app.task("other")(_tick))
    return app


async def _tick() -> str:
    return "ticked"


async def test_ticks_go_through_it(make: Make, url: str, clock: ManualClock) -> None:
    def change(call: SubmitCall) -> None:
        for task in call.tasks:
            task.tags["fired"] = task.schedule_id or ""

    around = Around(change)
    app = ticking(make, clock, around, store=url)
    async with app:
        clock.advance(3600)
        await drain(app)
    (info,) = await submitted(app, "tick")
    assert (info.tags, info.status) == ({"of": "schedule", "fired": "hourly"}, "success")
    assert [receipt.verdict for receipt in around.receipts] == ["created", "created"]


async def ticks_of(app: Scheduler, schedule: str = "hourly") -> list[tuple[str, str]]:
    """What the log has of a schedule's ticks: how each went, and of missed ones how many."""
    found = [event for event in await app.events.read() if event.id == schedule]
    return [
        (event.kind, event.detail if event.kind == "schedule.missed" else "")
        for event in found
        if event.kind in ("schedule.fired", "schedule.missed", "schedule.skipped")
    ]


async def test_no_tick_that_went_through_it_counts_as_missed(make: Make, url: str, clock: ManualClock) -> None:
    app = ticking(make, clock, Around(), store=url)
    async with app:
        for _ in range(3):
            clock.advance(3600)
            await drain(app)
    assert await ticks_of(app) == [("schedule.fired", "")] * 3


async def test_of_ticks_that_are_caught_up_those_that_it_refuses_count_as_missed(
    make: Make, url: str, clock: ManualClock
) -> None:
    def refuse(call: SubmitCall) -> None:
        if len(call.tasks) > 1:
            raise RateLimited(5)

    app = with_task(make, Around(refuse), store=url, clock=clock)
    app.periodic("0 * * * *", id="hourly", misfire="all", misfire_cap=3, misfire_grace=86_400)(app.task("tick")(_tick))
    async with app:
        clock.advance(3600)
        await drain(app)
    clock.advance(5 * 3600)
    async with app:
        await drain(app)
    assert await ticks_of(app) == [("schedule.fired", ""), ("schedule.missed", "5 ticks")]


async def test_a_refused_tick_is_missed_and_the_next_one_comes(
    make: Make, url: str, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    refusing = [True]

    def refuse(call: SubmitCall) -> None:
        if refusing[0] and call.tasks[0].schedule_id == "hourly":
            raise RateLimited(5)

    app = ticking(make, clock, Around(refuse), store=url)
    async with app:
        clock.advance(3600)
        await drain(app)
        assert await submitted(app, "tick") == []
        assert len(await submitted(app, "other")) == 1
        assert any("schedule hourly: a middleware has refused its run" in line for line in caplog.messages)
        assert await ticks_of(app) == [("schedule.missed", "1 ticks")]
        refusing.clear()
        refusing.append(False)
        clock.advance(3600)
        await drain(app)
        assert len(await submitted(app, "tick")) == 1
        assert await ticks_of(app) == [("schedule.missed", "1 ticks"), ("schedule.fired", "")]


@pytest.mark.parametrize("error", [LookupError("a defect"), ConfigError("a defect"), SystemExit(3),
                                   KeyboardInterrupt(), asyncio.CancelledError()], ids=repr)  # fmt: skip
async def test_a_defect_before_a_tick_leaves_it_to_be_fired_later(
    make: Make, clock: ManualClock, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """Other schedules fire, and the leader goes on with its duty."""
    left = [2]

    def fail(call: SubmitCall) -> None:
        if call.tasks[0].schedule_id == "hourly" and left[0]:
            left[0] -= 1
            raise error

    app = ticking(make, clock, Around(fail))
    async with app:
        clock.advance(3600)
        await eventually(lambda: left == [0], what="the middleware has failed twice")
        await drain(app)
        assert len(await submitted(app, "tick")) == 1
        assert len(await submitted(app, "other")) == 1
        assert app._node is not None
        assert not app._node.supervisor.restarts
    assert "schedule hourly cannot be fired here, trying again" in caplog.messages


@pytest.mark.parametrize("error", [LookupError("a defect"), RateLimited(1), SystemExit(3)], ids=repr)
async def test_a_defect_after_a_tick_does_not_fire_it_twice(
    make: Make, url: str, clock: ManualClock, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    class Late(Middleware):
        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            await next(call)
            raise error

    app = ticking(make, clock, Late(), store=url)
    async with app:
        clock.advance(3600)
        await drain(app)
        assert [len(await submitted(app, kind)) for kind in ("tick", "other")] == [1, 1]
    assert "schedule hourly: a middleware failed after its tick" in caplog.messages
    facts = [event.kind for event in await app.events.read() if event.id == "hourly"]
    assert facts.count("schedule.fired") == 1


async def test_a_tick_that_a_middleware_does_not_pass_on_is_missed(make: Make, clock: ManualClock) -> None:
    calls: list[str] = []

    class Dropping(Middleware):
        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            calls.append(call.tasks[0].type)
            return [Receipt(task.id, "duplicate", "another") for task in call.tasks]

    app = ticking(make, clock, Dropping())
    async with app:
        clock.advance(3600)
        await drain(app)
    assert sorted(calls) == ["other", "tick"]
    assert await submitted(app) == []


async def test_next_makes_a_tick_once(make: Make, clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    class Twice(Middleware):
        async def submit(self, call: SubmitCall, next: SubmitNext) -> list[Receipt]:
            await next(call)
            return await next(call)

    app = ticking(make, clock, Twice())
    async with app:
        clock.advance(3600)
        await drain(app)
        assert len(await submitted(app, "tick")) == 1
    assert "schedule hourly: a middleware failed after its tick" in caplog.messages


async def test_handles_of_a_submit_through_it_are_those_of_the_tasks(make: Make) -> None:
    app = with_task(make, Around())
    async with app:
        answers = await app.submit_tasks([Task(type="work", payload=n) for n in range(3)])
        results = [await answer.result(10) for answer in answers if isinstance(answer, Handle)]
    assert [result["n"] for result in results] == [0, 1, 2]


# --- runs


class Watching(Middleware):
    """Writes down what comes out of each run, and sets a context variable for it."""

    def __init__(self) -> None:
        self.calls: list[RunCall] = []
        self.results: list[Any] = []
        self.errors: list[BaseException] = []

    async def run(self, call: RunCall, next: RunNext) -> Any:
        self.calls.append(call)
        tenant.set(f"tenant of {call.type}")
        try:
            result = await next(call)
        except Exception as error:
            self.errors.append(error)
            raise
        self.results.append(result)
        return result


@dataclass
class Order:
    number: int


class Refused(Exception):
    """With an attribute, which no text carries."""

    def __init__(self, order: Order) -> None:
        super().__init__("refused")
        self.order = order


def _in_thread(fail: bool) -> str:
    if fail:
        raise Refused(Order(2))
    return tenant.get()


async def _on_loop(fail: bool) -> str:
    return _in_thread(fail)


@pytest.mark.parametrize(("function", "run_in"), [(_on_loop, "loop"), (_in_thread, "thread"), (_on_loop, "thread")])
async def test_a_handler_of_this_process_runs_inside_of_it(
    make: Make, function: Callable[..., Any], run_in: RunIn
) -> None:
    """It sees context variables of the middleware, which is handed the very exception that it raised."""
    watching = Watching()
    app = make("memory://")
    app.use(watching)
    work = app.task("work", run_in=run_in, max_retry=0)(function)
    async with app:
        assert await (await work.submit(False)).result(10) == "tenant of work"
        with pytest.raises(TaskFailed, match="refused"):
            await (await work.submit(True)).result(10)
    assert watching.results == ["tenant of work"]
    (error,) = watching.errors
    assert isinstance(error, Refused)
    assert error.order == Order(2)


async def test_a_handler_in_a_process_runs_inside_of_it(make: Make) -> None:
    watching = Watching()
    app = make("memory://")
    app.use(watching)
    app.registry.register("who", child_handlers.who, run_in="process")
    app.registry.register("fail", child_handlers.fail, run_in="process", max_retry=0)
    app.registry.register("partly", child_handlers.partly, run_in="process")
    async with app:
        pid = await (await app.submit("who")).result(20)
        assert pid != os.getpid()
        with pytest.raises(TaskFailed, match="ValueError: oh"):
            await (await app.submit("fail", "oh")).result(20)
        with pytest.raises(TaskFailed, match="never"):
            await (await app.submit("fail", "abort")).result(20)
        await (await app.submit("partly", 3)).result(20)
    assert watching.results == [pid, TaskResult(206, "3 were left out", {"left": 3})]
    assert [str(error) for error in watching.errors] == ["ValueError: oh", "never"]
    assert isinstance(watching.errors[1], Abort)


async def test_a_run_call_tells_of_its_task(make: Make, url: str) -> None:
    watching = Watching()
    app = make(url)
    app.use(watching)

    @app.task
    async def work(n: int) -> int:
        return n

    async with app:
        handle = await app.submit("work", 3, priority=10, key="k", tags={"a": "b"}, context={"c": 1})
        await handle.result(10)
        info = await handle.info()
    (call,) = watching.calls
    assert (call.id, call.type, call.queue, call.priority, call.key) == (handle.id, "work", "default", 10, "k")
    assert (call.attempt, call.schedule_id, call.payload) == (1, None, {"n": 3})
    assert (call.submitted_at, call.worker_id) == (info.submitted_at, app.id)
    assert (call.ctx.task_id, call.ctx.tags, call.ctx.context) == (handle.id, {"a": "b"}, {"c": 1})


async def test_runs_go_through_the_first_used_first_and_a_result_may_be_changed(make: Make) -> None:
    class Adding(Middleware):
        def __init__(self, text: str) -> None:
            self.text = text

        async def run(self, call: RunCall, next: RunNext) -> Any:
            result = await next(call)
            result.append(self.text)
            return result

    app = make("memory://")
    app.use(Adding("outer"))
    app.use(Middleware())
    app.use(Adding("inner"))

    @app.task
    async def work() -> list[str]:
        return ["handler"]

    async with app:
        assert await (await work.submit()).result(10) == ["handler", "inner", "outer"]


async def test_results_have_the_declared_type_in_a_middleware(make: Make) -> None:
    watching = Watching()
    app = make("memory://")
    app.use(watching)

    @app.task
    async def order() -> Order:
        return Order(7)

    @app.task
    async def nothing() -> None: ...

    @app.task
    async def coded() -> TaskResult:
        return TaskResult(206, "some", [1])

    async with app:
        assert await (await order.submit()).result(10) == Order(7)
        await (await nothing.submit()).result(10)
        handle = await coded.submit()
        await handle.result(10)
        assert (await handle.info()).result == TaskResult(206, "some", [1])
    assert watching.results == [Order(7), None, TaskResult(206, "some", [1])]


async def test_what_a_middleware_raises_in_a_run_counts_as_the_failure_of_the_handler(make: Make, url: str) -> None:
    """By the rules for retries; the worker goes on."""
    raised: list[BaseException] = [
        LookupError("a defect"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), Retry(0.01),
    ]  # fmt: skip
    count = len(raised)

    class Failing(Middleware):
        async def run(self, call: RunCall, next: RunNext) -> Any:
            if raised and call.type == "work":
                raise raised.pop()
            return await next(call)

    app = make(url, concurrency=2)
    app.use(Failing())
    runs: list[int] = []

    @app.task(max_retry=10)
    async def work(ctx: TaskContext) -> int:
        runs.append(ctx.attempt)
        return ctx.attempt

    @app.task
    async def other() -> str:
        return "done"

    async with app:
        handle = await work.submit()
        assert await handle.result(10) == count + 1
        assert await (await other.submit()).result(10) == "done"
        assert not app.exhausted
    assert runs == [count + 1]
    assert (await app.get_task(handle.id)).losses == 0


async def test_a_middleware_may_decide_how_a_run_ends(make: Make) -> None:
    class Deciding(Middleware):
        async def run(self, call: RunCall, next: RunNext) -> Any:
            match call.type:
                case "cached":
                    return "from the cache"
                case "forgiven":
                    try:
                        return await next(call)
                    except LookupError:
                        return "forgiven"
                case "unstorable":
                    return object()
            raise Abort("not here")

    app = make("memory://", max_retry=3)
    app.use(Deciding())

    async def fail() -> str:
        raise LookupError

    for name in ("cached", "forgiven", "unstorable", "aborted"):
        app.task(name)(fail)
    async with app:
        assert await (await app.submit("cached")).result(10) == "from the cache"
        assert await (await app.submit("forgiven")).result(10) == "forgiven"
        for name, text in (("unstorable", "cannot be stored"), ("aborted", "not here")):
            handle = await app.submit(name)
            with pytest.raises(TaskFailed, match=text):
                await handle.result(10)
            assert (await handle.info()).attempt == 1


async def test_a_timeout_reaches_the_middleware_which_may_clean_up(make: Make) -> None:
    cleaned: list[str] = []

    class Transaction(Middleware):
        async def run(self, call: RunCall, next: RunNext) -> Any:
            try:
                return await next(call)
            except BaseException as error:
                cleaned.append(type(error).__name__)
                raise

    app = make("memory://")
    app.use(Transaction())

    @app.task(timeout=0.05, max_retry=0)
    async def slow() -> None:
        await asyncio.Event().wait()

    async with app:
        with pytest.raises(TaskFailed, match=r"timed out after 0\.05 s"):
            await (await slow.submit()).result(10)
    assert cleaned == ["CancelledError"]


async def test_a_payload_that_does_not_fit_still_waits_for_another_version(make: Make, sqlite_url: str) -> None:
    client = make(sqlite_url)
    handle = await client.submit("work", {"other": 1})
    watching = Watching()
    app = make(sqlite_url)
    app.use(watching)

    @app.task
    async def work(n: int) -> int:
        return n

    async with app:
        await eventually(lambda: watching.errors, what="it was looked at")
        info = await wait_for(app, handle.id, "pending")
    assert info.attempt == 0
    assert isinstance(watching.errors[0], PayloadError)


async def test_without_a_middleware_around_runs_workers_have_no_chain(make: Make) -> None:
    app = with_task(make, Around())
    async with app:
        assert app._node is not None
        assert [worker._chain for worker in app._node.workers] == [None]


class Elsewhere:
    """An executor, which has no handler here."""

    async def run(self, task: Grant, entry: Any, context: TaskContext) -> TaskResult | bytes | None:
        match task.spec.type:
            case "bytes":
                return b'{"from": "elsewhere"}'
            case "coded":
                return TaskResult(201, "made", [1])
            case "failing":
                raise ExecutorError("refused there")
        return None


async def test_tasks_of_another_executor_run_inside_of_it(make: Make) -> None:
    watching = Watching()
    app = make("memory://", max_retry=0)
    app.use(watching)
    app.executors.register("elsewhere", Elsewhere(), types=["bytes", "coded", "failing", "nothing"])
    async with app:
        assert await (await app.submit("bytes")).result(10) == {"from": "elsewhere"}
        handle = await app.submit("coded")
        await handle.result(10)
        assert (await handle.info()).result == TaskResult(201, "made", [1])
        with pytest.raises(TaskFailed, match="refused there"):
            await (await app.submit("failing")).result(10)
        assert await (await app.submit("nothing")).result(10) is None
    assert watching.results == [{"from": "elsewhere"}, TaskResult(201, "made", [1]), None]
    assert isinstance(watching.errors[0], ExecutorError)
