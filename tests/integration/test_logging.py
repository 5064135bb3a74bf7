"""Where lines go: to the program's own logging, to a logger it gives, and no more of them than help."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.integration.apps import FAST, Make, eventually, store_of
from tests.support.redis import RedisServer
from tickwork import ConfigError, Scheduler, StoreUnavailable, TaskContext, make_store
from tickwork.model.members import Worker as Member
from tickwork.testing import wait_for


class Plain:
    """A logger that is not one of Python's: as structlog has them."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, Any]] = []

    def debug(self, event: str, **keys: Any) -> None:
        self.lines.append(("debug", event, keys.get("exc_info")))

    def info(self, event: str, **keys: Any) -> None:
        self.lines.append(("info", event, keys.get("exc_info")))

    def warning(self, event: str, **keys: Any) -> None:
        self.lines.append(("warning", event, keys.get("exc_info")))

    def error(self, event: str, **keys: Any) -> None:
        self.lines.append(("error", event, keys.get("exc_info")))

    def of(self, start: str) -> list[tuple[str, str, Any]]:
        return [line for line in self.lines if line[1].startswith(start)]


class WithOpt(Plain):
    """One that takes exceptions beforehand and formats its messages by braces: as loguru does."""

    def __init__(self, lines: list[tuple[str, str, Any]] | None = None, error: Any = None) -> None:
        super().__init__()
        self.lines = self.lines if lines is None else lines
        self._error = error

    def opt(self, exception: Any) -> WithOpt:
        return WithOpt(self.lines, exception)

    def error(self, event: str, **keys: Any) -> None:
        assert not keys, "it would format the message with them"
        self.lines.append(("error", event, self._error))


@pytest.mark.parametrize("kind", [Plain, WithOpt])
async def test_a_logger_of_another_library_gets_every_line(make: Make, url: str, kind: type[Plain]) -> None:
    logger = kind()
    app = make(url, logger=logger)

    @app.task(max_retry=0)
    async def fails() -> None:
        raise ValueError("with {braces} and %s")

    async with app:
        await wait_for(app, (await fails.submit()).id, "dead")
        await eventually(lambda: logger.of("this node leads"), what="the leader's lines too", timeout=30)
    assert [level for level, *_ in logger.of("Task scheduler started")] == ["info"]
    ((level, text, error),) = logger.of("Task failed")
    assert level == "error"
    assert 'error="ValueError: with {braces} and %s"' in text
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("wrong", ["shop", object(), print])
def test_what_is_no_logger_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="is not a logger"):
        Scheduler("memory://", logger=wrong)


