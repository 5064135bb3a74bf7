"""A page that is watched: nothing it does wrong goes unnoticed."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Playwright, Request, ViewportSize, expect

PATIENCE = 10_000.0  # milliseconds
DESK: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--disable-dev-shm-usage", "--force-color-profile=srgb",
)  # fmt: skip
WORST = ("serious", "critical")

expect.set_options(timeout=PATIENCE)


def chromium() -> str | None:
    """Where the browser is."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser")  # the first takes half as much of a processor
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def launch(playwright: Playwright, path: str) -> Browser:
    return playwright.chromium.launch(executable_path=path, args=list(FLAGS))


class Watch:
    """What must not happen on a page, and has."""

    def __init__(self, page: Page, origin: str) -> None:
        self._origin = origin
        self._allowed: list[re.Pattern[str]] = []
        self.found: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self._tell(f"an error that nobody caught: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", self._request)

    def allow(self, pattern: str) -> None:
        """What the test itself provokes."""
        self._allowed.append(re.compile(pattern))

    def _tell(self, text: str) -> None:
        if not any(each.search(text) for each in self._allowed):
            self.found.append(text)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._tell(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def _dialog(self, dialog: Dialog) -> None:
        self._tell(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self._origin, "data:", "blob:" + self._origin)):
            self._tell(f"a request to {request.url}")

    def check(self) -> None:
        if self.found:
            raise AssertionError("; ".join(self.found))


class Desk:
    """A person before a browser: goes to places, and looks."""

    def __init__(self, page: Page, url: str, watch: Watch) -> None:
        self.page = page
        self.url = url.rstrip("/")
        self.watch = watch

    def go(self, path: str = "") -> Page:
        """Open an address of the dashboard, and wait until its view has its data."""
        self.page.goto(f"{self.url}/{path}")
        self.settle()
        return self.page

    def settle(self) -> None:
        """Until the view is drawn and none of its parts waits for data."""
        expect(self.page.locator("h1")).not_to_be_empty()
        expect(self.page.locator("main > *, .login").first).to_be_visible()
        expect(self.page.locator("[aria-busy=true]")).to_have_count(0)

    def in_the_dark(self) -> None:
        self.page.emulate_media(color_scheme="dark")

    def on_a_phone(self) -> None:
        self.page.set_viewport_size(PHONE)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def address(self, pattern: str) -> None:
        """Wait until the address, from the mount point on, is this."""
        expect(self.page).to_have_url(re.compile(re.escape(self.url) + pattern + "$"))

    def too_wide(self, patience: float = 10) -> list[str]:
        """What makes the page scroll sideways. Charts draw themselves anew for another width some frames later."""
        deadline = time.monotonic() + patience
        while (found := self.page.evaluate(_TOO_WIDE)) and time.monotonic() < deadline:
            self.page.wait_for_timeout(20)
        return cast("list[str]", found)

    def complaints(self, *rules: str) -> list[str]:
        """What axe finds serious or critical; only of some rules, if they are named."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE_SCRIPT)
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = {"type": "rule", "values": rules}
        found = self.page.evaluate("([where, options]) => axe.run(where, options)", [_LOOKED_AT, options])
        return [_told(each) for each in found["violations"] if each["impact"] in WORST]


def _told(violation: dict[str, Any]) -> str:
    where = "; ".join(f"{node['html'][:160]} [{_why(node)}]" for node in violation["nodes"][:4])
    return f"{violation['id']} ({violation['impact']}), {len(violation['nodes'])} times: {where}"


def _why(node: dict[str, Any]) -> str:
    return " ".join(str(check["message"])[:160] for kind in ("any", "all", "none") for check in node[kind][:1])


# Further rows of a list are made as the first ones are.
_LOOKED_AT = {"include": [["html"]], "exclude": [["tbody tr:nth-child(n+6)"]]}
_TOO_WIDE = """() => {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room && document.body.scrollWidth <= room) return [];
  const clips = (element) => {
    for (let up = element.parentElement; up && up !== document.body; up = up.parentElement) {
      if (getComputedStyle(up).overflowX !== "visible") return true;
    }
    return false;
  };
  const wide = [...document.body.querySelectorAll("*")].filter(
    (each) => each.getBoundingClientRect().right > room + 1 && !clips(each));
  const names = wide.slice(0, 8).map((each) =>
    `${each.tagName} .${each.getAttribute("class")} up to ${Math.round(each.getBoundingClientRect().right)}`);
  return [`the page is ${document.documentElement.scrollWidth} wide in ${room}`, ...names];
}"""


@contextmanager
def desk(browser: Browser, url: str, **options: Any) -> Iterator[Desk]:
    """A browser of one's own, with nothing in its memory; afterwards nothing must have gone wrong in it."""
    given = {"viewport": DESK, "locale": "en-GB", "timezone_id": "Europe/Paris", "color_scheme": "light",
             "reduced_motion": "reduce", **options}  # fmt: skip
    context = browser.new_context(**given)
    context.set_default_timeout(PATIENCE)
    try:
        page = context.new_page()
        watch = Watch(page, _origin(url))
        yield Desk(page, url, watch)
        watch.check()
    finally:
        context.close()


def _origin(url: str) -> str:
    return "/".join(url.split("/")[:3]) + "/"
