"""The log of facts, read and followed, and the lines it becomes."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
from msgspec.structs import replace

from tests.integration import child_handlers
from tests.integration.apps import Make, eventually, store_of
from tickwork import Abort, ConfigError, Event, Fact, FixedDelay, Retry, Scheduler, Snooze, TaskContext
from tickwork.clock import to_datetime
from tickwork.logs import JSONFormatter, KeyValueFormatter, set_up
from tickwork.testing import ManualClock, drain, wait_for


async def submitted(stream: AsyncIterator[Event]) -> str:
    return (await asyncio.wait_for(anext(stream), 10)).id


async def test_a_subscription_that_has_begun_misses_nothing(make: Make, url: str) -> None:
    app = make(url)
    kinds = [Fact.TASK_SUBMITTED]

    @app.task
    async def work() -> None: ...

    await work.submit()
    async with app.events.subscribe(kinds=kinds) as stream:
        first = await work.submit()
        assert await submitted(stream) == first.id
        other = await app.events.subscribe(kinds=kinds)
        second = await work.submit()
        assert await submitted(stream) == await submitted(other) == second.id
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await other.aclose()


async def test_the_last_number_is_where_a_subscription_may_begin(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def work() -> None: ...

    assert await app.events.last() == 0
    await work.submit()
    last = await app.events.last()
    assert [event.seq for event in await app.events.read()] == [last]
    second = await work.submit()
    async with app.events.subscribe(after=last) as stream:
        assert await submitted(stream) == second.id
    with pytest.raises(ConfigError, match="after must be a whole number from 0"):
        app.events.subscribe(after=-1)


@asynccontextmanager
async def following(app: Scheduler, **filters: Any) -> AsyncIterator[list[Event]]:
    """Collects what a live subscription gives, from the moment it is there."""
    seen: list[Event] = []
    stream = app.events.subscribe(**filters)
    store: Any = await store_of(app)
    others = len(store.hints._waiting.get("*events", ()))

    async def follow() -> None:
        async for event in stream:
            seen.append(event)

    task = asyncio.ensure_future(follow())
    await eventually(lambda: len(store.hints._waiting.get("*events", ())) > others, what="the subscription stands")
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# --- reading


async def test_the_whole_life_of_a_task(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock, retry=FixedDelay(10))

    @app.task(max_retry=2)
    async def work(ctx: TaskContext) -> str:
        match len(seen):
            case 0:
                seen.append("snooze")
                raise Snooze(5)
            case 1:
                seen.append("fail")
                raise ValueError("first\nsecond line")
            case 2:
                seen.append("retry")
                raise Retry(1, "as asked")
        return "done"

    seen: list[str] = []
    async with app:
        handle = await app.submit("work", delay=60, queue="default")
        for wait in (60, 5, 10, 1):
            await drain(app)
            clock.advance(wait)
        await drain(app)
        await app.retry(handle.id)
        await drain(app)
        events = await app.events.read(task_id=handle.id)
        assert [event.kind for event in events] == [
            "task.submitted",
            "task.due", "task.claimed", "task.snoozed",
            "task.due", "task.claimed", "task.retrying",
            "task.due", "task.claimed", "task.retrying",
            "task.due", "task.claimed", "task.succeeded",
            "task.retried", "task.claimed", "task.succeeded",
        ]  # fmt: skip
        assert [event.seq for event in events] == sorted({event.seq for event in events})
        assert [event.at for event in events] == sorted(event.at for event in events)
        assert events[-1].at == to_datetime(clock.now())
        assert {type(event.kind) for event in events} == {Fact}
        assert {(event.id, event.type, event.queue) for event in events} == {(handle.id, "work", "default")}
        claims = [event for event in events if event.kind == "task.claimed"]
        assert [(event.attempt, event.worker_id) for event in claims] == [
            (1, app.id), (1, app.id), (2, app.id), (3, app.id), (1, app.id),
        ]  # fmt: skip
        failed = [event for event in events if event.kind == "task.retrying"]
        assert failed[0].detail.startswith("ValueError: first")
        assert failed[1].detail == "as asked"


async def test_facts_about_everything_else(make: Make, url: str, clock: ManualClock) -> None:
    app = make(url, clock=clock)

    @app.task
    async def work() -> None: ...

    async with app:
        await eventually(lambda: app._node and app._node.candidate.leads)
        await app.queues.pause("default", "why")
        await app.queues.resume("default")
        await app.schedules.put("s", "work", cron="@hourly")
        clock.advance(3600)
        await drain(app)
        await app.schedules.delete("s")
    story = [(event.kind, event.id) for event in await app.events.read() if not event.kind.startswith("task.")]
    assert story[0] == ("worker.joined", app.id)
    assert ("leader.elected", app.id) in story
    assert ("leader.resigned", app.id) in story
    assert ("worker.left", app.id) in story
    expected = ["queue.paused", "queue.resumed", "schedule.put", "schedule.fired", "schedule.dropped"]
    assert [kind for kind, _ in story if kind in expected] == expected


async def test_reading_goes_on_where_it_stopped(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def work(n: int) -> None: ...

    async with app:
        await app.submit_many("work", range(50))
        await drain(app)
    everything = await app.events.read(limit=10_000)
    pieces: list[Event] = []
    while piece := await app.events.read(after=pieces[-1].seq if pieces else 0, limit=7):
        assert len(piece) <= 7
        pieces += piece
    assert pieces == everything
    assert len(everything) > 150
    assert await app.events.read(after=everything[-1].seq) == []


async def test_events_can_be_off(make: Make, url: str) -> None:
    app = make(url, events=False)

    @app.task
    async def work() -> int:
        return 1

    async with app:
        assert await (await work.submit()).result(10) == 1
        assert await app.events.read() == []


# --- following


async def test_following_with_filters(app: Scheduler) -> None:
    @app.task
    async def one() -> None: ...

    @app.task
    async def two() -> None: ...

    async with app:
        await one.submit()
        await drain(app)
        async with (
            following(app) as everything,
            following(app, types=["two"]) as of_type,
            following(app, kinds=["task.succeeded"]) as ends,
            following(app, queues=["nowhere"]) as elsewhere,
        ):
            first, second = await one.submit(), await two.submit()
            async with following(app, task_id=second.id, after=0) as of_task:
                await drain(app)
                await eventually(lambda: len(ends) == 2)
                await eventually(lambda: len(of_task) == 3)
            await eventually(lambda: len([event for event in everything if event.kind.startswith("task.")]) == 6)
        assert [event.kind for event in of_task] == ["task.submitted", "task.claimed", "task.succeeded"]
        assert [event.kind for event in of_type] == ["task.submitted", "task.claimed", "task.succeeded"]
        assert {event.id for event in ends} == {first.id, second.id}
        assert elsewhere == []
        assert {event.id for event in everything if event.kind.startswith("task.")} == {first.id, second.id}


async def test_a_kind_that_does_not_exist_is_refused(make: Make) -> None:
    app = make("memory://")
    with pytest.raises(ConfigError, match=r"unknown kind of event 'task\.sucess'; known are task\.submitted, .*succ"):
        app.events.subscribe(kinds=["task.died", "task.sucess"])
    with pytest.raises(ConfigError, match=r"kinds must be a list of kinds, such as \['task\.died'\], not 'task\.died'"):
        app.events.subscribe(kinds="task.died")
    with pytest.raises(ConfigError, match="unknown kind of event 5"):
        app.sync.events.subscribe(kinds=[5])  # type: ignore[list-item]


async def test_following_is_live(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def work() -> None: ...

    loop = asyncio.get_running_loop()
    waits: list[float] = []
    async with following(app) as seen:
        for _ in range(5):
            sent = loop.time()
            await app.submit("work")
            await eventually(lambda: len(seen) == len(waits) + 1)
            waits.append(loop.time() - sent)
    assert sorted(waits)[2] < 0.1, f"not by polling: {waits}"


async def test_following_from_a_number(app: Scheduler) -> None:
    @app.task
    async def work() -> None: ...

    async with app:
        await work.submit()
        await drain(app)
        before = await app.events.read(limit=10_000)
        async with following(app, after=before[2].seq) as seen:
            await eventually(lambda: len(seen) >= len(before) - 3)
            assert seen[: len(before) - 3] == before[3:]


async def test_following_another_process(make: Make, file_url: str) -> None:
    here, there = make(file_url), make(file_url)

    @there.task
    async def work() -> None: ...

    async with following(here, types=["work"]) as seen, there:
        await work.submit()
        await eventually(lambda: len(seen) == 3)


async def test_a_slow_consumer_is_told_what_it_missed(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def work(n: int) -> None: ...

    store: Any = await store_of(app)
    policy = replace(store.core.policy, events_max=100)
    store.core.policy = policy
    if url.startswith("sqlite"):
        store.core.writer.policy = policy
    stream = app.events.subscribe(kinds=["task.submitted", "log.missed"])
    first = asyncio.ensure_future(anext(stream))
    await eventually(lambda: "*events" in store.hints._waiting)
    await app.submit("work", 0)
    seen = await first
    assert seen.kind == "task.submitted"
    await app.submit_many("work", range(1, 501))  # while the consumer is busy with the first
    await store.operators.prune(1000)
    missed = await anext(stream)
    assert missed.kind == "log.missed"
    assert missed.detail == "400 events"
    rest = [await anext(stream) for _ in range(100)]
    assert [event.seq for event in rest] == list(range(seen.seq + 401, seen.seq + 501)), "the rest comes without a gap"
    await stream.aclose()


# --- log lines

CANARY = "canary-4711"


@dataclass
class Secret:
    token: str
    n: int = 0


class Model(pydantic.BaseModel):
    token: str
    n: int


@pytest.fixture
def lines(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """All that a program with Tickwork's own logging would show; `param` says whether as JSON."""
    root, logger = logging.getLogger(), logging.getLogger("tickwork")
    before = root.level, logger.level
    stream = io.StringIO()
    set_up("debug", as_json=request.param, stream=stream)
    root.setLevel(before[0])
    yield stream
    root.removeHandler(root.handlers[-1])
    logger.setLevel(before[1])


