"""A small shop whose tasks have come to every state that the dashboard shows, and stay there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tickwork import FixedDelay, Scheduler, TaskContext
from tickwork.model.members import Worker

QUEUES = ("default", "email", "media", "payments", "reports")
KEYS = ("acme", "globex", "initech", "umbrella")
HOUR = 3600
SENT, BOUNCED, TIMED_OUT, HELD_BY_BREAKER, MISSPELT, LOST, HELD_BY_PAUSE = 24, 2, 6, 5, 4, 2, 4
RESIZING, HELD_BY_LIMIT, DELAYED, BLOCKED, HELD_BY_SWITCH, CANCELLED, STOPPED = 2, 5, 3, 2, 2, 2, 1
LATER = FixedDelay(900)


class GatewayTimeout(Exception):
    """Raised by a payment."""


class TemplateError(Exception):
    """Raised by an invoice."""


def register(app: Scheduler, opened: Callable[[], asyncio.Event]) -> None:
    """The handlers. A run that waits goes on when `opened` is set."""

    @app.task(queue="email", max_retry=2, retry=LATER)
    async def send_email(to: str, subject: str, ctx: TaskContext) -> str:
        ctx.logger.info("connecting to smtp.example")
        if to.startswith("bounce"):
            raise ConnectionError(f"smtp.example refused {to}")
        return f"sent to {to}"

    @app.task(queue="media", concurrency=RESIZING)
    async def resize_image(path: str, width: int, ctx: TaskContext) -> dict[str, Any]:
        ctx.logger.info("reading %s", path)
        ctx.logger.warning("no colour profile: sRGB is taken")
        ctx.progress(0.4, "4 of 10 tiles")
        await opened().wait()
        return {"path": path, "width": width}

    @app.task(queue="payments", max_retry=0, breaker=(TIMED_OUT, HOUR))
    async def charge_payment(order: str, amount: float, fails: bool = True) -> str:
        if fails:
            raise GatewayTimeout("no answer from pay.example in 10 s")
        return f"{amount:.2f} charged"

    @app.task(queue="reports", max_retry=0)
    async def render_invoice(order: str, template: str = "plain", mended: bool = False) -> str:
        if template == "old":
            raise TemplateError(f"unknown field total in the invoice of {order}")
        if template == "lost":
            raise FileNotFoundError(f"no template for {order}")
        return f"{order}.pdf"

    @app.task
    async def import_stock(sku: str, count: int) -> int:
        return count

    @app.task
    async def echo(value: Any = None) -> Any:
        return value

    @app.task(max_retry=0)
    async def complain(text: str, ctx: TaskContext, waits: bool = False) -> str:
        ctx.logger.warning("%s", text)
        ctx.progress(0.5, text)
        if waits:
            await opened().wait()
        raise ValueError(text)

    @app.periodic("0 2 * * *", timezone="Europe/Paris")
    async def close_day() -> None: ...

    @app.periodic("0 */6 * * *", id="sync_prices")
    async def sync_prices() -> None:
        raise RuntimeError("the price list is empty")

    @app.periodic("30 4 * * 1-5", id="weekly_digest")
    async def digest() -> None: ...


async def open_shop(app: Scheduler) -> None:
    """Bring the tasks to their states, each by the way that leads there in earnest. Two things are written by hand: a
    worker that never was, to be lost, and why a schedule has stopped."""
    await asyncio.gather(_sent(app), _invoices(app), _images(app), _stock(app), _schedules(app), _lost_worker(app))
    await _payments(app)
    await app.queues.pause("reports", "database move")
    for number in range(HELD_BY_PAUSE):
        await app.submit("render_invoice", {"order": f"order-{89000 + number}"}, key=KEYS[number % 4])


async def set_rules(app: Scheduler) -> None:
    """Before a node starts: one that runs hears of new rules only within seconds."""
    await app.switches.off("tag:customer=initech", "bill is not paid", by="sam")
    await app.limits.set("queue:email", rate="20/s", burst=30, by="ines", note="what the provider allows")


async def _sent(app: Scheduler) -> None:
    for number in range(SENT):
        await app.submit("send_email", {"to": f"user{number}@example.com", "subject": "Your order"},
                         key=KEYS[number % 4], tags={"env": "prod"})  # fmt: skip
    bounced = [
        await app.submit("send_email", {"to": f"bounce{number}@example.com", "subject": "Your order"}, key="acme")
        for number in range(BOUNCED)
    ]
    # The newest error stands first, and is to be that of the payments, which fail after this.
    await _all(app, [handle.id for handle in bounced], "retrying")


async def _payments(app: Scheduler) -> None:
    handles = []
    for number in range(TIMED_OUT):
        order = f"order-{88000 + number}"
        payload = {"order": order, "amount": 12.5 + number}
        handles.append(await app.submit("charge_payment", payload, key=KEYS[number % 4], tags={"order": order}))
    await _all(app, [handle.id for handle in handles], "dead")
    for number in range(HELD_BY_BREAKER):
        await app.submit("charge_payment", {"order": f"order-{88100 + number}", "amount": 40.0}, key=KEYS[number % 4])


async def _invoices(app: Scheduler) -> None:
    wrong = ["old"] * MISSPELT + ["lost"] * LOST
    handles = [
        await app.submit("render_invoice", {"order": f"order-{88200 + number}", "template": template})
        for number, template in enumerate(wrong)
    ]
    await _all(app, [handle.id for handle in handles], "dead")


async def _images(app: Scheduler) -> None:
    handles = [
        await app.submit("resize_image", {"path": f"/img/{number}.jpg", "width": 800}, key=KEYS[number % 4])
        for number in range(RESIZING + HELD_BY_LIMIT)
    ]
    for number in range(BLOCKED):
        await app.submit("import_stock", {"sku": f"sku-b{number}", "count": 1}, depends_on=[handles[number].id])


async def _stock(app: Scheduler) -> None:
    for number in range(8):
        await app.submit("import_stock", {"sku": f"sku-{number}", "count": number}, priority=1 + number % 10)
    for number in range(DELAYED):
        await app.submit("import_stock", {"sku": f"sku-d{number}", "count": 1}, delay=(number + 1) * HOUR, key="acme")
    for number in range(HELD_BY_SWITCH):
        await app.submit("import_stock", {"sku": f"sku-s{number}", "count": 1}, tags={"customer": "initech"})
    for number in range(CANCELLED):
        handle = await app.submit("import_stock", {"sku": f"sku-c{number}", "count": 1}, delay=HOUR)
        await app.cancel(handle.id)


async def _schedules(app: Scheduler) -> None:
    await app.schedules.put("archive_orders", "import_stock", {"sku": "all", "count": 0}, cron="15 3 * * *")
    await app.schedules.pause("archive_orders")
    run = await app.schedules.trigger("sync_prices")
    await _all(app, [run], "dead")
    store = await app._access.open_store()
    await store.schedules.change("sync_prices", stopped=f"task {run} used up its retries")


async def _lost_worker(app: Scheduler) -> None:
    """One that has said it is there, and then nothing more."""
    store = await app._access.open_store()
    worker = Worker(id="media-2", node="media-2", host="vm", pid=4711, queues=("media",), task_types=("resize_image",))
    await store.members.beat(worker, 1)


async def _all(app: Scheduler, task_ids: list[str], status: str) -> None:
    async def are() -> bool:
        return {(await app.get_task(each)).status.value for each in task_ids} == {status}

    await until(are)


async def until(condition: Callable[[], Awaitable[bool]], timeout: float = 20) -> None:
    async with asyncio.timeout(timeout):
        while not await condition():
            await asyncio.sleep(0.02)


async def is_open(app: Scheduler) -> bool:
    """Whether all of it has come to rest, and is counted."""
    counts = (await app.status()).tasks
    groups = await app.failures()
    lost = [each for each in await app.list_workers() if each.lost_at is not None]
    return (
        counts.get("running") == RESIZING
        and counts.get("ready") == HELD_BY_PAUSE
        and counts.get("pending") == DELAYED + HELD_BY_LIMIT + HELD_BY_BREAKER + HELD_BY_SWITCH
        and counts.get("retrying") == BOUNCED
        and sum(group.dead for group in groups) == TIMED_OUT + MISSPELT + LOST + STOPPED
        and len(lost) == 1
    )
