"""Queues, schedules, workers, limits, breakers and switches are steered, each with its words."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.ui.browsing import Desk
from tests.ui.stage import Stage


def test_a_queue_is_paused_with_a_note_and_resumed(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("queues")
    row = page.locator("tr[data-row]", has_text="email")
    row.get_by_role("button", name="Pause… queue email").click()
    asked = page.get_by_role("dialog", name="Pause queue")
    asked.get_by_label("Note").fill("provider is down")
    asked.get_by_role("button", name="Pause queue").click()
    expect(row).to_contain_text("provider is down")
    task_id = stage.submit("send_email", {"to": "a@example.com", "subject": "x"})
    row.get_by_role("button", name="Resume queue email").click()
    expect(row.get_by_role("button", name="Pause… queue email")).to_be_visible()
    at_desk.go(f"tasks/{task_id}")
    expect(page.locator(".task-head").get_by_text("success")).to_be_visible()


def test_a_schedule_is_edited_with_a_live_preview_and_run(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("schedules/archive_orders")
    page.get_by_role("button", name="Edit", exact=False).first.click()
    at_desk.address("/schedules/archive_orders/edit")
    line = page.get_by_label("Cron line")
    line.fill("15 25 * * *")
    expect(page.get_by_role("alert")).to_contain_text("25")
    expect(line).to_have_attribute("aria-invalid", "true")
    line.fill("45 4 * * *")
    expect(page.get_by_role("region", name="Preview")).to_contain_text("at 04:45")
    expect(page.get_by_role("region", name="What changes")).to_contain_text("15 3 * * *")
    page.get_by_role("button", name="Save…").click()
    page.get_by_role("dialog", name="Change archive_orders").get_by_role("button", name="Change 1 field").click()
    at_desk.address("/schedules/archive_orders")
    expect(page.locator("main")).to_contain_text("45 4 * * *")
    page.get_by_role("button", name="Run now…").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Run archive_orders now").click()
    page.get_by_role("status").get_by_role("link", name="Show the task").click()
    expect(page.locator(".task-head").get_by_text("success")).to_be_visible()


def test_a_schedule_is_made_paused_resumed_and_deleted(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("schedules")
    page.get_by_role("button", name="New schedule").click()
    page.get_by_label("Type", exact=True).fill("echo")
    page.get_by_label("Id", exact=True).fill("by_hand")
    page.get_by_label("Cron line").fill("0 5 * * *")
    expect(page.get_by_role("region", name="Preview")).to_contain_text("at 05:00")
    page.get_by_role("button", name="Create the schedule…").click()
    page.get_by_role("dialog").get_by_role("button", name="Create by_hand").click()
    at_desk.address("/schedules/by_hand")
    page.get_by_role("button", name="Pause…").first.click()
    asked = page.get_by_role("dialog", name="Pause by_hand")
    asked.get_by_label("Note").fill("the books are closed")
    asked.get_by_role("button", name="Pause by_hand").click()
    expect(page.get_by_text("It is paused")).to_be_visible()
    page.get_by_role("button", name="Resume…").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Resume by_hand").click()
    expect(page.get_by_text("It is paused")).to_have_count(0)
    page.get_by_role("button", name="More actions").first.click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete by_hand").click()
    at_desk.address("/schedules")
    expect(page.get_by_role("link", name="by_hand")).to_have_count(0)


def test_a_worker_is_drained_and_resumed(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("workers")
    row = page.locator("tr[data-row]", has_text="media-1")
    row.get_by_role("button", name="Drain").click()
    page.get_by_role("dialog", name="Drain worker").get_by_role("button", name="Drain worker").click()
    expect(row).to_contain_text("drain")
    row.get_by_role("button", name="Resume").click()
    expect(row.get_by_role("button", name="Drain")).to_be_visible()


def test_a_limit_is_set_changed_and_removed(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("limits")
    page.get_by_role("region", name="Rate limits").get_by_role("button", name="Set a limit…").click()
    asked = page.get_by_role("dialog", name="Set a limit")
    asked.get_by_label("Name").fill("echo")
    asked.get_by_label("Starts").fill("often")
    expect(asked.get_by_role("alert")).to_contain_text("Write a rate such as")
    asked.get_by_label("Starts").fill("100/m")
    asked.get_by_label("Note").fill("be gentle")
    asked.get_by_role("button", name="Set the limit").click()
    row = page.get_by_role("region", name="Rate limits").locator("tr[data-row]", has_text="echo")
    expect(row).to_contain_text("100/m")
    expect(row).to_contain_text("be gentle")
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove the limit").click()
    expect(row).to_have_count(0)


def test_a_breaker_is_opened_and_closed(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("limits")
    breakers = page.get_by_role("region", name="Breakers")
    breakers.get_by_role("button", name="Open a breaker…").click()
    asked = page.get_by_role("dialog", name="Open a breaker")
    asked.get_by_label("Name").fill("echo")
    asked.get_by_label("Note").fill("it hurts others")
    asked.get_by_role("button", name="Open the breaker").click()
    row = breakers.locator("tr[data-row]", has_text="echo")
    expect(row).to_contain_text("it hurts others")
    row.get_by_role("button", name="Close…").click()
    asked = page.get_by_role("dialog", name="Close a breaker")
    asked.get_by_label("Note").fill("it is mended")
    asked.get_by_role("button", name="Close the breaker").click()
    expect(row).to_have_count(0)
    at_desk.go("events/audit")
    expect(page.locator("main")).to_contain_text("it is mended")


def test_a_switch_is_put_off_and_on(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("limits")
    switches = page.get_by_role("region", name="Switches")
    switches.get_by_role("button", name="Switch off…").click()
    asked = page.get_by_role("dialog", name="Switch off")
    asked.get_by_label("What").select_option("key")
    expect(asked.get_by_role("button", name="Switch it off")).to_have_attribute("aria-disabled", "true")
    asked.get_by_label("Name").fill("umbrella")
    expect(asked.get_by_label("It ends")).to_have_value("1h")
    asked.get_by_label("Note").fill("they asked for it")
    asked.get_by_role("button", name="Switch it off").click()
    row = switches.locator("tr[data-row]", has_text="umbrella")
    expect(row).to_contain_text("they asked for it")
    expect(row).to_contain_text(re.compile(r"in (1 h|59 min)"))
    row.get_by_role("button", name="Switch on…").click()
    page.get_by_role("dialog", name="Switch on").get_by_role("button", name="Switch it on").click()
    expect(row).to_have_count(0)


def test_a_switch_lasts_only_if_that_is_chosen(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("limits")
    switches = page.get_by_role("region", name="Switches")
    switches.get_by_role("button", name="Switch off…").click()
    asked = page.get_by_role("dialog", name="Switch off")
    asked.get_by_label("What").select_option("key")
    asked.get_by_label("Name").fill("acme")
    asked.get_by_label("It ends").select_option("not by itself: off until somebody switches it on")
    asked.get_by_role("button", name="Switch it off").click()
    row = switches.locator("tr[data-row]", has_text="acme")
    expect(row).to_contain_text("until somebody switches it on")
    row.get_by_role("button", name="Switch on…").click()
    page.get_by_role("dialog", name="Switch on").get_by_role("button", name="Switch it on").click()
    expect(row).to_have_count(0)


def test_what_was_done_is_in_the_audit_log(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("queues")
    page.get_by_role("button", name="Pause… queue media").click()
    asked = page.get_by_role("dialog", name="Pause queue")
    asked.get_by_label("Note").fill("for the audit")
    asked.get_by_role("button", name="Pause queue").click()
    page.get_by_role("button", name="Resume queue media").click()
    at_desk.go("events/audit")
    expect(page.locator("main")).to_contain_text("for the audit")
    expect(page.locator("main")).to_contain_text("resumed a queue")


def test_the_audit_log_is_filtered_and_exported_alike(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("queues")
    page.get_by_role("button", name="Pause… queue default").click()
    page.get_by_role("dialog", name="Pause queue").get_by_role("button", name="Pause queue").click()
    page.get_by_role("button", name="Resume queue default").click()
    expect(page.get_by_role("button", name="Pause… queue default")).to_be_visible()
    at_desk.go("events/audit")
    rows = page.locator("tr[data-row]")
    expect(rows.filter(has_text="paused a queue").first).to_be_visible()
    at_desk.press("/")
    page.keyboard.type("what:resumed target:DEFAULT ")
    at_desk.address(r"/events/audit\?q=what.*target.*")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("resumed a queue")
    with page.expect_download() as coming:
        page.get_by_role("link", name="CSV").click()
    lines = coming.value.path().read_text().splitlines()
    assert len(lines) == 2
    assert "resumed a queue,default" in lines[1]
    page.get_by_role("combobox", name="Filter the audit log").fill("who:nobody ")
    expect(page.locator("main")).to_contain_text("No entry fits this filter.")
    at_desk.on_a_phone()
    assert at_desk.too_wide() == []
    page.get_by_role("button", name="Show all entries").click()
    at_desk.address("/events/audit")
    expect(rows.filter(has_text="paused a queue").first).to_be_visible()
    at_desk.in_the_dark()
    assert at_desk.complaints() == []