async def tell_everything(make: Make, url: str, clock: ManualClock) -> None:
    """Each kind of line, with secrets wherever a user may have them."""
    app = make(url, clock=clock, retry=FixedDelay(1))

    @app.task(max_retry=1)
    async def work(payload: Secret, ctx: TaskContext) -> str:
        ctx.progress(0.5, "half")
        if payload.n == 1:
            raise ValueError("forged\nTask completed task=other id=1")
        if payload.n == 2:
            raise Abort('quotes " and = signs')
        if payload.n == 3:
            raise Snooze(60)
        if payload.n == 4:
            await asyncio.sleep(60)
        return payload.token

    @app.task(max_retry=0)
    async def modelled(payload: Model) -> None: ...

    @app.periodic("@hourly")
    async def hourly() -> None: ...

    async with app:
        for n in range(4):
            await app.submit("work", Secret(CANARY, n), context={"auth": CANARY}, dedup_key=f"{CANARY}-{n}", key=CANARY)
        client = make(url) if url.startswith("sqlite") else None
        if client is not None:
            await client.submit("modelled", {"token": CANARY, "n": CANARY})
            await client.submit("work", {"token": [CANARY]})
        await drain(app)
        clock.advance(1)
        await drain(app)
        clock.advance(3599)
        await drain(app)
        running = await app.submit("work", Secret(CANARY, 4))
        await wait_for(app, running.id, "running")
        await running.cancel(force=True)
        await wait_for(app, running.id, "cancelled")


