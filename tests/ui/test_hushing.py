"""Alerts are silenced and errors muted, each with an end and a note, and heard again; rows are dismissed."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.ui.browsing import Desk
from tests.ui.conftest import OpenDesk
from tests.ui.stage import Stage


def fill_in(asked: Locator, button: str, note: str) -> None:
    """It can be done only when both are said."""
    act = asked.get_by_role("button", name=button)
    expect(act).to_have_attribute("aria-disabled", "true")
    asked.get_by_label("It ends").select_option("4h")
    expect(act).to_have_attribute("aria-disabled", "true")
    expect(asked.get_by_role("option", name="not by itself")).to_have_count(0)
    asked.get_by_label("Note").fill(note)
    act.click()
    expect(asked).to_have_count(0)


def attention(page: Page, text: str) -> Locator:
    return page.get_by_role("region", name="How it is").get_by_role("listitem").filter(has_text=text)


def test_an_alert_is_silenced_and_heard_again(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("alerts")
    summary = page.locator(".sumline")
    expect(summary).to_contain_text("1 alert fires.")
    page.get_by_role("button", name="Silence… many_dead_letters").click()
    fill_in(page.get_by_role("dialog", name="Silence an alert"), "Silence the alert", "we know of it")
    row = page.get_by_role("region", name="Firing").get_by_role("listitem")
    expect(row).to_contain_text("silenced by")
    expect(row).to_contain_text("we know of it")
    expect(summary).to_contain_text("Nothing fires.")
    expect(summary).to_contain_text("1 silenced alert fires.")
    assert at_desk.too_wide() == []
    assert at_desk.complaints() == []
    at_desk.go()
    expect(attention(page, "many_dead_letters").locator(".c-rest")).to_be_visible()
    expect(attention(page, "many_dead_letters")).to_contain_text("silenced by")
    at_desk.go("alerts/many_dead_letters")
    expect(page.locator("main")).to_contain_text("we know of it")
    page.get_by_role("button", name="End the silence of many_dead_letters").click()
    expect(page.get_by_role("button", name="Silence… many_dead_letters")).to_be_visible()
    expect(page.locator("main")).to_contain_text("its silence is over")
    at_desk.go()
    expect(attention(page, "many_dead_letters").locator(".c-bad")).to_be_visible()


def test_an_error_is_muted_and_heard_again(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("failures")
    page.get_by_role("link", name="TemplateError").first.click()
    panel = page.get_by_role("region", name="Failure TemplateError")
    panel.get_by_role("button", name="Mute…").click()
    fill_in(page.get_by_role("dialog", name="Mute an error"), "Mute the error", "the old template")
    expect(panel).to_contain_text("muted by")
    expect(panel).to_contain_text("the old template")
    assert at_desk.complaints() == []
    at_desk.go("failures")
    row = page.locator("tr[data-row]", has_text="TemplateError")
    expect(row.get_by_text("muted", exact=True)).to_be_visible()
    assert at_desk.too_wide() == []
    assert at_desk.complaints() == []
    at_desk.go()
    expect(attention(page, "dead letters")).to_contain_text("Muted errors are not counted.")
    at_desk.go("failures?q=is:muted")
    page.get_by_role("button", name="Unmute").click()
    expect(page.get_by_text("No error matches.")).to_be_visible()


def test_a_row_is_dismissed_by_keyboard_for_this_browser_until_it_is_another(open_desk: OpenDesk, stage: Stage) -> None:
    stage.do(stage.app.queues.pause("email", "spring cleaning"))
    mine = open_desk()
    page = mine.go()
    verdict = page.locator(".verdict > .h")
    before = verdict.inner_text()
    held = attention(page, "Queue email is paused")
    held.get_by_role("button", name="Dismiss: Queue email is paused").press("Enter")
    expect(held).to_have_count(0)
    expect(verdict).not_to_have_text(before)
    expect(page.get_by_role("button", name="Show it")).to_be_focused()
    mine.go()
    expect(attention(page, "Breaker")).to_be_visible()
    expect(held).to_have_count(0)
    expect(page.get_by_text("1 dismissed.")).to_be_visible()
    other = open_desk()
    expect(attention(other.go(), "Queue email is paused")).to_be_visible()
    mine.on_a_phone()
    page.get_by_role("button", name="Show it").click()
    assert mine.too_wide() == []
    assert mine.complaints() == []
    held.get_by_role("button", name="Bring back: Queue email is paused").click()
    expect(page.get_by_text("1 dismissed.")).to_have_count(0)
    held.get_by_role("button", name="Dismiss").click()
    expect(held).to_have_count(0)
    stage.do(stage.app.queues.resume("email"))
    expect(page.get_by_text("1 dismissed.")).to_have_count(0)
    stage.do(stage.app.queues.pause("email", "again"))
    expect(held).to_be_visible()
    stage.do(stage.app.queues.resume("email"))
