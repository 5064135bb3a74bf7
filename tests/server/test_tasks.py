"""Tasks over the API: submit, look, steer one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.apps import eventually
from tests.server.serving import Client, Server, serving
from tickwork import Scheduler, TaskContext
from tickwork.client.events import number_at
from tickwork.clock import ManualClock
from tickwork.model.tasks import Status
from tickwork.server.operations import tasks
from tickwork.testing.contract.bench import edges_of


class TestSubmitting:
    async def test_a_task_is_answered_with_201_and_lies_in_the_store(self, any_url: str) -> None:
        app = Scheduler(any_url, namespace="home", server_port=0, server_tokens=True)

        @app.task("mail")
        def mail(to: str) -> None: ...

        async with serving(any_url, app=app) as server:
            caller = await server.as_role("submitter")
            body = {"type": "mail", "payload": {"to": "ada"}, "id": "m1", "delay": 60, "queue": "post", "priority": 9}
            answer = await caller.post("/tasks", {**body, "key": "acme", "tags": {"a": "b"}, "context": {"c": 1}})
            assert answer.status_code == 201
            shown = answer.json()
            found = await server.app.get_task("m1")
        assert (shown["id"], shown["type"], shown["status"], shown["queue"]) == ("m1", "mail", "pending", "post")
        assert (shown["priority"], shown["payload"], shown["key"]) == (9, {"to": "ada"}, "acme")
        assert (shown["tags"], shown["context"]) == ({"a": "b"}, {"c": 1})
        assert (found.payload, found.priority, found.tags) == ({"to": "ada"}, 9, {"a": "b"})

    async def test_an_id_that_is_taken_is_409_and_named(self, admin: Client) -> None:
        await admin.do("POST", "/tasks", {"type": "mail", "id": "m1", "delay": 60})
        again = await admin.post("/tasks", {"type": "mail", "id": "m1"})
        assert (again.status_code, again.json()["code"], again.json()["existing_id"]) == (409, "exists", "m1")

    async def test_a_dedup_key_that_is_taken_is_409_and_names_the_task_that_has_it(self, admin: Client) -> None:
        first = await admin.do("POST", "/tasks", {"type": "mail", "dedup_key": "k", "dedup_ttl": 60})
        again = await admin.post("/tasks", {"type": "mail", "dedup_key": "k", "dedup_ttl": 60})
        assert (again.status_code, again.json()["code"]) == (409, "duplicate")
        assert again.json()["existing_id"] == first["id"]

    async def test_with_if_exists_return_the_existing_task_is_the_answer(self, admin: Client) -> None:
        await admin.do("POST", "/tasks", {"type": "mail", "id": "m1", "payload": 1})
        again = await admin.do("POST", "/tasks", {"type": "mail", "id": "m1", "payload": 2, "if_exists": "return"})
        assert (again["id"], again["payload"]) == ("m1", 1)

    async def test_a_cron_line_makes_a_schedule(self, admin: Client, server: Server) -> None:
        answer = await admin.post("/tasks", {"type": "mail", "cron": "0 3 * * *", "timezone": "Europe/Berlin"})
        assert answer.status_code == 201
        schedule = await server.app.schedules.get(answer.json()["id"])
        assert (schedule.cron, schedule.timezone, schedule.type) == ("0 3 * * *", "Europe/Berlin", "mail")
        assert (await admin.read("/tasks"))["items"] == []

    async def test_no_payload_and_null_are_told_apart(self, admin: Client, server: Server) -> None:
        without, null = await admin.do("POST", "/tasks", {"type": "a"}), {"type": "a", "payload": None}
        with_null = await admin.do("POST", "/tasks", null)
        store = await server.app._access.open_store()
        first, second = await store.queries.get(without["id"]), await store.queries.get(with_null["id"])
        assert first is not None
        assert second is not None
        assert first.spec.payload != second.spec.payload

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({}, "bad_request"),
            ({"type": "a b"}, "bad_request"),
            ({"type": "mail\n"}, "bad_value"),
            ({"type": "x" * 129}, "bad_request"),
            ({"type": "a", "unknown": 1}, "bad_request"),
            ({"type": "a", "priority": 11}, "bad_request"),
            ({"type": "a", "delay": -1}, "bad_request"),
            ({"type": "a", "delay": 1, "cron": "* * * * *"}, "bad_value"),
            ({"type": "a", "cron": "61 * * * *"}, "bad_cron"),
            ({"type": "a", "cron": "* * * * *", "timezone": "../../etc/passwd"}, "bad_value"),
            ({"type": "a", "timezone": "UTC"}, "bad_value"),
            ({"type": "a", "unique": "queued"}, "bad_value"),
            ({"type": "a", "queue": "tickwork.x"}, "bad_value"),
            ({"type": "a", "schedule_at": "2030-01-01T00:00:00"}, "bad_value"),
            ({"type": "a", "tags": {"a": "x" * 300}}, "bad_value"),
            ({"type": "a", "tags": {f"t{number}": "x" for number in range(65)}}, "bad_value"),
            ({"type": "a", "context": {"x": "y" * 300_000}}, "bad_payload"),
            ({"type": "a", "payload": "y" * 300_000}, "bad_payload"),
            ({"type": "a", "depends_on": ["no-such"]}, "task_not_found"),
        ],
    )
    async def test_what_cannot_be_used_is_refused_with_a_code(
        self, body: dict[str, Any], code: str, admin: Client
    ) -> None:
        answer = await admin.post("/tasks", body)
        assert answer.json()["code"] == code, answer.text
        assert answer.status_code in (400, 404)
        assert answer.headers["content-type"] == "application/problem+json"
        assert (await admin.read("/counts"))["tasks"]["ready"] == 0

    @pytest.mark.parametrize("field", ["schedule_at"])
    @pytest.mark.parametrize(
        "moment",
        ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59Z", "2030-02-30T00:00:00Z", "x"],
    )
    async def test_times_at_the_ends_of_the_calendar_are_no_mistake_of_the_server(
        self, field: str, moment: str, admin: Client
    ) -> None:
        answer = await admin.post("/tasks", {"type": "a", field: moment})
        assert answer.status_code in (201, 400), answer.text


class TestBatch:
    async def test_each_is_answered_for_itself_in_order(self, admin: Client) -> None:
        await admin.do("POST", "/tasks", {"type": "mail", "id": "old"})
        tasks = [{"type": "mail", "id": "a"}, {"type": "mail", "id": "old"}, {"type": "mail", "depends_on": ["a"]}]
        answer = await admin.post("/tasks/batch", {"tasks": [*tasks, {"type": "mail", "cron": "bad"}]})
        assert answer.status_code == 200
        found = answer.json()
        assert (found["created"], found["refused"]) == (2, 2)
        assert found["tasks"][0].get("id") == "a"
        assert found["tasks"][1]["problem"]["existing_id"] == "old"
        assert found["tasks"][3]["problem"]["code"] == "bad_cron"

    @pytest.mark.parametrize("count", [0, 1001])
    async def test_it_has_1_to_1000(self, count: int, admin: Client) -> None:
        assert (await admin.post("/tasks/batch", {"tasks": [{"type": "a"}] * count})).status_code == 400

    async def test_a_thousand_at_once(self, admin: Client) -> None:
        answer = await admin.do("POST", "/tasks/batch", {"tasks": [{"type": "a"}] * 1000})
        assert (answer["created"], answer["refused"]) == (1000, 0)
        assert (await admin.read("/tasks", q="status:ready", limit=500))["looked"] == 500
        await eventually(lambda: _total(admin, 1000))


async def _total(client: Client, wanted: int) -> bool:
    """Counters are read anew when they are some tenths of a second old."""
    return bool((await client.read("/tasks", q="status:ready"))["total"] == wanted)


class TestLooking:
    async def test_one_that_is_not_there_is_404(self, admin: Client) -> None:
        for path in ("", "/payload", "/attempts", "/logs", "/explain", "/dependencies"):
            answer = await admin.get(f"/tasks/no-such{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "task_not_found"), path

    async def test_a_dead_one_shows_its_error_and_attempts(self, admin: Client, server: Server) -> None:
        task = await server.dead("ValueError: boom\n\nTraceback: ...")
        shown = await admin.read(f"/tasks/{task}")
        assert (shown["status"], shown["error"]) == ("dead", "ValueError: boom")
        assert shown["last_error"].startswith("ValueError: boom\n\nTraceback")
        await admin.do("POST", f"/tasks/{task}/retry", {})
        (attempt,) = await admin.read(f"/tasks/{task}/attempts")
        assert (attempt["number"], attempt["worker_id"], attempt["end"]) == (1, "w1", "dead")

    async def test_a_large_payload_is_left_out_and_asked_for_by_itself(self, admin: Client) -> None:
        large = {"text": "x" * 70_000}
        task = (await admin.do("POST", "/tasks", {"type": "a", "payload": large}))["id"]
        shown = await admin.read(f"/tasks/{task}")
        assert (shown["payload"], shown["large"]) == (None, ["payload"])
        assert shown["payload_bytes"] > 70_000
        assert (await admin.read(f"/tasks/{task}/payload"))["payload"] == large

    async def test_why_it_does_not_run_is_said(self, admin: Client) -> None:
        task = (await admin.do("POST", "/tasks", {"type": "a"}))["id"]
        found = await admin.read(f"/tasks/{task}/explain")
        assert (found["reason"], found["text"]) == ("no_worker", "No worker is up.")
        (row,) = (await admin.read("/tasks"))["items"]
        assert row["why"] == "No worker is up."

    async def test_its_events_are_those_of_it_alone(self, admin: Client, server: Server) -> None:
        await server.dead()
        task = await server.dead()
        kinds = [each["kind"] for each in await admin.read(f"/tasks/{task}/events")]
        assert kinds[0] == "task.submitted"
        assert kinds[-1] == "task.died"
        assert {each["id"] for each in await admin.read(f"/tasks/{task}/events")} == {task}

    async def test_what_happened_to_a_task_is_found_in_a_long_log(self, url: str, clock: ManualClock) -> None:
        async with serving(url, clock=clock) as server:
            app = server.app
            viewer, ids = await server.as_role("viewer"), []
            for _ in range(40):
                handles = await app.submit_many("mail", [None] * 50)
                ids.append(handles[0].id)
                clock.advance(60)
            store = await app._access.open_store()
            after = await number_at(store.log, clock.now() - 120_000)
            facts, _ = await store.log.read(after, 1)
            assert facts[0].at >= clock.now() - 1_800_000, "most of the log is not read"
            for task in ids:
                found = await viewer.read(f"/tasks/{task}/events")
                assert [(each["kind"], each["id"]) for each in found] == [("task.submitted", task)]

    async def test_those_cancelled_with_it_are_told_or_said_to_be_too_many(
        self, admin: Client, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = await server.app.submit("a", id="first", delay=60)
        await server.app.submit("a", id="second", depends_on=[first.id])
        await first.cancel()
        store = await server.app._access.open_store()
        for entry in await store.tasks.outbox(10):
            await store.tasks.resolve(edges_of(entry))
        shown = await admin.read("/tasks/first/dependencies")
        assert ([each["id"] for each in shown["dependants"]], shown["cut"]) == (["second"], False)
        monkeypatch.setattr(tasks, "FOLLOWERS_LOOK", 1)
        shown = await admin.read("/tasks/first/dependencies")
        assert (shown["dependants"], shown["cut"]) == ([], True)

    async def test_dependencies_are_shown_from_both_sides(self, admin: Client) -> None:
        await admin.do("POST", "/tasks", {"type": "a", "id": "first", "delay": 60})
        await admin.do("POST", "/tasks", {"type": "a", "id": "second", "depends_on": ["first"]})
        up, down = await admin.read("/tasks/second/dependencies"), await admin.read("/tasks/first/dependencies")
        assert [each["id"] for each in up["upstream"]] == ["first"]
        assert [each["id"] for each in down["dependants"]] == ["second"]
        assert up["gone"] == []

    async def test_results_progress_and_log_lines_of_a_real_run(self, url: str) -> None:
        app = Scheduler(url, namespace="home", server=True, server_port=0, server_tokens=True)

        @app.task("work")
        async def work(ctx: TaskContext, n: int) -> dict[str, int]:
            ctx.logger.info("line %d", n)
            ctx.progress(0.5, "half")
            return {"twice": 2 * n}

        async with serving(url, app=app, node=True) as server:
            caller = await server.as_role("submitter")
            task = (await caller.do("POST", "/tasks", {"type": "work", "payload": {"n": 4}}))["id"]
            await server.app.handle(task).result(timeout=20)
            shown = await caller.read(f"/tasks/{task}")
            lines = (await caller.read(f"/tasks/{task}/logs"))["lines"]
        assert (shown["status"], shown["result"], shown["result_code"]) == ("success", {"twice": 8}, 0)
        assert (shown["progress"], shown["progress_note"]) == (0.5, "half")
        assert len(lines) == 1
        assert "line 4" in lines[0]
        assert shown["log"] == lines


class TestSteering:
    async def test_cancel_retry_and_delete(self, admin: Client) -> None:
        await admin.do("POST", "/tasks", {"type": "a", "id": "t", "delay": 60})
        assert (await admin.do("POST", "/tasks/t/cancel", {}))["status"] == "cancelled"
        assert (await admin.do("POST", "/tasks/t/retry", {}))["status"] == "ready"
        refused = await admin.ask("DELETE", "/tasks/t")
        assert refused.status_code == 409
        await admin.do("POST", "/tasks/t/cancel", {})
        assert (await admin.ask("DELETE", "/tasks/t")).status_code == 204
        assert (await admin.get("/tasks/t")).status_code == 404

    async def test_a_running_one_is_asked_to_stop_only_by_force(self, admin: Client, server: Server) -> None:
        task = await server.running()
        assert (await admin.post(f"/tasks/{task}/cancel", {})).status_code == 409
        shown = await admin.do("POST", f"/tasks/{task}/cancel", {"force": True})
        assert (shown["status"], shown["cancelling"]) == ("running", True)

    async def test_run_now_and_reschedule(self, timed: Server, clock: ManualClock) -> None:
        admin = await timed.as_role("admin")
        await admin.do("POST", "/tasks", {"type": "a", "id": "t", "delay": 60})
        moved = await admin.do("POST", "/tasks/t/reschedule", {"delay": 120})
        assert moved["scheduled_at"] == "2030-03-17T17:48:40Z"
        moved = await admin.do("POST", "/tasks/t/reschedule", {"at": "2031-01-01T00:00:00Z"})
        assert moved["scheduled_at"] == "2031-01-01T00:00:00Z"
        assert (await admin.do("POST", "/tasks/t/run-now"))["status"] == "ready"
        await admin.do("POST", "/tasks/t/cancel", {})
        assert (await admin.post("/tasks/t/run-now")).status_code == 409
        assert (await admin.post("/tasks/t/reschedule", {"delay": 1})).status_code == 409

    @pytest.mark.parametrize(
        "body", [{}, {"at": "2031-01-01T00:00:00"}, {"delay": 1, "at": "2031-01-01T00:00:00Z"},
                 {"at": "9999-12-31T23:59:59-14:00"}, {"delay": 1e300}, {"delay": "soon"}],
    )  # fmt: skip
    async def test_a_time_that_cannot_be_is_refused(self, body: dict[str, Any], admin: Client) -> None:
        await admin.do("POST", "/tasks", {"type": "a", "id": "t", "delay": 60})
        assert (await admin.post("/tasks/t/reschedule", body)).status_code == 400

    async def test_retry_with_cascade_brings_back_what_was_cancelled_with_it(
        self, admin: Client, server: Server
    ) -> None:
        await admin.do("POST", "/tasks", {"type": "a", "id": "up", "delay": 60})
        await admin.do("POST", "/tasks", {"type": "a", "id": "down", "depends_on": ["up"]})
        await admin.do("POST", "/tasks/up/cancel", {})
        store = await server.app._access.open_store()
        for entry in await store.tasks.outbox(10):
            await store.tasks.resolve(edges_of(entry))
        assert (await admin.read("/tasks/down"))["status"] == Status.CANCELLED
        await admin.do("POST", "/tasks/up/retry", {"cascade": True})
        assert (await admin.read("/tasks/down"))["status"] == Status.BLOCKED

    async def test_steering_what_is_not_there_is_404(self, admin: Client) -> None:
        for verb, body in (("cancel", {}), ("retry", {}), ("run-now", None), ("reschedule", {"delay": 1})):
            answer = await admin.post(f"/tasks/no-such/{verb}", body)
            assert (answer.status_code, answer.json()["code"]) == (404, "task_not_found"), verb
        assert (await admin.ask("DELETE", "/tasks/no-such")).status_code == 404


async def test_an_answer_is_what_the_documentation_of_errors_shows(admin: Client) -> None:
    answer = await admin.get("/tasks/x")
    assert json.loads(answer.text) == {
        "status": 404, "code": "task_not_found", "title": "Not found",
        "detail": "no task 'x' (never submitted, deleted, or past its retention)",
    }  # fmt: skip
