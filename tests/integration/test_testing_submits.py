"""`submitted`, `assert_submitted`, `assert_not_submitted` and `make_context`."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import ANY

import pytest

from tests.integration.apps import Make
from tickwork import ConfigError, FixedDelay, Scheduler, Status, TaskContext
from tickwork.testing import (
    ManualClock,
    assert_not_submitted,
    assert_submitted,
    drain,
    make_context,
    run,
    submitted,
)


async def test_what_was_submitted_is_seen_without_being_run(clock: ManualClock) -> None:
    app = Scheduler("redis://127.0.0.1:1/0")

    @app.task
    async def work(n: int) -> None: ...

    async with run(app, clock=clock, start=False):
        for n in range(3):
            await work.submit(n)
        await app.submit("elsewhere", "x")
        assert [task.payload for task in await submitted(app, "work")] == [{"n": 0}, {"n": 1}, {"n": 2}]
        assert [task.type for task in await submitted(app)] == ["work", "work", "work", "elsewhere"]
        assert {task.status for task in await submitted(app)} == {Status.READY}


@dataclass
class Order:
    number: int
    amount: float = 0.0


@pytest.fixture
def shop(make: Make, clock: ManualClock) -> Scheduler:
    app = make("memory://", clock=clock)

    @app.task
    async def send_mail(to: str, subject: str = "hello") -> None: ...

    @app.task
    async def accept(order: Order) -> None: ...

    @app.task
    async def tidy() -> None: ...

    return app


async def failure(assertion: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        await assertion
    return str(caught.value)


async def test_a_task_is_found_by_type_payload_and_fields(shop: Scheduler) -> None:
    first = await shop.submit("tidy")
    await shop.submit(
        "send_mail", {"to": "ada"}, queue="mails", delay=60, tags={"a": "b"}, depends_on=[first], max_retry=2,
        retry=FixedDelay(3),
    )  # fmt: skip
    (found,) = await assert_submitted(shop, "send_mail")
    assert found.payload == {"to": "ada"}
    await assert_submitted(shop, "send_mail", {"to": "ada"}, times=1)
    await assert_submitted(shop, "send_mail", {"to": ANY}, queue="mails")
    await assert_submitted(shop, "send_mail", delay=timedelta(minutes=1), tags={"a": "b"}, status="blocked")
    await assert_submitted(shop, "send_mail", delay=60, depends_on=[first], max_retry=2, retry=FixedDelay(3))
    await assert_submitted(shop, "send_mail", depends_on=[first.id], id=ANY, status=Status.BLOCKED)
    await assert_submitted(shop, "send_mail", {"to": "bob"}, times=0)


async def test_a_function_stands_for_its_type_and_objects_for_their_payload(shop: Scheduler) -> None:
    @shop.task
    async def ship(order: Order, weight: float) -> None: ...

    await ship.submit(Order(7, 1.5), weight=2.0)
    await shop.submit("accept", Order(8))
    await assert_submitted(shop, ship, {"order": Order(7, 1.5), "weight": 2.0})
    await assert_submitted(shop, ship, {"order": {"number": 7, "amount": 1.5}, "weight": 2.0})
    await assert_submitted(shop, "accept", Order(8))
    await assert_not_submitted(shop, "accept", Order(9))
    assert [task.type for task in await submitted(shop, ship)] == ["ship"]


async def test_a_type_without_a_handler_here_is_compared_as_it_is(shop: Scheduler) -> None:
    async with run(Scheduler("redis://127.0.0.1:1/0"), start=False) as app:
        await app.submit("elsewhere", {"n": 1})
        await assert_submitted(app, "elsewhere", {"n": 1})


async def test_the_error_tells_what_was_submitted_instead_the_nearest_first(shop: Scheduler) -> None:
    await shop.submit("tidy")
    await shop.submit("send_mail", {"to": "zoe@example.com", "subject": "bill"}, queue="mails")
    await shop.submit("send_mail", {"to": "ann@example.org"})
    text = await failure(assert_submitted(shop, "send_mail", {"to": "bob@example.org"}, queue="default"))
    assert text.splitlines() == [
        "send_mail, payload={'to': 'bob@example.org'}, queue='default' was not submitted; submitted instead, the "
        "nearest first:",
        "  send_mail, payload={'to': 'ann@example.org'}",
        "  send_mail, payload={'to': 'zoe@example.com', 'subject': 'bill'}, queue='mails'",
        "  tidy, payload=None",
    ]


async def test_the_error_when_nothing_was_submitted(shop: Scheduler) -> None:
    assert await failure(assert_submitted(shop, "tidy")) == "tidy was not submitted; nothing was submitted at all"


async def test_the_number_of_times(shop: Scheduler) -> None:
    for n in range(12):
        await shop.submit("send_mail", {"to": f"user {n}"})
    await assert_submitted(shop, "send_mail", times=12)
    lines = (await failure(assert_submitted(shop, "send_mail", times=1))).splitlines()
    assert lines[0] == "send_mail was submitted 12 times, not once:"
    assert lines[1].endswith(", payload={'to': 'user 0'}")
    assert lines[-1] == "  and 2 more"
    text = await failure(assert_submitted(shop, "send_mail", {"to": "user"}, times=2))
    assert text.startswith("send_mail, payload={'to': 'user'} was not submitted; submitted instead")
    assert text.endswith("and 2 more")


async def test_that_nothing_was_submitted(shop: Scheduler) -> None:
    await assert_not_submitted(shop)
    await shop.submit("tidy", queue="low")
    await assert_not_submitted(shop, "send_mail")
    await assert_not_submitted(shop, "tidy", queue="default")
    assert "tidy was submitted once:\n  tidy " in await failure(assert_not_submitted(shop, "tidy"))
    assert "any task, queue='low' was submitted once" in await failure(assert_not_submitted(shop, queue="low"))


async def test_a_field_that_tasks_do_not_have_is_refused(shop: Scheduler) -> None:
    with pytest.raises(TypeError, match="a submitted task has no colour; what can be compared is payload, id, queue"):
        await assert_submitted(shop, "tidy", colour="red")  # type: ignore[call-arg]


# --- make_context


async def import_rows(ctx: TaskContext, rows: list[str]) -> int:
    for number, row in enumerate(rows, start=1):
        if ctx.cancelled:
            ctx.logger.warning("stopped at row %d", number)
            return number
        ctx.logger.debug("a detail")
        ctx.progress(number / len(rows), row)
    ctx.logger.info("%d rows, attempt %d", len(rows), ctx.attempt)
    return len(rows)


async def test_a_handler_is_called_with_a_context_of_the_test(caplog: pytest.LogCaptureFixture) -> None:
    ctx = make_context(attempt=2)
    with caplog.at_level(logging.INFO, logger="tickwork.task"):
        assert await import_rows(ctx, ["a", "b"]) == 2
    assert ctx.reported == [(0.5, "a"), (1.0, "b")]
    assert ctx.lines == ["INFO 2 rows, attempt 2"]
    assert [record.getMessage() for record in caplog.records] == ["2 rows, attempt 2"]


async def test_a_context_can_be_cancelled() -> None:
    ctx = make_context()
    assert not ctx.cancelled
    ctx.cancel()
    assert await import_rows(ctx, ["a", "b"]) == 1
    assert ctx.reported == []
    assert ctx.lines == ["WARNING stopped at row 1"]


def test_a_context_has_what_a_handler_asks_for() -> None:
    plain = make_context()
    assert (plain.task_id, plain.type, plain.queue, plain.attempt, plain.max_retry) == ("test", "test", "default", 1, 0)
    assert (plain.tags, plain.context, plain.depends_on, plain.state) == ({}, {}, (), None)
    assert (plain.deadline, plain.remaining, plain.is_last_attempt) == (None, None, True)
    assert abs(plain.scheduled_at - datetime.now(UTC)) < timedelta(minutes=5)
    assert plain.token
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    ctx = make_context(
        task_id="7", type="report", queue="slow", attempt=1, max_retry=3, timeout=timedelta(minutes=5),
        scheduled_at=moment, depends_on=("6",), tags={"a": "b"}, context={"tenant": 1}, state="pool",
    )  # fmt: skip
    assert (ctx.task_id, ctx.type, ctx.queue, ctx.max_retry, ctx.is_last_attempt) == ("7", "report", "slow", 3, False)
    assert (ctx.scheduled_at, ctx.depends_on, ctx.tags) == (moment, ("6",), {"a": "b"})
    assert (ctx.context, ctx.state) == ({"tenant": 1}, "pool")
    assert ctx.remaining is not None
    assert 0 < ctx.remaining <= 300
    with pytest.raises(ConfigError, match="scheduled_at must know its zone"):
        make_context(scheduled_at=datetime(2026, 3, 1))


async def test_it_is_given_to_the_function_of_a_task_and_reports_from_threads(app: Scheduler) -> None:
    @app.task
    def count(ctx: TaskContext, n: int) -> int:
        ctx.progress(0.5)
        return n + 1

    ctx = make_context()
    assert await asyncio.to_thread(count, ctx, 1) == 2
    assert ctx.reported == [(0.5, "")]
    async with app:
        await count.submit(n=1)
        await drain(app)
