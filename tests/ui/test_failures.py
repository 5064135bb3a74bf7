"""What broke is sent back: seen first, undone if it was a slip, and followed to its end."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.ui import shop
from tests.ui.browsing import Desk
from tests.ui.stage import Stage


def test_a_group_of_dead_letters_is_retried(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("failures")
    page.get_by_role("link", name="TemplateError").first.click()
    at_desk.settle()
    expect(page.locator("main")).to_contain_text("unknown field total")
    count = shop.MISSPELT
    asked = page.get_by_role("dialog", name="Retry dead letters of TemplateError")
    for is_undone in (True, False):
        page.get_by_role("button", name=f"Retry {count} tasks…").click()
        expect(asked).to_contain_text(f"Retry {count} dead letters of TemplateError, at most 50 tasks a second.")
        asked.get_by_role("button", name=f"Retry {count} tasks").click()
        toasts = page.get_by_role("status")
        expect(toasts).to_contain_text(f"Retries {count} tasks")
        if is_undone:
            at_desk.press("z")
            expect(toasts).to_contain_text("Nothing was changed.")
    expect(toasts).to_contain_text(f"{count} retried.")
    # They wait: their queue is paused.
    expect(page.get_by_text("No dead letter of this error is left.")).to_be_visible()
    toasts.get_by_role("link", name="Show tasks of type render_invoice").click()
    at_desk.address(r"/tasks\?q=type.*render_invoice")
    expect(page.locator("tr[data-row]", has_text="ready")).to_have_count(shop.HELD_BY_PAUSE + count)


def test_dead_letters_are_removed_only_after_their_number_was_typed(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("failures")
    page.get_by_role("link", name="FileNotFoundError").first.click()
    page.get_by_role("button", name=f"Remove {shop.LOST}…").click()
    asked = page.get_by_role("dialog", name="Remove dead letters of FileNotFoundError")
    remove = asked.get_by_role("button", name=f"Remove {shop.LOST} tasks")
    expect(remove).to_have_attribute("aria-disabled", "true")
    asked.get_by_label(f"Type {shop.LOST} to go on").fill(str(shop.LOST))
    remove.click()
    expect(page.get_by_role("status")).to_contain_text(f"{shop.LOST} removed.")


def test_one_dead_letter_is_retried_on_its_own_page(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("tasks?q=status:dead+type:charge_payment")
    page.locator("tr[data-row]").first.get_by_role("link").first.click()
    page.get_by_role("button", name="Retry…").click()
    page.get_by_role("dialog").get_by_role("button", name="Retry the task").click()
    expect(page.get_by_text("held by a breaker")).to_be_visible()
