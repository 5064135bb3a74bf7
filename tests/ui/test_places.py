"""Every view opens, shows what it is for, in light and dark and on a phone, and axe finds nothing serious in it."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.ui import shop
from tests.ui.browsing import Desk

EMPTY = "empty"
STAGE = {"server_namespaces": (EMPTY,)}

# Each place, the heading, and something that only its data can have brought.
PLACES = {
    "overview": ("", "Overview", "13 dead letters"),
    "tasks": ("tasks", "Tasks", "charge_payment"),
    "failures": ("failures", "Failures", "GatewayTimeout"),
    "schedules": ("schedules", "Schedules", "archive_orders"),
    "queues": ("queues", "Queues", "database move"),
    "queue": ("queues/reports", "reports", "database move"),
    "workers": ("workers", "Workers", "media-1"),
    "worker": ("workers/media-1", "media-1", "resize_image"),
    "limits": ("limits", "Limits and breakers", "bill is not paid"),
    "events": ("events?q=kind:task.died", "Events", "task.died"),
    "audit": ("events/audit", "Audit", ""),
    "alerts": ("alerts", "Alerts", "many_dead_letters"),
    "reports": ("reports", "Reports", "resize_image"),
    "schedule": ("schedules/close_day", "close_day", "Europe/Paris"),
    "schedule-edit": ("schedules/archive_orders/edit", "archive_orders", "03:15"),
    "schedule-new": ("schedules/new", "New schedule", ""),
    "submit": ("tasks/new", "Submit a task", ""),
    "settings": ("settings", "Settings", ""),
    "settings-tokens": ("settings/tokens", "Settings", ""),
    "settings-config": ("settings/config", "Settings", "lease_ttl"),
    "settings-store": ("settings/store", "Settings", ""),
    "nowhere": ("no/such/place", "Not found", "There is nothing at this address."),
}


# Tasks by what has become of them.
TASKS = {
    "running": ("type:resize_image status:running", "4 of 10 tiles"),
    "held": ("type:charge_payment waits:breaker", "held by a breaker"),
    "retrying": ("type:send_email status:retrying", "smtp.example refused"),
    "dead": ("type:render_invoice status:dead", "Why it is dead"),
    "blocked": ("type:import_stock status:blocked", "Task before it"),
}


def look_at(at_desk: Desk, data: str) -> None:
    """In light, in the dark, and on a phone."""
    page = at_desk.page
    if data:
        expect(page.locator("main").get_by_text(data).first).to_be_visible()
    assert at_desk.too_wide() == []
    assert at_desk.complaints() == []
    at_desk.in_the_dark()
    assert at_desk.complaints("color-contrast") == []
    at_desk.on_a_phone()
    expect(page.get_by_role("navigation", name="Main, on a phone")).to_be_visible()
    assert at_desk.too_wide() == []
    assert at_desk.complaints("target-size", "scrollable-region-focusable") == []


@pytest.mark.parametrize("name", PLACES)
def test_a_place_is_there(name: str, at_desk: Desk) -> None:
    path, heading, data = PLACES[name]
    page = at_desk.go(path)
    expect(page.locator("h1")).to_contain_text(heading)
    look_at(at_desk, data)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_shown_whole(name: str, at_desk: Desk) -> None:
    wanted, data = TASKS[name]
    page = at_desk.go(f"tasks?q={quote(wanted)}")
    page.locator("tr[data-row]").first.get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Where the time went")).to_be_visible()
    at_desk.settle()
    look_at(at_desk, data)


def test_a_group_of_failures_is_shown_whole(at_desk: Desk) -> None:
    page = at_desk.go("failures")
    page.get_by_role("link", name="GatewayTimeout").first.click()
    at_desk.address("/failures/.+")
    at_desk.settle()
    look_at(at_desk, "no answer from pay.example in 10 s")


def test_what_is_held_is_counted_apart_from_what_waits(at_desk: Desk) -> None:
    page = at_desk.go()
    held = shop.HELD_BY_PAUSE + shop.HELD_BY_BREAKER + shop.HELD_BY_LIMIT + shop.HELD_BY_SWITCH
    expect(page.locator("main")).to_contain_text(f"nothing waits; {held} are held")


@pytest.mark.parametrize(
    ("path", "words"),
    [("", "No task yet. Submit one:"), ("tasks", "No task yet. Submit one:"), ("failures", "No dead letters."),
     ("workers", "No worker is up. Start one:"), ("queues", "Queues appear with their first task or worker."),
     ("schedules", "No schedule yet."), ("limits", "No rate is limited."), ("alerts", "")],
)  # fmt: skip
def test_a_namespace_without_anything_teaches(path: str, words: str, at_desk: Desk) -> None:
    page = at_desk.go(f"{path}?ns={EMPTY}")
    expect(page.locator("aside.side")).to_contain_text(EMPTY)
    expect(page.locator("main")).to_contain_text(words)
    assert at_desk.too_wide() == []
    assert at_desk.complaints() == []
