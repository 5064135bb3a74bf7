"""Tests of the shop's own scheduler, on a store in memory and with a clock that they move: `pytest examples/shop`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import pytest_asyncio

from tickwork import Abort, Handle, Scheduler
from tickwork.testing import ManualClock, assert_not_submitted, assert_submitted, drain, make_context, run

from . import app as shop
from .database import connect
from .flask_caller import web
from .web import post_export


def order(number: int = 7, item: str = "lamp", card: str = "good") -> shop.Order:
    return shop.Order(number, item, Decimal("49.90"), card, "ada@example.org")


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DB", str(tmp_path / "shop.db"))


@pytest_asyncio.fixture
async def app() -> AsyncIterator[Scheduler]:
    async with run(shop.app, clock=ManualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))) as app:
        yield app


async def statuses(handles: list[Handle[str]]) -> list[str]:
    return [(await handle.info()).status for handle in handles]


async def test_an_order_is_charged_shipped_and_confirmed(app: Scheduler) -> None:
    *_, mailed = await shop.place(order())
    await drain(app)
    assert await mailed.result(timeout=1) == "to ada@example.org: receipt 7, parcel 7"


async def test_a_busy_gateway_is_asked_again_when_it_says(app: Scheduler) -> None:
    charged, *_ = await shop.place(order(card="busy"))
    await drain(app)
    assert (await charged.info()).status == "retrying"
    await drain(app, until=2)
    assert (await charged.info()).attempt == 3
    assert (await charged.info()).status == "success"


@pytest.mark.parametrize(("card", "attempts"), [("declined", 1), ("stolen", 1), ("offline", 4)])
async def test_what_is_not_paid_is_not_shipped(app: Scheduler, card: str, attempts: int) -> None:
    steps = await shop.place(order(card=card))
    await drain(app, until=60)
    assert await statuses(steps) == ["dead", "cancelled", "cancelled"]
    assert (await steps[0].info()).attempt == attempts


async def test_an_order_is_cancelled_before_it_is_charged(app: Scheduler) -> None:
    steps = await shop.place(order(), pay_in=3600)
    await steps[0].cancel()
    await drain(app, until=7200)
    assert await statuses(steps) == ["cancelled"] * 3


async def test_the_last_chair_is_sold_once(app: Scheduler) -> None:
    shipped = [(await shop.place(order(number, "chair")))[1] for number in (1, 2, 3)]
    await drain(app)
    assert sorted(await statuses(shipped)) == ["dead", "dead", "success"]


async def test_a_charge_that_runs_again_takes_no_money_twice(app: Scheduler) -> None:
    charged, *_ = await shop.place(order())
    await drain(app)
    await app.retry(charged.id)
    await drain(app)
    with closing(connect()) as database:
        assert database.execute("SELECT count(*) FROM payments").fetchone() == (1,)


async def test_every_night_of_a_month_has_its_report(app: Scheduler) -> None:
    await shop.place(order())
    await drain(app, until=timedelta(days=30))  # clocks change on 29 March, where there is no 02:00
    await assert_submitted(app, shop.nightly_report, times=30)
    with closing(connect()) as database:
        reports = database.execute("SELECT day, payments FROM reports ORDER BY day").fetchall()
    assert reports[:2] == [("2026-03-01", 1), ("2026-03-02", 0)]
    assert len(reports) == 30


async def test_an_order_that_is_placed_twice_is_submitted_once() -> None:
    async with run(shop.app, start=False) as app:
        await shop.place(order(), pay_in=60)
        await shop.place(order(), pay_in=60)
        await assert_submitted(app, shop.charge, order(), delay=60, tags={"order": "7"}, times=1)
        await assert_submitted(app, shop.mail, order(), depends_on=["charge-7", "ship-7"], times=1)
        await assert_not_submitted(app, shop.export)


async def test_one_export_is_under_way_at_a_time() -> None:
    async with run(shop.app, start=False) as app:
        assert await post_export(5) == await post_export(6)
        await assert_submitted(app, shop.export, {"rows": 5}, times=1)


async def test_the_functions_themselves() -> None:
    ctx = make_context()
    assert await shop.export(ctx, 2) == 2
    assert ctx.reported == [(0.5, "row 1 of 2"), (1.0, "row 2 of 2")]
    with closing(connect()) as database, pytest.raises(Abort, match="stolen"):
        await shop.charge(make_context(), order(card="stolen"), database)


def test_an_invoice_for_a_caller_that_blocks() -> None:
    with run(shop.app) as app:
        app.sync.run(shop.place(order()))
        app.sync.run(drain(app))
        paid, unpaid = (web.test_client().get(f"/invoices/{number}") for number in (7, 8))
    assert paid.text.startswith("invoice 7: 49.90 EUR")
    assert (unpaid.status_code, unpaid.text.endswith("order 8 is not paid")) == (409, True)