async def test_warnings_of_every_part_reach_the_logger_that_was_given(
    make: Make, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("shop.tasks")
    logger.setLevel("INFO")
    app = make(url, logger=logger, dlq_max=1, concurrency=2)
    gate = asyncio.Event()

    @app.task(max_retry=0)
    async def fails() -> None:
        raise ValueError("x")

    @app.task(timeout=0.05, max_retry=0)
    async def deaf() -> None:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue

    def names(text: str) -> set[str]:
        return {record.name for record in caplog.records if text in record.getMessage()}

    async with app:
        store = await store_of(app)
        await store.members.beat(Member(id="ghost", node="ghost", queues=("default",), capacity=1), 1)
        for _ in range(2):
            await wait_for(app, (await fails.submit()).id, "dead")
        await deaf.submit()
        asyncio.get_running_loop().call_later(60, gate.set)  # or the loop could not be closed if this test fails
        await eventually(lambda: names("goes on without a slot"), what="the worker tells of a handler that leaks")
        await eventually(lambda: names("counts as lost"), what="a duty tells of a lost worker")
        async with app.lock("report", ttl=3):  # it is renewed every second
            store.locks.extend = refuse  # type: ignore[method-assign]
            await eventually(lambda: names("lock report"), what="a lock tells that it cannot be renewed")
            del store.locks.extend
        gate.set()
    assert names("the dead-letter queue is full") == {"shop.tasks.store"}
    assert names("goes on without a slot") == {"shop.tasks.worker"}
    assert names("counts as lost") == {"shop.tasks.duties"}
    assert names("lock report") == {"shop.tasks.lock"}
    assert names("this node leads") == {"shop.tasks.leader"}
    assert not any(record.name.startswith("tickwork") for record in caplog.records)


async def test_lines_about_a_store_of_ones_own_reach_it_too(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    app = Scheduler(make_store("memory://"), logger=logging.getLogger("shop.tasks"))
    store = await store_of(app)
    store.contact.lost("somebody", "gone fishing")
    store.contact.made("somebody")
    assert [record.name for record in caplog.records] == ["shop.tasks.store"] * 2
    await app.close()


async def test_lines_of_a_scheduler_that_was_not_started_reach_it_too(caplog: pytest.LogCaptureFixture) -> None:
    app = Scheduler("memory://", logger=logging.getLogger("shop.tasks"))
    app.task("work")(lambda: None)

    def fail(observation: Any) -> None:
        raise ValueError("no eyes")

    app.observe(fail)
    await app.submit("work")
    await eventually(lambda: caplog.records)
    assert {record.name for record in caplog.records} == {"shop.tasks.events"}
    await app.close()


async def refuse(*_: Any, **__: Any) -> Any:
    raise StoreUnavailable("gone fishing")


# --- outages


def outage_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.name.startswith("tickwork")
    ]


async def test_an_outage_is_two_lines_for_all_parts_of_a_node(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = make("memory://")
    told = asyncio.Event()

    @app.task
    async def chatty(ctx: TaskContext) -> None:
        step = 0
        while not told.is_set():
            ctx.progress(step % 100 / 100, f"step {step}")
            ctx.logger.debug("step %d", step)
            step += 1
            await asyncio.sleep(0.01)

    async with app:
        handle = await chatty.submit()
        await wait_for(app, handle.id, "running")
        store = await store_of(app)
        asked: set[str] = set()

        def refusal(name: str) -> Any:
            async def refused(*_: Any, **__: Any) -> Any:
                asked.add(name)
                raise StoreUnavailable("gone fishing")

            return refused

        calls = {
            **dict.fromkeys(("claim", "extend", "reclaim", "promote", "outbox", "note"), store.tasks),
            **dict.fromkeys(("beat", "campaign", "workers"), store.members),
        }
        met = {*calls} - {"extend", "promote", "outbox"}  # those that others may come before
        with monkeypatch.context() as outage:
            for name, part in calls.items():
                outage.setattr(part, name, refusal(name))
            await eventually(lambda: asked >= met, what="all parts have met it")
        await eventually(lambda: len(outage_lines(caplog)) == 2, what="the end is told")
        told.set()
        await handle.result(10)
        assert (await handle.info()).progress is not None
    first, last = outage_lines(caplog)
    assert first == "the store cannot be used now, trying again: gone fishing"
    assert last.startswith("the store can be used again, after ")


async def test_log_lines_of_a_handler_outlive_an_outage(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make("memory://")
    gate = asyncio.Event()

    @app.task
    async def work(ctx: TaskContext) -> None:
        ctx.logger.info("written during the outage")
        ctx.progress(0.5, "half")
        await gate.wait()

    async with app:
        store = await store_of(app)
        asked: list[str] = []

        async def refused(*_: Any, **__: Any) -> Any:
            asked.append("note")
            raise StoreUnavailable("gone fishing")

        with monkeypatch.context() as outage:
            outage.setattr(store.tasks, "note", refused)
            handle = await work.submit()
            await eventually(lambda: len(asked) >= 2)
        await eventually(lambda: handle.info(), what="it answers again")
        gate.set()
        await handle.result(10)
        info = await handle.info()
        assert (info.progress, [line for line in info.log if "during the outage" in line] != []) == (0.5, True)


async def test_an_outage_of_redis_is_told_soon_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    with RedisServer(options={"appendonly": "yes", "appendfsync": "always"}) as server:
        url = server.url
        app = Scheduler(url, **FAST)
        async with app:
            await asyncio.to_thread(server.kill)
            began = asyncio.get_running_loop().time()
            await eventually(lambda: outage_lines(caplog), timeout=20)
            assert asyncio.get_running_loop().time() - began < 8, "long before a call gives up"
            await asyncio.to_thread(server.start)
            await eventually(lambda: "can be used again" in outage_lines(caplog)[-1], timeout=20)
        texts = outage_lines(caplog)
    assert len(texts) == 2, texts
    assert f"Redis at {url} cannot be reached" in texts[0]


async def test_a_redis_that_is_down_at_start_is_told_while_it_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with RedisServer() as server:
        await asyncio.to_thread(server.kill)
        app = Scheduler(server.url, **FAST)
        starting = asyncio.ensure_future(app.start())
        await eventually(lambda: outage_lines(caplog), timeout=10)
        assert not starting.done()
        assert "Connection refused" in outage_lines(caplog)[0] or "cannot be reached" in outage_lines(caplog)[0]
        await asyncio.to_thread(server.start)
        await asyncio.wait_for(starting, 20)
        await app.shutdown(0)
    assert len(outage_lines(caplog)) == 2
