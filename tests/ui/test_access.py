"""Who signs in sees what they may do, and the reason where they may not."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.ui import shop
from tests.ui.browsing import DESK, Desk
from tests.ui.conftest import OpenDesk
from tests.ui.stage import Stage

STAGE = {"server_tokens": True}


def sign_in(desk: Desk, token: str, path: str = "") -> None:
    desk.watch.allow("status of 401")
    desk.page.goto(f"{desk.url}/{path}")
    desk.page.get_by_label("Token").fill(token)
    desk.page.get_by_role("button", name="Sign in").click()
    expect(desk.page.locator("aside.side")).to_be_visible()
    desk.settle()


def test_a_stranger_is_led_to_the_login_and_back(at_desk: Desk, stage: Stage) -> None:
    at_desk.watch.allow("status of 401")
    page = at_desk.page
    page.goto(f"{at_desk.url}/tasks?q=status:dead")
    at_desk.address(r"/login\?next=.*")
    expect(page.get_by_label("Token")).to_be_focused()
    page.get_by_label("Token").fill("tw_wrong")
    at_desk.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("This token is not known or has expired.")
    assert at_desk.complaints() == []
    page.get_by_label("Token").fill(stage.token("viewer"))
    at_desk.press("Enter")
    at_desk.address(r"/tasks\?q=status.*dead")
    expect(page.locator("tr[data-row]").first).to_contain_text("dead")


def test_a_viewer_sees_actions_off_with_the_reason(at_desk: Desk, stage: Stage) -> None:
    sign_in(at_desk, stage.token("viewer", "vera"))
    page = at_desk.page
    expect(page.locator("aside.side")).to_contain_text("vera, viewer")
    task_id = stage.submit("import_stock", {"sku": "v", "count": 1}, delay=shop.HOUR)
    at_desk.go(f"tasks/{task_id}")
    cancel = page.get_by_role("button", name="Cancel…").first
    expect(cancel).to_have_attribute("aria-disabled", "true")
    expect(cancel).to_have_accessible_description("Needs the role operator. You are a viewer.")
    cancel.click(force=True)
    at_desk.press("c")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Submit a task")).to_have_attribute("aria-disabled", "true")
    for path, name in (("alerts", "Silence… many_dead_letters"), ("failures", "Mute…"), ("failures", "Remove")):
        at_desk.go(path)
        button = page.get_by_role("button", name=name).first
        expect(button).to_have_accessible_description("Needs the role operator. You are a viewer.")
    at_desk.go("settings/tokens")
    expect(page.locator("main")).to_contain_text("Needs the role admin. You are a viewer.")
    assert stage.status(task_id) == "pending"


def test_the_palette_shows_a_viewer_actions_off_with_the_reason(at_desk: Desk, stage: Stage) -> None:
    sign_in(at_desk, stage.token("viewer", "vera"))
    page = at_desk.page
    offered = (
        ("queues/default", "Pause queue… default", "operator"),
        ("workers/web-1", "Drain worker…", "operator"),
        ("workers/web-1", "Change worker…", "operator"),
        ("settings/tokens", "Create a token…", "admin"),
        ("queues", "Submit a task", "submitter"),
    )
    for path, label, role in offered:
        at_desk.go(path)
        at_desk.press("Control+k")
        page.get_by_role("combobox", name="Search or jump to").fill(label)
        option = page.get_by_role("option", name=label)
        expect(option).to_contain_text(f"Needs the role {role}. You are a viewer.")
        expect(option).to_have_attribute("aria-disabled", "true")
        at_desk.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(1)  # the palette stays, and nothing is asked
        at_desk.on_a_phone()
        assert at_desk.too_wide() == []
        assert option.evaluate("each => each.scrollWidth <= each.clientWidth")
        page.set_viewport_size(DESK)


def test_an_operator_may_steer_but_not_see_tokens(at_desk: Desk, stage: Stage) -> None:
    sign_in(at_desk, stage.token("operator", "olga"))
    page = at_desk.page
    task_id = stage.submit("import_stock", {"sku": "o", "count": 1}, delay=shop.HOUR)
    at_desk.go(f"tasks/{task_id}")
    page.get_by_role("button", name="Cancel…").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the task").click()
    expect(page.locator(".task-head").get_by_text("cancelled")).to_be_visible()
    at_desk.go("failures")
    page.get_by_role("button", name="Remove").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Back").click()
    at_desk.go("settings/tokens")
    expect(page.locator("main")).to_contain_text("Needs the role admin. You are an operator.")
    at_desk.go("events/audit")
    expect(page.locator("main")).to_contain_text("olga")


def test_a_token_is_shown_once_works_and_is_revoked(open_desk: OpenDesk, stage: Stage) -> None:
    admin = open_desk(permissions=["clipboard-read", "clipboard-write"])
    sign_in(admin, stage.token("admin", "ada"), "settings/tokens")
    page = admin.page
    page.get_by_role("button", name="Create a token…").click()
    asked = page.get_by_role("dialog", name="Create a token")
    asked.get_by_label("Name", exact=True).fill("ci")
    asked.get_by_label("Role").select_option("operator")
    asked.get_by_role("button", name="Create the token").click()
    shown = page.get_by_role("dialog", name="The token ci")
    token = shown.locator("pre").inner_text().strip()
    assert token.startswith("tw_")
    shown.get_by_role("button", name="Close").click()
    expect(shown).to_contain_text("It has not been copied")
    shown.get_by_role("button", name="Copy the token").click()
    expect(page.locator(".toasts")).to_contain_text("The token")
    shown.get_by_role("button", name="Close").click()
    expect(shown).to_have_count(0)
    assert token not in page.content()

    other = open_desk()
    sign_in(other, token)
    expect(other.page.locator("aside.side")).to_contain_text("ci, operator")
    page.get_by_role("button", name="Revoke ci…").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke the token").click()
    expect(page.locator(".toasts")).to_contain_text("The token ci is revoked.")
    other.page.get_by_role("link", name="Queues").first.click()
    expect(other.page).to_have_url(re.compile("/login"), timeout=15_000)


def test_signing_out_ends_the_session(at_desk: Desk, stage: Stage) -> None:
    sign_in(at_desk, stage.token("viewer", "tom"))
    page = at_desk.page
    page.get_by_role("button", name="Sign out").click()
    at_desk.address(r"/login.*")
    page.goto(f"{at_desk.url}/tasks")
    at_desk.address(r"/login\?next=.*")
