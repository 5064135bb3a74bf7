"""The dashboard on a real browser, before a real node. The tests of one file share a stage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.ui.browsing import Desk, chromium, desk, launch
from tests.ui.stage import Stage, staged


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """For all tests here, and no longer: while Playwright is up, this thread can run no other event loop."""
    path = chromium()
    if path is None:
        reason = "there is no Chromium: install it, or name it in CHROMIUM"
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        opened = launch(playwright, path)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """As `STAGE` of the module says: `kind`, and options of the scheduler."""
    options: dict[str, Any] = {"kind": "redis", **getattr(request.module, "STAGE", {})}
    with staged(options.pop("kind"), tmp_path_factory.mktemp("stage"), **options) as found:
        yield found


class OpenDesk(Protocol):
    def __call__(self, url: str | None = None, **options: Any) -> Desk: ...


@pytest.fixture
def open_desk(browser: Browser, stage: Stage) -> Iterator[OpenDesk]:
    """Makes desks: further ones, or such with a phone or in the dark."""
    with ExitStack() as stack:

        def make(url: str | None = None, **options: Any) -> Desk:
            return stack.enter_context(desk(browser, url or stage.url, **options))

        yield make


@pytest.fixture
def at_desk(open_desk: OpenDesk) -> Desk:
    return open_desk()


@pytest.fixture
def page(at_desk: Desk) -> Page:
    return at_desk.page