@pytest.mark.parametrize("lines", [False], indirect=True)
async def test_lines_for_people(make: Make, url: str, clock: ManualClock, lines: io.StringIO) -> None:
    await tell_everything(make, url, clock)
    text = lines.getvalue()
    shown = text.splitlines()
    for start in (
        "Task registered name=hourly spec=@hourly",
        "Task scheduler started tasks=1 id=",
        "Task started task=work id=",
        "Task completed task=work id=",
        "Task retry task=work id=",
        "Task failed task=work id=",
        "Task snoozed task=work id=",
        "Task cancelled task=work id=",
        "Schedule fired schedule=hourly",
        "Task scheduler stopped id=",
    ):
        assert any(start in line for line in shown), f"{start!r} is missing in\n{text}"
    (retried,) = [line for line in shown if "Task retry" in line]
    assert "WARNING" in retried
    assert re.search(r'attempt=1 error="ValueError: forged" duration=\d\.\d{3}s retry_in=1\.000s$', retried)
    assert any(r'error="quotes \" and = signs"' in line for line in shown)
    forged = [line for line in shown if "task=other" in line]
    assert forged, "the traceback is there"
    assert all(line.startswith("    ") for line in forged), "an error's second line must not pass for one of the log"
    assert CANARY not in text, "neither payload, result, context nor keys"


