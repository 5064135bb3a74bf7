"""Takes the pictures of the dashboard that the docs show: `python -m docs.screenshots [VIEW...]`.

It opens the shop of the tests of the dashboard in Chromium, so the pictures show what those tests have looked at. The
overview is that of the same shop on a day on which nothing has failed.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import httpx
from playwright.sync_api import Browser, sync_playwright
from tests.ui import history, shop
from tests.ui.browsing import DESK, PHONE, Desk, chromium, desk, launch
from tests.ui.stage import Stage, staged

from tickwork import Scheduler
from tickwork.store.contract import Store

FOLDER = Path(__file__).parent / "images"
VIEWS = {
    "overview": "", "tasks": "tasks", "task": "tasks/{held}", "failures": "failures",
    "schedules": "schedules", "schedule": "schedules/close_day", "schedule-edit": "schedules/archive_orders/edit",
    "queues": "queues", "queue": "queues/payments", "types": "queues?by=type", "workers": "workers",
    "worker": "workers/media-1", "limits": "limits", "events": "events", "audit": "events/audit",
    "alerts": "alerts", "reports": "reports", "submit": "tasks/new?type=import_stock", "settings": "settings/tokens",
    "store": "settings/store",
}  # fmt: skip
GOOD_DAY = "overview"
HEIGHT = 760  # of the overview on a desk, when nothing is wrong: the rest is empty
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": DESK},
    "dark": {"viewport": DESK, "color_scheme": "dark"},
    "phone": {"viewport": PHONE},
}
PROGRAM = "/srv/shop/tasks.py"
PAUSE = 600  # milliseconds
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def main(wanted: list[str]) -> None:
    path = chromium()
    if path is None:
        sys.exit("there is no Chromium: install it, or name it in CHROMIUM")
    FOLDER.mkdir(exist_ok=True)
    move(shop.register)
    views = wanted or list(VIEWS)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = launch(playwright, path)
        if GOOD_DAY in views:
            given: dict[str, Any] = {"with_shop": False, "before": write_good_weeks, "server_tokens": True}
            with staged("redis", Path(folder), **given) as stage:
                stage.do(open_on_a_good_day(stage.app))
                take_all(browser, stage, [GOOD_DAY])
        if others := [view for view in views if view != GOOD_DAY]:
            with staged("redis", Path(folder), server_tokens=True) as stage:
                take_all(browser, stage, others, held=prepare(stage))


def move(function: Callable[..., None]) -> None:
    """Let tracebacks show a file of the shop, and not where this repository lies."""
    assert isinstance(function, FunctionType)
    lines = Path(inspect.getfile(function)).read_text().splitlines(keepends=True)
    linecache.cache[PROGRAM] = (sum(map(len, lines)), None, lines, PROGRAM)
    function.__code__ = _moved(function.__code__)


def _moved(code: CodeType) -> CodeType:
    parts = tuple(_moved(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=PROGRAM, co_consts=parts)


async def write_good_weeks(store: Store) -> None:
    await history.write_weeks(store, range(0))


async def open_on_a_good_day(app: Scheduler) -> None:
    """Two runs are at work, nothing is held but what waits for its time."""
    for number in range(shop.RESIZING):
        await app.submit("resize_image", {"path": f"/img/{number}.jpg", "width": 800}, key=shop.KEYS[number])
    for number in range(shop.DELAYED):
        await app.submit("import_stock", {"sku": f"sku-{number}", "count": 1}, delay=(number + 1) * shop.HOUR)

    async def all_run() -> bool:
        return (await app.status()).tasks.get("running") == shop.RESIZING

    await shop.until(all_run)


def take_all(browser: Browser, stage: Stage, wanted: list[str], **names: str) -> None:
    state = sign_in(browser, stage)
    for look, options in LOOKS.items():
        with desk(browser, stage.url, storage_state=state, **options) as at:
            for view in wanted:
                if view == GOOD_DAY and look != "phone":
                    at.page.set_viewport_size({**DESK, "height": HEIGHT})
                at.go(VIEWS[view].format(**names))
                take(at, FOLDER / f"dashboard-{view}-{look}.png")


def prepare(stage: Stage) -> str:
    """What people have done in this shop, for the audit log; answers a task that waits for a breaker."""
    tokens = {name: stage.token(role, name) for name, role in (("ines", "operator"), ("sam", "operator"))}
    stage.token("worker", "gpu-farm")

    def call(name: str, method: str, path: str, body: object = None) -> Any:
        headers = {"authorization": f"Bearer {tokens[name]}"}
        return httpx.request(method, f"{stage.url}/api/v1{path}", json=body, headers=headers).raise_for_status().json()

    call("ines", "POST", "/queues/media/pause", {"note": "new codec"})
    call("ines", "POST", "/queues/media/resume")
    call("sam", "PUT", "/limits", {"of": "type:render_invoice", "rate": "100/m", "note": "the printer is slow"})
    call("ines", "POST", "/workers/media-1/drain")
    call("ines", "POST", "/workers/media-1/resume")
    call("sam", "PUT", "/views/dead-payments", {"filter": "status:dead type:charge_payment"})
    found = call("ines", "GET", "/tasks?q=type:charge_payment%20waits:breaker")
    return str(found["items"][0]["id"])


def sign_in(browser: Browser, stage: Stage) -> Any:
    with desk(browser, stage.url) as at:
        at.watch.allow("status of 401")
        page = at.page
        page.goto(stage.url)
        page.get_by_label("Token").fill(stage.token("admin", "ada"))
        take(at, FOLDER / "dashboard-login-light.png")
        page.get_by_role("button", name="Sign in").click()
        page.locator("aside.side").wait_for()
        return page.context.storage_state()


def take(at: Desk, file: Path) -> None:
    at.page.wait_for_timeout(PAUSE)  # what is read a little later: previews, numbers beside the entries
    file.write_bytes(packed(at.page.screenshot(animations="disabled", caret="hide")))


def packed(png: bytes) -> bytes:
    """The same picture in fewer bytes: its data are compressed anew, with more patience."""
    chunks, data, at = b"", b"", len(SIGNATURE)
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        kind, whole = png[at + 4 : at + 8], png[at : at + 12 + size]
        if kind == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        elif kind == b"IEND":
            chunks += _chunk(b"IDAT", zlib.compress(zlib.decompress(data), 9)) + whole
        else:
            chunks += whole
        at += 12 + size
    return SIGNATURE + chunks


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


if __name__ == "__main__":
    main(sys.argv[1:])
