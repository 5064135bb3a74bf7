"""The store goes away and comes back: the page says so, keeps what it has, and is current again."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.ui.browsing import Desk
from tests.ui.stage import Stage

PATIENCE = 20_000.0
STAGE = {"store_timeout": 2}


def outage_of(at_desk: Desk) -> None:
    at_desk.watch.allow("status of 503|status of 500|ERR_|EventSource")


def test_an_outage_of_the_store_is_told_and_its_end(at_desk: Desk, stage: Stage) -> None:
    assert stage.redis is not None
    outage_of(at_desk)
    page = at_desk.go("queues")
    pause = page.get_by_role("button", name="Pause… queue email")
    expect(pause).not_to_have_attribute("aria-disabled", "true")
    stage.redis.pause()
    try:
        banner = page.get_by_role("alert").filter(has_text="The store cannot be reached since")
        expect(banner).to_be_visible(timeout=PATIENCE)
        expect(banner).to_contain_text("submits are refused")
        expect(page.get_by_role("button", name="Offline")).to_be_visible()
        expect(pause).to_have_accessible_description("The store cannot be reached.")
        expect(page.locator("tr[data-row]", has_text="database move")).to_be_visible()
    finally:
        stage.redis.resume()
    expect(page.get_by_role("status").filter(has_text="The store is back.")).to_be_visible(timeout=PATIENCE)
    expect(banner).to_have_count(0)
    expect(pause).not_to_have_attribute("aria-disabled", "true")
    expect(page.get_by_role("button", name="Live.")).to_be_visible(timeout=PATIENCE)


def test_a_page_that_is_opened_in_an_outage_recovers_by_itself(at_desk: Desk, stage: Stage) -> None:
    assert stage.redis is not None
    outage_of(at_desk)
    stage.redis.pause()
    try:
        page = at_desk.page
        page.goto(f"{at_desk.url}/queues")
        expect(page.get_by_role("alert").filter(has_text="The store cannot be reached")).to_be_visible(timeout=PATIENCE)
    finally:
        stage.redis.resume()
    expect(page.locator("tr[data-row]", has_text="database move")).to_be_visible(timeout=PATIENCE)
