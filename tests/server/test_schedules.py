"""Schedules over the API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.serving import Client, Server
from tickwork.clock import ManualClock


async def create(client: Client, **options: Any) -> Any:
    return await client.do("POST", "/schedules", {"id": "nightly", "type": "mail", "cron": "0 3 * * *", **options})


class TestCreating:
    async def test_it_is_answered_with_201_as_it_is_stored(self, timed: Server) -> None:
        admin = await timed.as_role("operator")
        body = {"id": "s", "type": "mail", "cron": "0 3 * * *", "payload": {"to": "ada"}, "timezone": "Europe/Berlin"}
        answer = await admin.post("/schedules", {**body, "queue": "post", "tags": {"a": "b"}, "overlap": "allow"})
        assert answer.status_code == 201
        shown = answer.json()
        assert (shown["id"], shown["cron"], shown["timezone"]) == ("s", "0 3 * * *", "Europe/Berlin")
        assert (shown["payload"], shown["queue"], shown["tags"]) == ({"to": "ada"}, "post", {"a": "b"})
        assert (shown["paused"], shown["declared"], shown["runs"]) == (False, False, [])
        assert shown["next_at"] == "2030-03-18T02:00:00Z"
        assert await admin.read("/schedules/s") == shown

    async def test_one_of_that_id_is_not_replaced(self, admin: Client) -> None:
        await create(admin)
        again = await admin.post("/schedules", {"id": "nightly", "type": "other"})
        assert (again.status_code, again.json()["code"]) == (409, "exists")
        assert again.json()["existing_id"] == "nightly"
        assert (await admin.read("/schedules/nightly"))["type"] == "mail"

    async def test_without_a_line_it_runs_only_when_triggered(self, admin: Client) -> None:
        shown = await create(admin, cron=None)
        assert (shown["cron"], shown["next_at"]) == (None, None)
        assert await admin.read("/schedules/nightly/next") == []

    @pytest.mark.parametrize(
        "body",
        [
            {"id": "s"}, {"type": "mail"}, {"id": "a b", "type": "mail"}, {"id": "s", "type": "mail", "cron": "x"},
            {"id": "s", "type": "mail", "cron": "0 0 30 2 *"}, {"id": "s", "type": "mail", "cron": "* * * * *" * 50},
            {"id": "s", "type": "mail", "cron": "0 3 * * *", "timezone": "Mars/Base"},
            {"id": "s", "type": "mail", "cron": "0 3 * * *", "timezone": "../../etc/passwd"},
            {"id": "s", "type": "mail", "cron": "0 3 * * *", "timezone": "a\u0000b"},
            {"id": "s", "type": "mail", "overlap": "maybe"}, {"id": "s", "type": "mail", "unknown": 1},
            {"id": "s" * 101, "type": "mail"}, {"id": "s\n", "type": "mail"}, {"id": "s", "type": "mail\n"},
        ],
    )  # fmt: skip
    async def test_what_cannot_be_is_refused(self, body: dict[str, Any], admin: Client) -> None:
        answer = await admin.post("/schedules", body)
        assert answer.status_code == 400, answer.text
        assert (await admin.read("/schedules"))["items"] == []


class TestEditing:
    async def test_what_is_named_is_changed_and_all_else_stays(self, admin: Client) -> None:
        before = await create(admin, payload={"a": 1}, tags={"t": "x"}, key="k", timezone="Europe/Berlin")
        answer = await admin.ask("PATCH", "/schedules/nightly", {"cron": "0 4 * * *", "key": None})
        assert answer.status_code == 200
        after = answer.json()
        changed = {name for name in before if before[name] != after[name]}
        assert changed - {"next_at", "updated_at", "description"} == {"cron", "key"}
        assert (after["cron"], after["key"]) == ("0 4 * * *", None)

    async def test_the_audit_log_says_from_what_to_what(self, admin: Client) -> None:
        await create(admin)
        await admin.do("PATCH", "/schedules/nightly", {"cron": "0 4 * * *", "payload": {"password": "s3cret"}})
        entry = (await admin.read("/audit"))["items"][0]
        assert "cron: '0 3 * * *' -> '0 4 * * *'" in entry["detail"]
        assert "payload" in entry["detail"]
        assert "s3cret" not in entry["detail"]

    @pytest.mark.parametrize("body", [{"cron": "x"}, {"overlap": "x"}, {"type": "a b"}, {"timezone": "x"}, {"x": 1}])
    async def test_what_cannot_be_leaves_it_as_it_was(self, body: dict[str, Any], admin: Client) -> None:
        before = await create(admin)
        assert (await admin.ask("PATCH", "/schedules/nightly", body)).status_code == 400
        assert await admin.read("/schedules/nightly") == before

    async def test_pause_resume_trigger_and_delete(self, admin: Client) -> None:
        await create(admin, payload={"a": 1})
        paused = await admin.do("POST", "/schedules/nightly/pause", {"note": "the books are closed"})
        assert paused["paused"] is True
        (entry,) = (await admin.read("/audit", limit=1))["items"]
        assert (entry["what"], entry["target"], entry["detail"]) == (
            "paused a schedule", "nightly", "the books are closed",
        )  # fmt: skip
        assert (await admin.do("POST", "/schedules/nightly/resume"))["paused"] is False
        triggered = await admin.post("/schedules/nightly/trigger")
        assert triggered.status_code == 201
        assert (triggered.json()["schedule_id"], triggered.json()["payload"]) == ("nightly", {"a": 1})
        assert (await admin.ask("DELETE", "/schedules/nightly")).status_code == 204
        assert (await admin.get("/schedules/nightly")).status_code == 404

    async def test_one_that_is_not_there_is_404(self, admin: Client) -> None:
        for method, path, body in (
            ("GET", "", None), ("PATCH", "", {"cron": "* * * * *"}), ("DELETE", "", None), ("POST", "/pause", {}),
            ("POST", "/resume", None), ("POST", "/trigger", None), ("GET", "/next", None), ("GET", "/runs", None),
        ):  # fmt: skip
            answer = await admin.ask(method, f"/schedules/no-such{path}", body)
            assert (answer.status_code, answer.json()["code"]) == (404, "schedule_not_found"), path


class TestTimes:
    async def test_a_line_is_told_in_words_and_times(self, timed: Server) -> None:
        viewer = await timed.as_role("viewer")
        shown = await viewer.do("POST", "/schedules/preview", {"cron": "0 3 * * *", "count": 2})
        assert shown["problem"] is None
        assert shown["description"]
        assert [each["at"] for each in shown["runs"]] == ["2030-03-18T03:00:00Z", "2030-03-19T03:00:00Z"]

    async def test_clocks_that_are_set_are_marked(self, timed: Server) -> None:
        viewer = await timed.as_role("viewer")
        line = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "count": 20}
        runs = (await viewer.do("POST", "/schedules/preview", line))["runs"]
        assert any(each["mark"] for each in runs)

    @pytest.mark.parametrize("line", ["", "x", "* * *", "61 * * * *", "0 0 30 2 *", "@never", "TZ=../x * * * * *"])
    async def test_what_is_wrong_with_a_line_is_said_in_the_answer(self, line: str, admin: Client) -> None:
        shown = await admin.do("POST", "/schedules/preview", {"cron": line})
        assert shown["problem"]
        assert shown["runs"] == []

    @pytest.mark.parametrize("zone", ["x" * 64, "../../etc/passwd", "a\u0000b", "", ".", "Europe", "europe/berlin"])
    async def test_a_zone_is_a_name_and_no_path(self, zone: str, admin: Client) -> None:
        answer = await admin.post("/schedules/preview", {"cron": "* * * * *", "timezone": zone})
        assert answer.status_code == 200
        assert "root:" not in answer.text

    async def test_the_next_runs_of_one_and_of_a_disabled_one(self, timed: Server) -> None:
        admin = await timed.as_role("admin")
        await create(admin)
        assert [each["at"] for each in await admin.read("/schedules/nightly/next", count=1)] == ["2030-03-18T03:00:00Z"]
        await admin.do("PATCH", "/schedules/nightly", {"enabled": False})
        assert await admin.read("/schedules/nightly/next") == []

    async def test_the_calendar_counts_runs_by_half_hours(self, timed: Server) -> None:
        admin = await timed.as_role("admin")
        await create(admin, cron="*/10 * * * *")
        found = await admin.read("/schedules/calendar", hours=2)
        assert found["total"] == 12
        assert found["slots"][0] == {"at": "2030-03-17T17:30:00Z", "count": 1, "schedules": ["nightly"]}
        assert found["slots"][1]["count"] == 3
        assert found["at_least"] is False

    async def test_the_calendar_has_a_bound(self, timed: Server) -> None:
        admin = await timed.as_role("admin")
        await create(admin, cron="* * * * * *")
        found = await admin.read("/schedules/calendar", hours=168)
        assert (found["total"], found["at_least"]) == (20_000, True)

    async def test_counts_and_hours_have_bounds(self, admin: Client) -> None:
        await create(admin)
        for path, query in (
            ("/calendar", {"hours": 0}),
            ("/calendar", {"hours": 169}),
            ("/nightly/next", {"count": 101}),
        ):
            assert (await admin.get(f"/schedules{path}", **query)).status_code == 400

    async def test_pages_lead_to_the_end(self, admin: Client, server: Server) -> None:
        for number in range(230):
            await server.app.schedules.put(f"s{number:03}", "mail", cron="0 3 * * *")
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = await admin.read("/schedules", **({} if cursor is None else {"cursor": cursor}))
            seen += [each["id"] for each in page["items"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert seen == [f"s{number:03}" for number in range(230)]

    async def test_runs_that_have_ended_are_shown(self, timed: Server, clock: ManualClock) -> None:
        admin = await timed.as_role("admin")
        await create(admin)
        await timed.count_up()
        task = (await admin.do("POST", "/schedules/nightly/trigger"))["id"]
        await admin.do("POST", f"/tasks/{task}/cancel", {})
        await timed.count_up()
        (run,) = await admin.read("/schedules/nightly/runs")
        assert (run["outcome"], run["task_id"]) == ("cancelled", task)
        assert (await admin.read("/schedules/nightly"))["runs"] == [run]
