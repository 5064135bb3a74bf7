"""Queues, task types and workers over the API."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.server.examples import _worker_of_node
from tests.server.serving import Client, Server, serving
from tickwork import Scheduler
from tickwork.clock import ManualClock
from tickwork.server.operations import workers


class TestQueues:
    async def test_a_queue_is_paused_and_resumed(self, admin: Client, server: Server) -> None:
        await server.app.submit_many("mail", [1] * 3, queue="post")
        assert await admin.do("POST", "/queues/post/pause", {"note": "the post rests"}) == {"changed": True}
        shown = await admin.read("/queues/post")
        assert (shown["name"], shown["ready"], shown["paused"], shown["note"]) == ("post", 3, True, "the post rests")
        assert shown["paused_at"] is not None
        assert await admin.do("POST", "/queues/post/resume") == {"changed": True}
        assert await admin.do("POST", "/queues/post/resume") == {"changed": False}
        assert (await admin.read("/queues/post"))["paused"] is False

    async def test_how_long_the_first_waits_is_said(self, timed: Server, clock: ManualClock) -> None:
        await timed.app.submit("mail")
        clock.advance(30)
        (shown,) = await (await timed.as_role("viewer")).read("/queues")
        assert (shown["name"], shown["latency"], shown["normal"]) == ("default", 30.0, 1)

    async def test_one_that_is_not_there_is_404(self, admin: Client) -> None:
        answer = await admin.get("/queues/no-such")
        assert (answer.status_code, answer.json()["code"]) == (404, "queue_not_found")

    @pytest.mark.parametrize("name", ["a b", "x" * 129, "a\n", "%00", "ä"])
    async def test_a_name_that_is_none_is_refused(self, name: str, admin: Client) -> None:
        for kind in ("queues", "types"):
            for verb in ("pause", "resume"):
                body: dict[str, str] | None = {} if verb == "pause" else None
                answer = await admin.post(f"/{kind}/{quote(name)}/{verb}", body)
                assert answer.status_code == 400, answer.text
        assert await admin.read("/queues") == []

    async def test_numbers_of_one_queue_and_of_all(self, admin: Client, server: Server) -> None:
        await server.app.submit_many("mail", [1] * 3, queue="post")
        await server.app.submit("mail", priority=10)
        await server.app.submit("mail", delay=60)
        assert (await admin.read("/stats/queues", queue="post"))["normal_count"] == 3
        whole = await admin.read("/stats/queues")
        assert (whole["normal_count"], whole["high_count"], whole["delayed_count"]) == (3, 1, 1)


class TestTypes:
    async def test_types_of_the_program_show_their_schema_and_options(self, url: str) -> None:
        app = Scheduler(url, namespace="home", server_port=0, server_tokens=True)

        @app.task("mail", queue="post", max_retry=2)
        def mail(to: str, copies: int = 1) -> None: ...

        async with serving(url, app=app) as server:
            (shown,) = await (await server.as_role("viewer")).read("/types")
        assert (shown["name"], shown["paused"], shown["workers"]) == ("mail", False, 0)
        assert (shown["options"]["queue"], shown["options"]["max_retry"]) == ("post", 2)
        assert "to" in str(shown["schema"])

    async def test_a_type_is_paused_and_resumed(self, admin: Client) -> None:
        await admin.do("POST", "/types/mail/pause", {"note": "why"})
        (shown,) = await admin.read("/types")
        assert (shown["name"], shown["paused"], shown["note"]) == ("mail", True, "why")
        assert await admin.do("POST", "/types/mail/resume") == {"changed": True}
        assert await admin.do("POST", "/types/mail/resume") == {"changed": False}


class TestWorkers:
    async def test_one_registers_beats_and_leaves(self, timed: Server, clock: ManualClock) -> None:
        worker, viewer = await timed.as_role("worker"), await timed.as_role("viewer")
        body = {"id": "w", "queues": ["post"], "task_types": ["mail"], "labels": {"gpu": "a100"}, "capacity": 3}
        answer = await worker.post("/workers", body)
        assert answer.status_code == 201
        assert (answer.json()["capacity"], answer.json()["labels"]) == (3, {"gpu": "a100"})
        clock.advance(5)
        beaten = await worker.do("POST", "/workers/w/heartbeat")
        assert beaten["beat_at"] == "2030-03-17T17:46:45Z"
        assert beaten["capacity"] == 3
        (shown,) = (await viewer.read("/workers"))["items"]
        assert (shown["id"], shown["status"]) == ("w", "idle")
        assert (await worker.ask("DELETE", "/workers/w")).status_code == 204
        assert (await viewer.read("/workers"))["items"] == []
        assert (await viewer.get("/workers/w")).status_code == 404

    async def test_one_that_is_lost_cannot_beat(self, timed: Server, clock: ManualClock) -> None:
        worker = await timed.as_role("worker")
        await worker.do("POST", "/workers", {"id": "w"})
        clock.advance(86_400)
        answer = await worker.post("/workers/w/heartbeat")
        assert (answer.status_code, answer.json()["code"]) == (404, "worker_not_found")

    async def test_that_of_a_node_cannot_be_taken_over_from_outside(self, server: Server) -> None:
        worker = await server.as_role("worker")
        name = await _worker_of_node(server)
        assert (await worker.post("/workers", {"id": name})).status_code == 409
        assert (await worker.post(f"/workers/{name}/heartbeat")).json()["code"] == "worker_of_node"
        assert (await worker.ask("DELETE", f"/workers/{name}")).json()["code"] == "worker_of_node"

    async def test_capacity_drain_resume_and_reset(self, admin: Client, server: Server) -> None:
        name = await _worker_of_node(server)
        assert (await admin.do("PATCH", f"/workers/{name}", {"capacity": 3, "queues": ["post"]}))["order"]
        assert (await admin.do("POST", f"/workers/{name}/drain"))["status"] == "draining"
        assert (await admin.do("POST", f"/workers/{name}/resume"))["status"] != "draining"
        assert (await admin.do("POST", f"/workers/{name}/reset"))["order"] == ""

    async def test_what_it_runs_is_shown(self, admin: Client, server: Server) -> None:
        await server.app._access.open_store()
        task = await server.running()
        await admin.do("POST", "/workers", {"id": "w1"})
        shown = await admin.read("/workers/w1")
        assert [each["id"] for each in shown["running"]] == [task]

    @pytest.mark.parametrize("verb", ["drain", "resume", "reset", "heartbeat"])
    async def test_one_that_is_not_there_is_404(self, verb: str, admin: Client) -> None:
        answer = await admin.post(f"/workers/no-such/{verb}")
        assert (answer.status_code, answer.json()["code"]) == (404, "worker_not_found")

    @pytest.mark.parametrize(
        "body",
        [
            {}, {"id": "a b"}, {"id": "w\n"}, {"id": "w", "capacity": 0}, {"id": "w", "queues": []},
            {"id": "w", "queues": ["a b"]}, {"id": "w", "labels": {"a": "\n"}}, {"id": "w", "address": "x" * 501},
            {"id": "w", "weight": 10**9}, {"id": "w", "labels": {"a" * 1000: "b"}},
        ],
    )  # fmt: skip
    async def test_what_cannot_be_is_refused(self, body: dict[str, object], admin: Client) -> None:
        answer = await admin.post("/workers", body)
        assert answer.status_code == 400, answer.text
        assert (await admin.read("/workers"))["items"] == []


class TestOwnersOfWorkers:
    """A worker is of the token that has registered it."""

    async def test_another_token_may_not_touch_it(self, server: Server) -> None:
        mine, other = await server.as_role("worker", name="a"), await server.as_role("worker", name="b")
        await mine.do("POST", "/workers", {"id": "w", "capacity": 3})
        calls = (("POST", "/workers", {"id": "w", "capacity": 9}), ("POST", "/workers/w/heartbeat", None))
        for method, path, body in (*calls, ("DELETE", "/workers/w", None)):
            answer = await other.ask(method, path, body)
            assert (answer.status_code, answer.json()["code"]) == (409, "worker_of_other"), path
        assert (await mine.do("POST", "/workers/w/heartbeat"))["capacity"] == 3
        await mine.do("DELETE", "/workers/w")
        await other.do("POST", "/workers", {"id": "w"})

    async def test_an_admin_may(self, admin: Client, server: Server) -> None:
        mine, other = await server.as_role("worker", name="a"), await server.as_role("worker", name="b")
        await mine.do("POST", "/workers", {"id": "w"})
        await admin.do("POST", "/workers/w/heartbeat")
        assert (await other.post("/workers", {"id": "w"})).status_code == 409
        await admin.do("DELETE", "/workers/w")
        await other.do("POST", "/workers", {"id": "w"})

    async def test_one_that_is_lost_is_free(self, timed: Server, clock: ManualClock) -> None:
        mine, other = await timed.as_role("worker", name="a"), await timed.as_role("worker", name="b")
        await mine.do("POST", "/workers", {"id": "w"})
        clock.advance(86_400)
        await other.do("POST", "/workers", {"id": "w"})
        assert (await mine.post("/workers/w/heartbeat")).status_code == 409

    async def test_so_is_one_whose_token_was_revoked(self, admin: Client, server: Server) -> None:
        mine, other = await server.as_role("worker", name="a"), await server.as_role("worker", name="b")
        await mine.do("POST", "/workers", {"id": "w"})
        (token,) = [each["id"] for each in await admin.read("/tokens") if each["name"] == "a"]
        await admin.do("DELETE", f"/tokens/{token}")
        await other.do("POST", "/workers/w/heartbeat")

    async def test_owners_of_workers_that_are_gone_make_room(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(workers, "WORKERS_MAX", 2)
        worker = await server.as_role("worker")
        control = (await server.app._access.open_store()).control
        for name in ("gone1", "gone2"):
            assert await control.swap(workers.OWNERS, name, None, "token x")
        await worker.do("POST", "/workers", {"id": "w"})
        assert [each.name for each in await control.page(workers.OWNERS)] == ["w"]
