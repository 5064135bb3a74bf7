"""Everything by keyboard, and everything has an address."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.ui import shop
from tests.ui.browsing import Desk
from tests.ui.stage import Stage


def test_places_are_reached_by_two_keys(at_desk: Desk) -> None:
    page = at_desk.go()
    for title in ("Tasks", "Failures", "Queues", "Workers", "Schedules", "Limits", "Events", "Alerts", "Reports"):
        at_desk.press("g", title[0].lower())
        at_desk.address(rf"/{title.lower()}(\?.*)?")
        expect(page.locator("h1")).to_contain_text(title)
    at_desk.press("g", "o")
    expect(page.locator("h1")).to_contain_text("Overview")


def test_a_list_is_worked_by_keys(at_desk: Desk) -> None:
    page = at_desk.go("tasks?q=status:dead")
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(shop.TIMED_OUT + shop.MISSPELT + shop.LOST + shop.STOPPED)
    at_desk.press("j", "j", "k")
    expect(rows.nth(0)).to_be_focused()
    at_desk.press("x", "j", "x")
    expect(page.get_by_role("region", name="Chosen rows")).to_contain_text("2 selected")
    at_desk.press("r")
    expect(page.get_by_role("dialog", name="Retry tasks")).to_contain_text("Retry 2 tasks")
    at_desk.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Choose none").click()
    at_desk.press("j", "Enter")
    at_desk.address("/tasks/[^?]+")
    at_desk.press("u")
    at_desk.address(r"/tasks(\?.*)?")


def test_a_filter_is_typed_and_completed_by_keys(at_desk: Desk) -> None:
    page = at_desk.go("tasks")
    at_desk.press("/")
    field = page.get_by_role("combobox", name="Filter tasks")
    expect(field).to_be_focused()
    page.keyboard.type("type:charge")
    expect(page.get_by_role("option", name=re.compile("charge_payment"))).to_be_visible()
    at_desk.press("Tab")
    at_desk.address(r"/tasks\?q=type.*charge_payment")
    expect(page.locator("tr[data-row]")).to_have_count(shop.TIMED_OUT + shop.HELD_BY_BREAKER)
    field.focus()
    at_desk.press("Backspace")
    expect(field).to_have_value("type:charge_payment")


def test_the_palette_finds_places_names_and_ids(at_desk: Desk, stage: Stage) -> None:
    task_id = stage.submit("import_stock", {"sku": "palette", "count": 1})
    page = at_desk.go()
    for text, path in (
        ("fail", "/failures"),
        ("archive_orders", "/schedules/archive_orders"),
        (task_id, f"/tasks/{task_id}"),
    ):
        at_desk.press("Control+k")
        expect(page.get_by_role("combobox", name="Search or jump to")).to_be_focused()
        page.keyboard.type(text)
        expect(page.get_by_role("option", selected=True)).to_contain_text(re.compile(text[-8:], re.IGNORECASE))
        at_desk.press("Enter")
        at_desk.address(rf"{path}(\?.*)?")
    at_desk.press("Control+k")
    expect(page.get_by_role("combobox", name="Search or jump to")).to_be_focused()
    at_desk.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_all_keys_are_listed_and_can_be_switched_off(at_desk: Desk) -> None:
    page = at_desk.go("tasks")
    at_desk.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Next row")
    keys.get_by_role("switch").click()
    at_desk.press("Escape")
    at_desk.press("g", "f")
    at_desk.press("Control+k")
    expect(page.get_by_role("combobox", name="Search or jump to")).to_be_focused()
    at_desk.press("Escape")
    at_desk.address("/tasks")


def test_no_key_acts_in_a_field(at_desk: Desk) -> None:
    page = at_desk.go("tasks/new")
    field = page.get_by_label("Type", exact=True)
    field.click()
    page.keyboard.type("g t d p ?")
    expect(field).to_have_value("g t d p ?")
    at_desk.address("/tasks/new")


def test_a_reload_restores_filter_tab_and_open_row(at_desk: Desk) -> None:
    page = at_desk.go("tasks?q=status:dead+type:render_invoice")
    page.reload()
    at_desk.settle()
    expect(page.locator("tr[data-row]")).to_have_count(shop.MISSPELT + shop.LOST)
    at_desk.go("workers")
    page.locator("tr[data-row]", has_text="media-1").click(position={"x": 300, "y": 10})
    at_desk.address(r"/workers\?open=media-1")
    page.reload()
    at_desk.settle()
    expect(page.locator("tr.detail")).to_contain_text("resize_image")
    at_desk.go("failures")
    page.get_by_role("button", name="By type").or_(page.get_by_role("radio", name="By type")).or_(
        page.get_by_role("link", name="By type")
    ).first.click()
    at_desk.address(r"/failures\?by=type")
    page.reload()
    at_desk.settle()
    expect(page.get_by_role("table", name="Failures by type")).to_be_visible()


def test_back_and_forward_go_through_filters(at_desk: Desk) -> None:
    page = at_desk.go("tasks")
    page.get_by_role("link", name="dead").first.click()
    at_desk.address(r"/tasks\?q=status.*dead")
    page.get_by_role("link", name="running").first.click()
    at_desk.address(r"/tasks\?q=status.*running")
    page.go_back()
    at_desk.address(r"/tasks\?q=status.*dead")
    expect(page.locator("tr[data-row]").first).to_contain_text("dead")


def test_the_theme_is_remembered(at_desk: Desk) -> None:
    page = at_desk.go()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    at_desk.press("d")
    page.wait_for_function(f"{ground} !== '{light}'")
    page.reload()
    at_desk.settle()
    assert page.evaluate(ground) != light
