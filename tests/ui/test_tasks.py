"""What a person does with tasks: submit, find, understand, act on one and on many."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Route, expect

from tests.ui import shop
from tests.ui.browsing import Desk
from tests.ui.conftest import OpenDesk
from tests.ui.stage import Stage


def test_a_task_is_submitted_by_the_form_and_followed_to_its_result(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go()
    page.get_by_role("button", name="Submit a task").click()
    at_desk.address("/tasks/new")
    page.get_by_label("Type", exact=True).fill("import_stock")
    page.get_by_label("sku").fill("sku-by-hand")
    page.get_by_role("button", name="Submit the task").click()
    expect(page.get_by_text("One field needs a look.")).to_be_visible()
    page.get_by_label("count").fill("seven")
    expect(page.get_by_label("count")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("count").fill("7")
    page.get_by_label("Key", exact=True).fill("acme")
    page.get_by_role("button", name="Submit the task").click()
    at_desk.address(r"/tasks/[0-9a-f-]{36}")
    expect(page.locator(".task-head").get_by_text("success")).to_be_visible()
    expect(page.get_by_role("region", name="Result")).to_contain_text("7")
    expect(page.get_by_role("region", name="Payload")).to_contain_text("sku-by-hand")


def test_a_mistake_in_a_filter_is_marked_in_place_and_the_task_found(at_desk: Desk, stage: Stage) -> None:
    task_id = stage.submit("import_stock", {"sku": "wanted", "count": 1}, delay=shop.HOUR, key="find-me")
    at_desk.watch.allow("status of 400")
    page = at_desk.go("tasks")
    field = page.get_by_role("combobox", name="Filter tasks")
    field.fill("statsu:pending")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("statsu is not a qualifier. Did you mean status?")
    expect(page.locator(".tok.wrong")).to_have_text(re.compile("statsu"))
    page.get_by_role("button", name="Remove statsu:pending").click()
    field.fill("key:find-me")
    field.press("Enter")
    at_desk.address(r"/tasks\?q=key.*find-me")
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(1)
    rows.get_by_role("link").first.click()
    at_desk.address(f"/tasks/{task_id}")


def test_the_tasks_of_a_filter_are_exported(at_desk: Desk, stage: Stage) -> None:
    ids = {stage.submit("import_stock", {"sku": "e", "count": 1}, delay=shop.HOUR, key="to-a-file") for _ in range(3)}
    page = at_desk.go("tasks?q=key:to-a-file")
    for name, read in (("CSV", _ids_of_csv), ("JSON", _ids_of_json)):
        page.get_by_role("button", name="Export").press("Enter")
        with page.expect_download() as coming:
            page.get_by_role("menuitem", name=name).press("Enter")
        assert coming.value.suggested_filename == f"tickwork-tasks.{name.lower()}"
        assert read(coming.value.path().read_text()) == ids
        expect(page.get_by_role("button", name="Export")).to_be_focused()


def _ids_of_csv(text: str) -> set[str]:
    return {line.split(",")[0] for line in text.splitlines()[1:]}


def _ids_of_json(text: str) -> set[str]:
    return {each["id"] for each in json.loads(text)}


def test_an_export_that_is_cut_says_so_and_one_under_way_is_stopped(at_desk: Desk) -> None:
    page = at_desk.go("tasks")
    row = page.evaluate("fetch('api/v1/tasks?limit=1').then((answer) => answer.json())")["items"][0]
    endless = False

    def answer(route: Route) -> None:
        asked = parse_qs(urlsplit(route.request.url).query)
        start, limit = int(asked.get("cursor", ["0"])[0]), int(asked["limit"][0])
        items: list[Any] = [] if endless else [{**row, "id": f"{start + at}"} for at in range(limit)]
        body = {"items": items, "cursor": f"{start + limit}", "looked": limit, "total": None}
        route.fulfill(json=body)

    page.route("**/api/v1/tasks?*limit=500*", answer)
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as coming:
        page.get_by_role("menuitem", name="JSON").click()
    assert len(json.loads(coming.value.path().read_text())) == 10_000
    expect(page.get_by_role("status")).to_contain_text("The first 10,000 tasks are in the file.")
    endless = True
    page.get_by_role("button", name="Export").click()
    page.get_by_role("menuitem", name="JSON").click()
    expect(page.get_by_role("status").filter(has_text="looked at")).to_contain_text("file: 0 so far")
    page.get_by_role("button", name="Export").click()
    page.get_by_role("menuitem", name="Stop the JSON export").click()
    expect(page.get_by_role("status").filter(has_text="stopped")).to_contain_text("there is no file")


def test_why_a_task_waits_is_told_and_it_is_cancelled(at_desk: Desk, stage: Stage) -> None:
    task_id = stage.submit("charge_payment", {"order": "order-1", "amount": 1.0}, key="why")
    page = at_desk.go(f"tasks/{task_id}")
    expect(page.get_by_text("Why it is not running")).to_be_visible()
    expect(page.locator(".why")).to_contain_text("charge_payment")
    expect(page.get_by_text("held by a breaker")).to_be_visible()
    page.get_by_role("button", name="Cancel…").click()
    asked = page.get_by_role("dialog", name="Cancel this task")
    expect(asked.get_by_role("button", name="Back")).to_be_focused()
    asked.get_by_role("button", name="Cancel the task").click()
    expect(page.locator(".task-head").get_by_text("cancelled")).to_be_visible()
    assert stage.status(task_id) == "cancelled"


def test_a_running_task_shows_its_progress_and_its_log(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("tasks?q=status:running+type:resize_image")
    page.locator("tr[data-row]").first.get_by_role("link").first.click()
    expect(page.get_by_text("4 of 10 tiles")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("no colour profile")


def test_a_dead_task_shows_its_error_and_where_the_time_went(at_desk: Desk) -> None:
    page = at_desk.go("tasks?q=status:dead+type:render_invoice")
    page.locator("tr[data-row]").first.get_by_role("link").first.click()
    expect(page.get_by_text("Why it is dead")).to_be_visible()
    expect(page.get_by_role("region", name="Where the time went")).to_contain_text("Attempt 1")
    expect(page.get_by_role("region", name="Where the time went")).to_contain_text("shop.py")


def test_a_task_is_cloned_and_edited(at_desk: Desk, stage: Stage) -> None:
    task_id = stage.submit("import_stock", {"sku": "first", "count": 1}, key="clone", tags={"env": "prod"})
    page = at_desk.go(f"tasks/{task_id}")
    page.get_by_role("button", name="Clone and edit").click()
    expect(page.get_by_text("That task is not changed")).to_be_visible()
    expect(page.get_by_label("sku")).to_have_value("first")
    page.get_by_label("sku").fill("second")
    page.get_by_role("button", name="Submit the task").click()
    expect(page.get_by_role("region", name="Payload")).to_contain_text("second")
    expect(page.locator("main")).to_contain_text("prod")
    assert task_id not in page.url


def test_bulk_cancel_takes_what_the_preview_has_shown_and_not_more(at_desk: Desk, stage: Stage) -> None:
    before = [stage.submit("import_stock", {"sku": "b", "count": n}, delay=shop.HOUR, key="bulk") for n in range(4)]
    page = at_desk.go("tasks?q=key:bulk")
    expect(page.locator("tr[data-row]")).to_have_count(4)
    page.locator("tr[data-row]").first.get_by_role("checkbox").check()
    chosen = page.get_by_role("region", name="Chosen rows")
    chosen.get_by_role("button", name="Select all 4 that match").click()
    chosen.get_by_role("button", name="Cancel…").click()
    asked = page.get_by_role("dialog", name="Cancel tasks")
    expect(asked).to_contain_text("Cancel 4 tasks")
    expect(asked).to_contain_text("are not touched")
    late = stage.submit("import_stock", {"sku": "late", "count": 1}, delay=shop.HOUR, key="bulk")
    asked.get_by_role("button", name="Cancel 4 tasks").click()
    toast = page.get_by_role("status").filter(has_text="Cancels 4 tasks")
    toast.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Nothing was changed.")).to_be_visible()
    assert {stage.status(each) for each in before} == {"pending"}
    page.locator("tr[data-row]").first.get_by_role("checkbox").check()
    chosen.get_by_role("button", name="Select all").click()
    chosen.get_by_role("button", name="Cancel…").click()
    expect(asked.get_by_role("button", name="Cancel 5 tasks")).to_be_visible()
    later = stage.submit("import_stock", {"sku": "later", "count": 1}, delay=shop.HOUR, key="bulk")
    asked.get_by_role("button", name="Cancel 5 tasks").click()
    expect(page.get_by_text("5 cancelled.")).to_be_visible()
    assert {stage.status(each) for each in [*before, late]} == {"cancelled"}
    assert stage.status(later) == "pending"


def test_a_view_is_saved_shared_and_deleted(at_desk: Desk, stage: Stage) -> None:
    page = at_desk.go("tasks?q=status:dead+type:charge_payment")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Save this filter…").click()
    asked = page.get_by_role("dialog", name="Save this filter")
    asked.get_by_label("Name").fill("dead payments")
    asked.get_by_role("button", name="Save the view").click()
    expect(page.get_by_text("is saved for all")).to_be_visible()
    at_desk.go("tasks")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitemcheckbox", name="dead-payments").click()
    at_desk.address(r"/tasks\?q=status.*dead.*charge_payment")
    expect(page.locator("tr[data-row]")).to_have_count(shop.TIMED_OUT)
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Delete views…").click()
    page.get_by_role("dialog", name="Delete views").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No view is left.")).to_be_visible()


def test_a_new_task_is_counted_and_a_row_changes_in_place(at_desk: Desk, stage: Stage) -> None:
    first = stage.submit("import_stock", {"sku": "live", "count": 1}, delay=shop.HOUR, key="live")
    page = at_desk.go("tasks?q=key:live")
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("pending")
    expect(page.get_by_role("button", name="Live.")).to_be_visible()
    stage.do(stage.app.cancel(first))
    expect(rows).to_contain_text("cancelled")
    stage.submit("import_stock", {"sku": "live", "count": 2}, delay=shop.HOUR, key="live")
    expect(page.get_by_role("button", name="newer task")).to_be_visible()
    expect(rows).to_have_count(1)
    at_desk.press(".")
    expect(rows).to_have_count(2)


@pytest.mark.parametrize("from_elsewhere", [False, True])
def test_a_change_before_the_stream_of_a_view_is_open_is_shown(
    from_elsewhere: bool, at_desk: Desk, stage: Stage
) -> None:
    task_id = stage.submit("import_stock", {"sku": "g", "count": 1}, delay=shop.HOUR, key="early")
    page, held = at_desk.page, list[Route]()
    if from_elsewhere:
        at_desk.go("queues")
        expect(page.get_by_role("button", name="Live.")).to_be_visible()
    page.route("**/events/stream?topics=task*", lambda route: held.append(route))
    with page.expect_request("**/events/stream?topics=task*"):
        if from_elsewhere:
            page.get_by_role("link", name="Tasks").first.click()
        else:
            at_desk.go("tasks?q=key:early")
    row = page.locator("tr[data-row]").filter(has_text="early").first
    expect(row).to_contain_text("pending")
    stage.do(stage.app.cancel(task_id))
    for route in held:
        route.continue_()
    expect(row).to_contain_text("cancelled")


def test_what_the_stream_of_the_view_before_brings_is_no_position_of_the_next(at_desk: Desk, stage: Stage) -> None:
    """It stays open for a moment, and has heard nothing of tasks."""
    task_id = stage.submit("import_stock", {"sku": "t", "count": 1}, delay=shop.HOUR, key="turning")
    page = at_desk.page
    # A tick, of which there is one a second, is to come in that moment.
    page.add_init_script("const plain = setTimeout; setTimeout = (call, ms) => plain(call, ms === 80 ? 1500 : ms);")
    with page.expect_response("**/events/stream?topics=queue*"):
        at_desk.go("queues")
    expect(page.get_by_role("button", name="Live.")).to_be_visible()
    page.evaluate("history.pushState({}, '', 'tasks?q=key:turning'); dispatchEvent(new PopStateEvent('popstate'))")
    row = page.locator("tr[data-row]").first
    expect(row).to_contain_text("pending")
    with page.expect_request("**/events/stream?topics=task*"):
        stage.do(stage.app.cancel(task_id))
    expect(row).to_contain_text("cancelled")


def test_live_updates_are_paused_and_go_on(open_desk: OpenDesk, stage: Stage) -> None:
    task_id = stage.submit("import_stock", {"sku": "p", "count": 1}, delay=shop.HOUR, key="paused-live")
    paused, live = open_desk(), open_desk()
    rows = [desk.go("tasks?q=key:paused-live").locator("tr[data-row]") for desk in (paused, live)]
    for row in rows:
        expect(row).to_contain_text("pending")
    paused.press("p")
    expect(paused.page.get_by_role("button", name=re.compile("^Paused"))).to_be_visible()
    stage.do(stage.app.cancel(task_id))
    expect(rows[1]).to_contain_text("cancelled")
    assert "pending" in rows[0].inner_text()  # though another has heard of it
    paused.press("p")
    expect(rows[0]).to_contain_text("cancelled")
