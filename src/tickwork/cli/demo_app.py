"""The demo's application: a small shop. `demo.py` runs it, `demo_screen.py` shows it; any worker could run it too.

Orders come in all the time. Each is paid for by a card terminal that often fails, gets an invoice that takes a whole
processor to render, and a reminder later. The catalogue import never works, and a report is due every five seconds.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from contextlib import suppress
from typing import Any

from msgspec import Struct

from tickwork.backoff import ExponentialBackoff, FixedDelay
from tickwork.client.functions import TaskFunction
from tickwork.errors import StoreUnavailable, TaskExists
from tickwork.handlers.context import TaskContext
from tickwork.model.tasks import Priority
from tickwork.scheduler import Scheduler

# Short leases, so that also a machine that was switched off is noticed within seconds.
app = Scheduler("sqlite:///tickwork-demo.db", concurrency=8, lease_ttl=10, renew_interval=3)


class Order(Struct):
    number: str
    amount: float
    priority: int = Priority.NORMAL


@app.task
async def accept_order(order: Order) -> None:
    await asyncio.sleep(random.uniform(0.02, 0.2))
    later = random.uniform(5, 25)
    await once(
        charge_payment.options(id=f"payment:{order.number}", priority=order.priority), order.number, order.amount
    )
    await once(send_reminder.options(id=f"reminder:{order.number}", priority=Priority.LOW, delay=later), order.number)


@app.task(max_retry=6, retry=ExponentialBackoff(base=0.5, max=8))
async def charge_payment(number: str, amount: float) -> str:
    await asyncio.sleep(random.uniform(0.1, 0.5))
    if random.random() < 0.35:
        raise ConnectionError("the card terminal timed out")
    if random.random() < 0.3:
        await once(render_invoice.options(id=f"invoice:{number}"), number)
    return f"{amount:.2f} charged"


@app.task(run_in="process", timeout=30)
def render_invoice(number: str) -> str:
    digest = hashlib.pbkdf2_hmac("sha256", number.encode(), b"invoice", 150_000)
    return f"invoice-{digest.hex()[:12]}.pdf"


@app.task(priority=Priority.LOW)
async def send_reminder(number: str) -> None:
    await asyncio.sleep(random.uniform(0.05, 0.2))


@app.task(max_retry=2, retry=FixedDelay(1))
async def import_catalogue(supplier: str) -> None:
    await asyncio.sleep(0.2)
    raise FileNotFoundError(f"{supplier} has sent no catalogue")


@app.task(timeout=60)
async def rebuild_search(ctx: TaskContext) -> None:
    steps = 24
    for step in range(1, steps + 1):
        await asyncio.sleep(0.4)
        ctx.progress(step / steps, f"shelf {step} of {steps}")
    ctx.logger.info("%d shelves indexed", steps)


@app.periodic("*/5 * * * * *")
async def sales_report(ctx: TaskContext) -> str:
    counts = await app.queue_stats()
    ctx.logger.info("%d dead letters", counts.dlq_count)
    return f"{counts.delayed_count} to come"


async def once(task: TaskFunction[..., Any], *arguments: Any) -> None:
    """Submit under an id that follows from the order: if a handler is run again, its follow-ups exist all the same."""
    with suppress(TaskExists):
        await task.submit(*arguments)


async def bring_customers(orders_per_second: float) -> None:
    """Keep the shop busy, for ever."""
    await import_catalogue.submit("Acme")
    await rebuild_search.submit()
    count = 0
    while True:
        await asyncio.sleep(random.expovariate(orders_per_second))
        priority = random.choices((Priority.HIGH, Priority.NORMAL, Priority.LOW), (1, 3, 2))[0]
        order = Order(os.urandom(5).hex(), round(random.uniform(5, 500), 2), priority)
        count += 1
        with suppress(StoreUnavailable):  # a customer who comes again
            await accept_order.options(priority=priority).submit(order)
            if count % 60 == 0:
                await import_catalogue.submit(random.choice(["Acme", "Globex", "Initech"]))
            if count % 100 == 0:
                await rebuild_search.submit()
