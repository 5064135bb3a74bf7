"""Bounds of what is sent and kept: texts, durations, depth, echoes, and what one batch may bring into a namespace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.examples import NAMES, example
from tests.server.serving import API, Client, Server, serving
from tickwork.server.operations import operations

JSON = {"content-type": "application/json"}
LONE = "\ud800"


def variants(value: Any, text: str) -> Iterator[Any]:
    """The same with one of its texts, or names of fields, replaced by another."""
    if isinstance(value, str):
        yield text
    elif isinstance(value, dict):
        for name in value:
            yield {**value, f"{name}{text}": 1}
            yield from ({**value, name: each} for each in variants(value[name], text))
    elif isinstance(value, list):
        for place, found in enumerate(value):
            yield from ([*value[:place], each, *value[place + 1 :]] for each in variants(found, text))


class TestTexts:
    async def test_half_a_letter_in_any_text_of_any_body_is_refused(self, server: Server) -> None:
        """JSON can escape one half of a pair by itself, which no store can take."""
        admin = await server.as_role("admin")
        sent = 0
        for name in NAMES:
            operation = operations()[name]
            if "body" not in operation.parameters:
                continue
            given = await example(server, admin, name)
            for body in variants(given.body, LONE):
                path = API + operation.path.format(**given.names)
                answer = await admin.request(operation.method, path, content=json.dumps(body), headers=JSON)
                assert answer.status_code == 400, f"{name} {body!a}: {answer.text}"
                sent += 1
        assert sent > 40

    @pytest.mark.parametrize("field", ["id", "queue", "key", "dedup_key", "tags", "context", "payload", "depends_on"])
    async def test_nor_in_what_else_a_task_may_have(self, field: str, any_url: str) -> None:
        shapes: dict[str, Any] = {
            "tags": {"a": LONE}, "context": {LONE: 1}, "payload": [{"x": LONE}], "depends_on": [LONE],
        }  # fmt: skip
        async with serving(any_url) as server:
            admin = await server.as_role("admin")
            body = json.dumps({"type": "mail", field: shapes.get(field, LONE)})
            for path, text in (("/tasks", body), ("/tasks/batch", f'{{"tasks":[{body}]}}')):
                answer = await admin.request("POST", API + path, content=text, headers=JSON)
                assert answer.status_code == 400, answer.text
            assert (await admin.read("/tasks"))["items"] == []


class TestDepth:
    @pytest.mark.parametrize(("depth", "statuses"), [(64, (201, 200)), (65, (400, 400)), (68, (400, 400))])
    async def test_a_payload_of_a_schedule_has_64_levels_too(
        self, depth: int, statuses: tuple[int, int], admin: Client
    ) -> None:
        payload = json.loads("[" * depth + "]" * depth)
        made = await admin.post("/schedules", {"id": "deep", "type": "a", "cron": "0 3 * * *", "payload": payload})
        await admin.post("/schedules", {"id": "flat", "type": "a", "cron": "0 3 * * *"})
        edited = await admin.ask("PATCH", "/schedules/flat", {"payload": payload})
        assert (made.status_code, edited.status_code) == statuses, made.text + edited.text


class TestDurations:
    @pytest.mark.parametrize("name", ["run", "wait", "submitted"])
    async def test_they_have_64_characters_and_no_more(self, name: str, admin: Client) -> None:
        assert (await admin.get("/tasks", q=f"{name}>{'0' * 62}1s")).status_code == 200
        answer = await admin.get("/tasks", q=f"{name}>{'0' * 63}1s")
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_filter")


class TestFilters:
    """A filter is data: what would be a pattern elsewhere is a text like any other."""

    @pytest.mark.parametrize(
        "q", ["type:.*", "type:m*", "type:m?il", "queue:.*", "key:.*", "tag.who:a.a", "tag.who:*", "worker:.*", "id:.*"]
    )
    async def test_no_pattern_matches(self, q: str, admin: Client, server: Server) -> None:
        await server.app.submit("mail", id="t", key="acme", tags={"who": "ada"})
        assert (await admin.read("/tasks", q=q))["items"] == []

    async def test_nor_in_an_error_or_a_saved_view(self, admin: Client, server: Server) -> None:
        task = await server.dead("ValueError: a(b")
        assert (await admin.read("/tasks", q="error:a.b"))["items"] == []
        assert [each["id"] for each in (await admin.read("/tasks", q='error:"a(b"'))["items"]] == [task]
        await admin.do("PUT", "/views/mine", {"filter": 'error:"(a+)+$"'})
        assert (await admin.read("/views"))[0]["filter"] == 'error:"(a+)+$"'


class TestEchoes:
    LONG = "A" * 1500

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "/tasks", {"type": "a", LONG: 1}), ("POST", "/tasks", {"type": "a", "tags": {LONG: 1}}),
            ("POST", "/tasks", {"type": "a", "requires": {LONG: 1}}), ("POST", "/tasks", {"type": LONG}),
            ("POST", "/tasks", {"type": "a", "requires": {LONG: "x"}}), ("GET", f"/tasks?limit={LONG}", None),
            ("GET", f"/tasks?ns={LONG}", None), ("GET", f"/tasks/{LONG}", None), ("GET", f"/tasks?q=x:{LONG}", None),
            ("GET", f"/tasks?q={LONG}:x", None), ("GET", f"/tasks?q=tag.{LONG}>x", None), ("GET", f"/{LONG}", None),
            ("GET", f"/tasks?q=tag.{LONG}:", None),
            ("POST", "/workers", {"id": "w", "labels": {LONG: 1}}), ("PUT", "/limits", {"of": LONG[:700]}),
            ("POST", "/schedules", {"id": "s", "type": "a", "cron": "0 3 * * *", "timezone": LONG[:64]}),
        ],
        ids=lambda value: str(value)[:30],
    )  # fmt: skip
    async def test_an_error_repeats_at_most_100_characters(
        self, method: str, path: str, body: Any, admin: Client
    ) -> None:
        answer = await admin.ask(method, path, body)
        assert 400 <= answer.status_code < 500, answer.text
        assert "A" * 101 not in answer.text, answer.text


class TestQuotasOfBatches:
    """One batch brings no more into a namespace than as many single calls would."""

    async def refused(self, caller: Client, tasks: list[Any]) -> None:
        answer = await caller.post("/tasks/batch", {"tasks": tasks})
        assert (answer.status_code, answer.json()["code"]) == (429, "quota"), answer.text
        assert (await caller.read("/tasks"))["items"] == []
        assert (await caller.read("/schedules"))["items"] == []

    async def test_queues(self, url: str) -> None:
        async with serving(url, server_quota={"queues": 2}) as server:
            caller = await server.as_role("submitter")
            await self.refused(caller, [{"type": "a", "queue": f"q{number}"} for number in range(3)])
            await caller.do("POST", "/tasks/batch", {"tasks": [{"type": "a", "queue": q} for q in ("q1", "q2", "q1")]})

    async def test_types(self, url: str) -> None:
        async with serving(url, server_quota={"types": 2}) as server:
            caller = await server.as_role("submitter")
            await self.refused(caller, [{"type": f"t{number}"} for number in range(3)])
            await caller.do("POST", "/tasks/batch", {"tasks": [{"type": each} for each in ("t1", "t2", "t1")]})

    async def test_schedules(self, url: str) -> None:
        async with serving(url, server_quota={"schedules": 2}) as server:
            caller = await server.as_role("submitter")
            line = {"type": "a", "cron": "0 3 * * *"}
            await self.refused(caller, [line] * 3)
            await caller.do("POST", "/tasks/batch", {"tasks": [line, line, {"type": "a"}]})
            assert len((await caller.read("/schedules"))["items"]) == 2
