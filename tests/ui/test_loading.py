"""What a first visit costs, and the dashboard below a path of another application."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import expect

from tests.support.redis.process import Port
from tests.ui.browsing import Desk
from tests.ui.conftest import OpenDesk
from tests.ui.stage import Stage
from tickwork import Scheduler

BUDGET = 120_000  # bytes as they go over the network
MOUNT = "/ops/tickwork"


def test_a_cold_load_is_small_and_comes_from_one_origin(at_desk: Desk) -> None:
    page = at_desk.page
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    sizes: list[float] = []
    kinds: dict[str, str] = {}
    network.on("Network.responseReceived", lambda told: kinds.update({told["requestId"]: told["response"]["url"]}))
    network.on("Network.loadingFinished", lambda told: sizes.append(_size(told, kinds)))
    page.add_init_script("window.requestIdleCallback = () => 0")  # other views are fetched once nothing is to be done
    at_desk.go()
    page.wait_for_load_state("load")
    assert sum(sizes) > 20_000  # or nothing was measured
    assert sum(sizes) <= BUDGET
    assert page.evaluate("performance.getEntriesByType('resource').every((each) => each.name.startsWith(origin))")


def _size(told: dict[str, object], urls: dict[str, str]) -> float:
    """Of a file; what the API answers is data, not the page."""
    size = told["encodedDataLength"]
    assert isinstance(size, int | float)
    return 0 if "/api/" in urls.get(str(told["requestId"]), "/api/") else size


def test_the_page_allows_no_script_but_its_own(at_desk: Desk) -> None:
    at_desk.watch.allow("Content Security Policy|TrustedScript|Trusted Type")
    page = at_desk.go()
    inline = """() => { const made = document.createElement("script"); try { made.textContent = "window.ran = 1";
        document.body.append(made); } catch { return "refused"; } return window.ran ? "ran" : "refused"; }"""
    assert page.evaluate(inline) == "refused"


@pytest.fixture
def mounted(stage: Stage) -> Iterator[str]:
    """The dashboard of the same store, in an application that has more to do."""
    app = Scheduler(stage.app.config.store, namespace=stage.app.config.namespace)

    @asynccontextmanager
    async def open_while_served(_web: FastAPI) -> AsyncIterator[None]:
        yield
        await app.close()

    web = FastAPI(lifespan=open_while_served)
    web.mount(MOUNT, app.asgi())
    port = Port()
    port.release()
    config = uvicorn.Config(web, port=port.number, log_level="critical", timeout_graceful_shutdown=1, loop="asyncio")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port.number}{MOUNT}"
    server.should_exit = True
    thread.join(20)


def test_it_works_below_a_path(open_desk: OpenDesk, mounted: str) -> None:
    desk = open_desk(mounted)
    page = desk.go()
    expect(page.locator("main")).to_contain_text("13 dead letters")
    desk.press("g", "t")
    desk.address("/tasks")
    page.locator("tr[data-row]").first.get_by_role("link").first.click()
    desk.address("/tasks/[^/]+")
    page.reload()
    desk.settle()
    expect(page.get_by_role("heading", name="Where the time went")).to_be_visible()
    expect(page.get_by_role("button", name="Live.")).to_be_visible()
    paths = page.evaluate("performance.getEntriesByType('resource').map((each) => new URL(each.name).pathname)")
    assert [each for each in paths if not each.startswith(MOUNT)] == []