@pytest.mark.parametrize("lines", [True], indirect=True)
async def test_lines_for_machines(make: Make, url: str, clock: ManualClock, lines: io.StringIO) -> None:
    await tell_everything(make, url, clock)
    text = lines.getvalue()
    entries = [json.loads(line) for line in text.splitlines()]
    assert all({"time", "level", "logger", "event"} <= entry.keys() for entry in entries)
    (retried,) = [entry for entry in entries if entry["event"] == "Task retry"]
    assert isinstance(retried.pop("duration"), float)
    assert "Traceback (most recent call last):" in retried.pop("traceback")
    assert {**retried, "time": "", "id": ""} == {
        "time": "", "level": "warning", "logger": "tickwork", "event": "Task retry", "task": "work", "id": "",
        "attempt": 1, "error": "ValueError: forged", "retry_in": 1.0,
    }  # fmt: skip
    started = [entry for entry in entries if entry["event"] == "Task started"]
    assert all(entry.keys() >= {"task", "id", "attempt", "worker"} for entry in started)
    assert CANARY not in text


class Records(logging.Handler):
    """What a program's own handler on the root logger gets, as an error reporter would."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.all.append(record)

    def of(self, event: str) -> list[logging.LogRecord]:
        return [record for record in self.all if getattr(record, "event", "") == event]


@pytest.fixture
def records() -> Iterator[Records]:
    root, logger, handler = logging.getLogger(), logging.getLogger("tickwork"), Records()
    before = logger.level
    root.addHandler(handler)
    logger.setLevel("INFO")
    yield handler
    root.removeHandler(handler)
    logger.setLevel(before)


async def test_a_failure_is_logged_with_its_exception(make: Make, url: str, records: Records) -> None:
    app = make(url, dlq=False)

    @app.task(max_retry=1)
    async def on_loop() -> None:
        raise ZeroDivisionError("on the loop")

    @app.task(max_retry=0)
    def in_thread() -> None:
        raise ZeroDivisionError("in a thread")

    app.registry.register("in-process", child_handlers.load, run_in="process", max_retry=0)
    async with app:
        for kind, payload in (("on_loop", None), ("in_thread", None), ("in-process", "raise")):
            handle = await (app.submit(kind) if payload is None else app.submit(kind, payload))
            await wait_for(app, handle.id, "failed")
    (retried,), failed = records.of("Task retry"), records.of("Task failed")
    assert len(failed) == 3
    for record in (retried, *failed[:2]):
        assert record.exc_info is not None
        assert isinstance(record.exc_info[1], ZeroDivisionError)
        trace = record.exc_info[2]
        assert trace is not None
        assert trace.tb_frame.f_code.co_name in ("on_loop", "in_thread"), "the first frame is the user's"
    text = logging.Formatter().format(failed[2])
    assert "Broken: could not load" in text
    assert "KeyError: 'the missing key'" in text, "whatever formatter shows the child's own traceback"
    assert "local.py" not in text


async def test_an_error_that_cannot_be_written_as_it_is_can_be_logged(make: Make, records: Records) -> None:
    app = make("memory://")

    @app.task(max_retry=0)
    async def work() -> None:
        raise FileNotFoundError("name \udcff")

    async with app:
        await wait_for(app, (await work.submit()).id, "dead")
    (failed,) = records.of("Task failed")
    assert r"FileNotFoundError: name \udcff" in logging.Formatter().format(failed).encode().decode()


async def test_an_end_that_the_store_refuses_is_not_logged_as_one(make: Make, url: str, records: Records) -> None:
    app = make(url)
    gate = asyncio.Event()

    @app.task
    async def work() -> None:
        await gate.wait()

    async with app:
        handle = await work.submit()
        await wait_for(app, handle.id, "running")
        store = await store_of(app)
        await store.tasks.reclaim(10, (app.id,))
        gate.set()
        await eventually(lambda: len(records.of("Task started")) == 2, what="it came back and was started again")
        await wait_for(app, handle.id, "success")
        await eventually(lambda: records.of("Task completed"))
    assert len(records.of("Task started")) == 2
    assert len(records.of("Task completed")) == 1


async def test_a_level_that_is_changed_later_is_honoured(make: Make, url: str, records: Records) -> None:
    app = make(url)

    @app.task
    async def work() -> None: ...

    logger = logging.getLogger("tickwork")
    logger.setLevel("WARNING")
    async with app:
        await (await work.submit()).result(10)
        await drain(app)
        assert records.of("Task started") == records.of("Task completed") == []
        logger.setLevel("INFO")
        await (await work.submit()).result(10)
        await eventually(lambda: records.of("Task completed"))
        assert len(records.of("Task started")) == len(records.of("Task completed")) == 1


async def test_a_bug_in_a_log_filter_does_not_end_the_worker(
    make: Make, url: str, records: Records, capfd: pytest.CaptureFixture[str]
) -> None:
    app = make(url)

    class Bug(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            if "Task started" in record.getMessage():
                raise RuntimeError("a bug in a log filter")
            return True

    @app.task
    async def work() -> int:
        return 1

    bug = Bug()
    logging.getLogger("tickwork").addFilter(bug)
    try:
        async with app:
            for _ in range(3):
                assert await (await work.submit()).result(10) == 1
            await eventually(lambda: len(records.of("Task completed")) == 3)
            assert not app.exhausted
    finally:
        logging.getLogger("tickwork").removeFilter(bug)
    assert capfd.readouterr().err.count("RuntimeError: a bug in a log filter") == 1, "told once"


def record_of(message: str, **extra: Any) -> logging.LogRecord:
    record = logging.LogRecord("tickwork.task", logging.INFO, __file__, 1, message, (), None)
    record.__dict__.update(extra)
    return record


def test_a_message_cannot_forge_a_line() -> None:
    nasty = "one\ntwo\r\x1b[31mred\u2028three"
    record = record_of(nasty, task_id="a\nb", task_type="t", attempt=1)
    people = KeyValueFormatter().format(record)
    assert len(people.splitlines()) == 1
    assert "\x1b" not in people
    machines = JSONFormatter().format(record)
    assert len(machines.splitlines()) == 1
    assert json.loads(machines)["event"] == nasty


def test_a_traceback_cannot_forge_a_line() -> None:
    try:
        raise ValueError("first\n12:00:00.000 INFO    Task completed\x1b[2J\u2028third\tend")
    except ValueError:
        record = record_of("it failed")
        record.exc_info = sys.exc_info()
    head, *traceback = KeyValueFormatter().format(record).splitlines()
    assert "it failed" in head
    assert traceback[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") and line.isprintable() for line in traceback)
    assert [line.strip() for line in traceback[-3:]] == [
        "ValueError: first",
        "12:00:00.000 INFO    Task completed [2J",
        "third   end",
    ]


def test_a_line_with_a_lone_surrogate_is_still_written() -> None:
    record = record_of("name \udcff", task_id="a", task_type="t", attempt=1)
    for formatter in (KeyValueFormatter(), JSONFormatter()):
        formatter.format(record).encode()


def test_values_are_quoted_where_they_could_mislead() -> None:
    from tickwork.observe.loggers import quoted

    assert quoted("plain-1.5") == "plain-1.5"
    assert quoted("") == '""'
    for text in ("a b", "a=b", 'a"b', "a\nb", "a\x00b", "\u2028", "\x1b[0m"):
        shown = quoted(text)
        assert shown.startswith('"')
        assert json.loads(shown) == text
        assert "\n" not in shown
        assert shown.isprintable() or shown.isascii()
