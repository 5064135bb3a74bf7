"""The tasks of the shop, run by `tickwork up shop.app:app`: an order is charged, shipped, and confirmed by mail."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from tickwork import Abort, Depends, Handle, Middleware, Retry, RunCall, RunNext, Scheduler, Snooze, TaskContext

from .database import connect

BERLIN = ZoneInfo("Europe/Berlin")
log = logging.getLogger("shop")


@dataclass
class Order:
    id: int
    item: str
    price: Decimal
    card: str
    email: str


# --- what all tasks share


@asynccontextmanager
async def lifespan(app: Scheduler) -> AsyncIterator[sqlite3.Connection]:
    """One connection for each process that runs tasks; a web process, which only submits, opens none."""
    database = connect()
    yield database
    database.close()


def opened(ctx: TaskContext) -> sqlite3.Connection:
    database: sqlite3.Connection = ctx.state
    return database


class ErrorLog(Middleware):
    """Tells of each attempt that fails. A service that collects errors would be told here."""

    async def run(self, call: RunCall, next: RunNext) -> Any:
        try:
            return await next(call)
        except (Retry, Snooze):
            raise  # the handler has asked for another run: that is no error
        except Exception as error:
            log.warning("%s failed on attempt %d: %r", call.id, call.attempt, error)
            raise


app = Scheduler(lifespan=lifespan)  # on the store that TICKWORK_STORE names
app.use(ErrorLog())


# --- an order, step by step; each step may run twice, so it looks first whether it is done


class CardDeclined(Exception):
    pass


class GatewayBusy(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"busy for {seconds:g} s")
        self.seconds = seconds


def pay(card: str, attempt: int) -> None:
    """Stands for the gateway of a bank. The card says how it goes."""
    match card:
        case "declined":
            raise CardDeclined("no money")
        case "stolen":
            raise Abort("this card was stolen")
        case "busy" if attempt < 3:
            raise GatewayBusy(1)
        case "offline":
            raise ConnectionError("no answer")


def wait_for_gateway(retry: int, error: BaseException) -> float:
    return error.seconds if isinstance(error, GatewayBusy) else min(60.0, 2.0**retry)


@app.task(
    max_retry=3,
    timeout=30,
    retry=wait_for_gateway,
    retry_on=(GatewayBusy, ConnectionError, TimeoutError),
    abort_on=CardDeclined,
)
async def charge(ctx: TaskContext, order: Order, database: sqlite3.Connection = Depends(opened)) -> str:
    if not database.execute("SELECT 1 FROM payments WHERE order_id = ?", (order.id,)).fetchone():
        pay(order.card, ctx.attempt)
        day = ctx.scheduled_at.astimezone(BERLIN).date()
        database.execute("INSERT INTO payments VALUES (?, ?, ?)", (order.id, str(order.price), day.isoformat()))
    return f"receipt {order.id}"


@app.task(timeout=60)
async def ship(order: Order, database: sqlite3.Connection = Depends(opened)) -> str:
    """The stock is counted in one place and booked in another, so only one process at a time may do it."""
    async with app.lock(f"stock:{order.item}") as lock:
        if not database.execute("SELECT 1 FROM parcels WHERE order_id = ?", (order.id,)).fetchone():
            (count,) = database.execute("SELECT count FROM stock WHERE item = ?", (order.item,)).fetchone() or (0,)
            if count < 1:
                raise Abort(f"no {order.item} in stock")
            await asyncio.sleep(0.02)  # stands for fetching it
            lock.check()
            database.execute("BEGIN IMMEDIATE")
            with database:  # commits, or rolls back
                database.execute("UPDATE stock SET count = ? WHERE item = ?", (count - 1, order.item))
                database.execute("INSERT INTO parcels VALUES (?, ?)", (order.id, order.item))
    return f"parcel {order.id}"


@app.task(timeout=60)
async def mail(ctx: TaskContext, order: Order) -> str:
    """Results are not handed over, so it reads those of the tasks that it depends on."""
    steps = [await app.get_task(task_id) for task_id in ctx.depends_on]
    done = [step.result.data for step in steps if step.result]
    return f"to {order.email}: {', '.join(done)}"


async def place(order: Order, pay_in: float = 0) -> list[Handle[str]]:
    """Submit the three steps. The ids follow from the order, so it may be placed again: nothing is done twice."""
    tags = {"order": str(order.id)}
    paying = charge.options(id=f"charge-{order.id}", delay=pay_in, tags=tags, if_exists="return")
    charged = await paying.submit(order)
    shipping = ship.options(id=f"ship-{order.id}", depends_on=[charged], tags=tags, if_exists="return")
    shipped = await shipping.submit(order)
    mailing = mail.options(id=f"mail-{order.id}", depends_on=[charged, shipped], tags=tags, if_exists="return")
    mailed = await mailing.submit(order)
    return [charged, shipped, mailed]


# --- other work


@app.task(timeout=600)
async def export(ctx: TaskContext, rows: int) -> int:
    for row in range(1, rows + 1):
        await asyncio.sleep(0.02)
        ctx.progress(row / rows, f"row {row} of {rows}")
    return rows


@app.task(run_in="process", timeout=60, max_retry=0)
def draw_invoice(order: int, database: sqlite3.Connection = Depends(opened)) -> str:
    """Heavy computing, in a child process, which has a connection of its own by the lifespan."""
    paid = database.execute("SELECT amount FROM payments WHERE order_id = ?", (order,)).fetchone()
    if paid is None:
        raise Abort(f"order {order} is not paid")
    return f"invoice {order}: {paid[0]} EUR, checksum {sum(range(1_000_000)) % 97}"


def day_before(moment: datetime) -> date:
    return moment.astimezone(BERLIN).date() - timedelta(days=1)


@app.periodic("0 2 * * *", timezone="Europe/Berlin", misfire="all", misfire_grace=timedelta(days=7), max_retry=3)
async def nightly_report(ctx: TaskContext, database: sqlite3.Connection = Depends(opened)) -> str:
    """Of the day before its tick, however late it runs; nights without any process are made up for."""
    day = day_before(ctx.scheduled_at).isoformat()
    (payments,) = database.execute("SELECT count(*) FROM payments WHERE day = ?", (day,)).fetchone()
    database.execute("INSERT OR REPLACE INTO reports VALUES (?, ?)", (day, payments))
    return f"{day}: {payments} payments"
