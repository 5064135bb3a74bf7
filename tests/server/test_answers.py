"""Every answer: the headers of security, the pages for strangers, exports, quotas, and secrets that are nowhere."""

from __future__ import annotations

import asyncio
import csv
import io
import logging
import time
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.examples import NAMES, example
from tests.server.serving import API, HOME, OTHER, Client, Server, raw, serving
from tests.support.redis_store import empty_redis, shared_server
from tickwork import Scheduler
from tickwork.errors import StoreUnavailable
from tickwork.monitor import tallies
from tickwork.server.callers import Role
from tickwork.server.exports import csv_of
from tickwork.server.http import pages
from tickwork.server.http.app import http_app
from tickwork.server.http.guard import SECURITY
from tickwork.server.operations import operations
from tickwork.server.rows import EventRow

PATHS = (
    "/", "/tasks/x", "/index.html", "/icon.svg", "/theme.js", "/assets/none.js", "/health", "/ready", "/live",
    "/metrics",
    f"{API}", f"{API}/", f"{API}/session", f"{API}/openapi.json", f"{API}/status", f"{API}/tasks/none",
    f"{API}/nothing",
    f"{API}/tasks/export", f"{API}/tasks?limit=x", "//x", f"{API}/audit/export",
)  # fmt: skip


class TestHeaders:
    async def test_every_answer_has_those_of_security(self, server: Server) -> None:
        for caller in (await server.stranger(), await server.as_role("admin"), await server.as_role("worker")):
            for path in PATHS:
                for method in ("GET", "POST", "OPTIONS", "HEAD", "DELETE"):
                    answer = await caller.request(method, server.url + path)
                    assert answer.status_code < 500, (method, path)
                    for name, value in SECURITY.items():
                        assert answer.headers.get(name) == value, (method, path, name)
                    assert "server" not in answer.headers
                    assert "x-powered-by" not in answer.headers

    async def test_so_have_refusals_of_the_guard(self, server: Server) -> None:
        for head in ("Host: evil.example", "Host: localhost\r\nHost: localhost", "Host: localhost\r\nOrigin: http://x"):
            answer = await raw(server.port, f"POST {API}/tasks HTTP/1.1\r\n{head}\r\n\r\n".encode())
            for name in SECURITY:
                assert name.encode() in answer.lower()

    async def test_so_has_a_mistake_in_the_guard(
        self, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def broken(*_: Any) -> Any:
            raise RuntimeError("secret detail")

        caller = await server.as_role("admin")
        monkeypatch.setattr(server.plane, "let_in", broken)
        answer = await caller.get("/status")
        assert (answer.status_code, answer.json()["code"]) == (500, "internal")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers.items() >= SECURITY.items()
        assert "secret detail" not in answer.text
        (told,) = [each for each in caplog.records if each.exc_info]
        assert told.getMessage().startswith("a request of GET ")
        assert f"{API}/status" in told.getMessage()

    def test_what_the_policy_allows(self) -> None:
        policy = dict(part.strip().split(" ", 1) for part in SECURITY["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert "unsafe" not in SECURITY["content-security-policy"]
        assert "http" not in SECURITY["content-security-policy"]
        assert SECURITY["cross-origin-opener-policy"] == "same-origin"
        assert SECURITY["cross-origin-resource-policy"] == "same-origin"
        assert SECURITY["referrer-policy"] == "no-referrer"
        assert SECURITY["x-content-type-options"] == "nosniff"

    async def test_data_is_kept_by_no_cache(self, server: Server) -> None:
        admin = await server.as_role("admin")
        for name in NAMES:
            given = await example(server, admin, name)
            answer = await admin.call(operations()[name], given.names, given.body)
            assert answer.headers["cache-control"] == "no-store", name

    async def test_the_dashboard_has_no_maps_and_no_service_worker(self) -> None:
        found = [each for each in (files("tickwork.server") / "ui").rglob("*") if each.is_file()]  # type: ignore[attr-defined]
        assert [each.name for each in found if each.name.endswith(".map")] == []
        for each in found:
            text = each.read_text("utf-8", "replace")
            assert "sourceMappingURL" not in text, each
            assert "serviceWorker" not in text, each

    async def test_files_are_found_by_name_only(self, server: Server) -> None:
        for path in (
            "/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/../index.html",
            "/assets/..%2f..%2fplane.py", "/etc/passwd", "/assets/%00", "/__init__.py", "/assets/", "/assets",
        ):  # fmt: skip
            answer = await raw(
                server.port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
            )
            assert answer.split(b" ", 2)[1] in (b"200", b"404"), path
            assert b"root:" not in answer
            assert b"import " not in answer


class TestPages:
    async def test_a_stranger_is_told_how_it_is_and_no_more(self, server: Server) -> None:
        stranger = await server.stranger()
        for path in ("/health", "/ready"):
            answer = await stranger.request("GET", server.url + path)
            assert answer.json() == {"status": "healthy"}, path
        assert (await stranger.request("GET", f"{server.url}/live")).json() == {"status": "alive"}

    async def test_those_with_a_token_are_told_more(self, server: Server) -> None:
        for role in (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR, Role.ADMIN):
            answer = await (await server.as_role(role, HOME)).request("GET", f"{server.url}/health")
            assert set(answer.json()) > {"status"}

    async def test_but_not_those_who_may_not_look_at_this_namespace(self, server: Server) -> None:
        for caller in (await server.as_role("worker"), await server.as_role("admin", OTHER)):
            for path in ("/health", "/ready"):
                assert (await caller.request("GET", server.url + path)).json() == {"status": "healthy"}

    async def test_head_is_answered_as_get_without_a_body(self, url: str) -> None:
        async with serving(url, app=_measured(url), node=True) as server:
            viewer, stranger = await server.as_role("viewer"), await server.stranger()
            for path in ("/health", "/ready", "/live", "/metrics", "/", "/icon.svg"):
                for caller in (viewer, stranger):
                    whole = await caller.request("GET", server.url + path)
                    head = await caller.request("HEAD", server.url + path)
                    assert (head.status_code, head.content) == (whole.status_code, b""), path
                    assert head.headers["content-type"] == whole.headers["content-type"]
                    assert int(head.headers["content-length"]) > 0
            assert (await stranger.request("HEAD", f"{server.url}/assets/none.js")).status_code == 404
            assert (await viewer.ask("HEAD", "/status")).status_code == 405
            two = b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /live HTTP/1.1\r\nHost: localhost\r\n"
            answers = await raw(server.port, two + b"Connection: close\r\n\r\n")
            assert answers.count(b"HTTP/1.1 200") == 2
            assert answers.endswith(b'{"status":"alive"}')

    async def test_so_it_is_in_another_server(self, server: Server) -> None:
        transport = httpx.ASGITransport(http_app(server.plane))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as caller:
            answer = await caller.head("/health")
        assert (answer.status_code, answer.content) == (200, b"")

    async def test_a_store_that_is_gone_is_503_without_its_error(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with serving(url) as server:
            viewer = await server.as_role("viewer")
            _break(server, monkeypatch, "cannot reach sqlite at /secret/path")
            answer = await (await server.stranger()).request("GET", f"{server.url}/health")
            assert (answer.status_code, answer.json()) == (503, {"status": "unhealthy"})
            status = await viewer.get("/status")
            assert (status.status_code, status.json()["code"]) == (503, "store_unavailable")
            for name, value in SECURITY.items():
                assert status.headers[name] == value

    async def test_metrics_are_for_those_who_may_look_at_this_namespace(self, url: str) -> None:
        async with serving(url, app=_measured(url), node=True) as server:

            async def ask(caller: Client) -> tuple[int, str]:
                answer = await caller.request("GET", f"{server.url}/metrics")
                return answer.status_code, "" if answer.status_code == 200 else answer.json()["code"]

            assert await ask(await server.stranger()) == (401, "not_signed_in")
            assert await ask(await server.with_token("tw_a_b")) == (401, "bad_token")
            assert await ask(await server.as_role("worker")) == (403, "not_allowed")
            assert await ask(await server.as_role("admin", OTHER)) == (403, "not_allowed")
            viewer = await server.as_role("viewer", HOME)
            assert await ask(viewer) == (200, "")
            assert "scheduler_info" in (await viewer.request("GET", f"{server.url}/metrics")).text

    async def test_while_nobody_can_be_looked_up_metrics_are_503(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pages, "LOOK_SECONDS", 0.3)

        async def hang() -> Any:
            await asyncio.sleep(30)

        async with serving(url, app=_measured(url), node=True) as server:
            viewer = await server.as_role("viewer")
            monkeypatch.setattr(server.plane.tokens, "_open_store", hang)
            began = time.monotonic()
            slow = await viewer.request("GET", f"{server.url}/metrics")
            health = await viewer.request("GET", f"{server.url}/health")
            assert time.monotonic() - began < 10
            _break(server, monkeypatch, "cannot reach sqlite at /secret/path")
            gone = await viewer.request("GET", f"{server.url}/metrics")
        for answer in (slow, gone):
            assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
            assert "/secret/path" not in answer.text
        assert list(health.json()) == ["status"]

    async def test_guesses_at_metrics_are_slowed_down_and_health_is_told_all_the_same(self, url: str) -> None:
        async with serving(url, app=_measured(url), node=True) as server:
            guesser = await server.with_token("tw_a_b")
            answers = [await guesser.request("GET", f"{server.url}/metrics") for _ in range(12)]
            health = await guesser.request("GET", f"{server.url}/health")
        assert [each.status_code for each in answers] == [401] * 11 + [429]
        assert health.json() == {"status": "healthy"}

    async def test_names_that_submitters_choose_are_labels_up_to_a_bound(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tallies, "NAMES_MAX", 20)
        async with serving(url, app=_measured(url), node=True) as server:
            submitter = await server.as_role("submitter")
            tasks = [{"type": f"noise{number}", "queue": f"noise{number}"} for number in range(500)]
            await submitter.do("POST", "/tasks/batch", {"tasks": tasks})
            text = (await submitter.request("GET", f"{server.url}/metrics")).text
        named = {line.partition("noise")[2][:4] for line in text.splitlines() if "noise" in line}
        assert 0 < len(named) <= 60  # types, and queues of several numbers, each up to the bound

    async def test_the_description_of_the_api_is_for_those_who_may_call_it(self, server: Server) -> None:
        stranger, worker = await server.stranger(), await server.as_role("worker")
        assert (await stranger.get("/openapi.json")).status_code == 401
        assert (await worker.get("/openapi.json")).status_code == 200
        answer = await stranger.request("GET", server.url + API)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def _measured(url: str) -> Scheduler:
    app = Scheduler(url, namespace=HOME, server=True, server_port=0, server_tokens=True, metrics=True, metrics_port=0)

    @app.task("mail")
    def mail() -> None: ...

    return app


def _break(server: Server, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    async def gone(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable(text)

    access = server.app._access
    monkeypatch.setattr(access, "open_store", gone)
    monkeypatch.setattr(server.plane.tokens, "_open_store", gone)
    monkeypatch.setattr(server.plane.home, "store", gone)


class TestExports:
    ACTIVE = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://evil.example")')

    async def test_no_cell_is_taken_for_a_formula(self, server: Server) -> None:
        admin = await server.as_role("admin", name="=cmd|'/c calc'!A0")
        for number, text in enumerate(self.ACTIVE):
            await server.app.submit("mail", id=f"t{number}", key=text, delay=60)
            await admin.do("POST", f"/queues/q{number}/pause", {"note": text})
            await server.dead(text, key=text)
        for path in ("/tasks/export", "/audit/export", "/reports/export"):
            answer = await admin.get(path)
            assert answer.headers["content-disposition"].startswith("attachment;")
            cells = [cell for row in csv.reader(io.StringIO(answer.text, newline="")) for cell in row]
            assert [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))] == []
            assert [cell for cell in cells if cell.startswith("-") and not cell[1:].replace(".", "").isdigit()] == []
        text = (await admin.get("/tasks/export")).text
        assert "'=1+1" in text
        assert "'@SUM(A1)" in text

    def test_numbers_stay_numbers_and_lines_stay_in_their_cell(self) -> None:
        row = EventRow(
            seq=-5, at=datetime(2030, 1, 1, tzinfo=UTC), kind='a"b', id="x,y", type="", queue="l1\nl2", worker_id="-x",
            attempt=0, duration=-1.5, detail="=1",
        )  # fmt: skip
        (read,) = list(csv.DictReader(io.StringIO(csv_of(EventRow, [row]), newline="")))
        assert (read["seq"], read["duration"], read["worker_id"], read["detail"]) == ("-5", "-1.5", "'-x", "'=1")
        assert (read["kind"], read["id"], read["queue"]) == ('a"b', "x,y", "l1\nl2")


class TestQuotas:
    async def over(self, client: Client, method: str, path: str, body: Any) -> None:
        answer = await client.ask(method, path, body)
        assert (answer.status_code, answer.json()["code"]) == (429, "quota"), answer.text
        assert int(answer.headers["retry-after"]) >= 1

    async def test_unfinished_tasks(self, url: str) -> None:
        async with serving(url, server_quota={"waiting": 3}) as server:
            caller = await server.as_role("submitter")
            await self.over(caller, "POST", "/tasks/batch", {"tasks": [{"type": "a"}] * 4})
            await caller.do("POST", "/tasks/batch", {"tasks": [{"type": "a"}] * 3})
            await asyncio.sleep(0.6)  # counts are read anew after half a second
            await self.over(caller, "POST", "/tasks", {"type": "a"})
            assert (await caller.post("/tasks", {"type": "a"}, ns=OTHER)).status_code == 201

    async def test_names_of_queues(self, url: str) -> None:
        async with serving(url, server_quota={"queues": 2}) as server:
            caller = await server.as_role("submitter")
            await server.app.submit("a", queue="one")
            await server.app.submit("a", queue="two")
            await self.over(caller, "POST", "/tasks", {"type": "a", "queue": "three"})
            await caller.do("POST", "/tasks", {"type": "a", "queue": "two"})

    async def test_names_of_types(self, url: str) -> None:
        async with serving(url, server_quota={"types": 2}) as server:
            caller = await server.as_role("submitter")
            await caller.do("POST", "/tasks", {"type": "a"})
            await caller.do("POST", "/tasks", {"type": "b"})
            await self.over(caller, "POST", "/tasks", {"type": "c"})
            await caller.do("POST", "/tasks", {"type": "a"})
            await (await server.as_role("worker")).do("POST", "/workers", {"id": "w", "task_types": ["c"]})

    async def test_schedules_also_by_a_cron_line(self, url: str) -> None:
        async with serving(url, server_quota={"schedules": 1}) as server:
            admin = await server.as_role("admin")
            await admin.do("POST", "/tasks", {"type": "a", "cron": "0 3 * * *"})
            await self.over(admin, "POST", "/tasks", {"type": "a", "cron": "0 3 * * *"})
            await self.over(admin, "POST", "/schedules", {"id": "s", "type": "a", "cron": "0 3 * * *"})
            await self.over(admin, "POST", "/tasks/batch", {"tasks": [{"type": "a", "cron": "0 3 * * *"}]})

    async def test_pauses(self, url: str) -> None:
        async with serving(url, server_quota={"pauses": 1}) as server:
            admin = await server.as_role("admin")
            await admin.do("POST", "/queues/a/pause", {})
            await self.over(admin, "POST", "/queues/b/pause", {})
            await self.over(admin, "POST", "/types/b/pause", {})

    async def test_tasks_of_one_batch(self, url: str) -> None:
        async with serving(url, server_quota={"batch": 2}) as server:
            caller = await server.as_role("submitter")
            await caller.do("POST", "/tasks/batch", {"tasks": [{"type": "a"}] * 2})
            answer = await caller.post("/tasks/batch", {"tasks": [{"type": "a"}] * 3})
            assert answer.status_code == 400
            assert "2" in answer.json()["detail"]


class TestSecrets:
    async def test_a_password_of_the_store_and_tokens_are_in_no_answer_page_or_log_line(
        self, caplog: pytest.LogCaptureFixture, tmp_path: Path
    ) -> None:
        caplog.set_level(logging.DEBUG)
        redis = shared_server()
        url = empty_redis().replace("redis://", "redis://canary:c4n4ry-pass@")
        redis.command("ACL", "SETUSER", "canary", "reset", "on", ">c4n4ry-pass", "~*", "&*", "+@all")
        seen: list[str] = []
        try:
            async with serving(url) as server:
                token = await server.token("admin")
                admin = await server.with_token(token)
                session = await server.signed_in("admin")
                for name in NAMES:
                    given = await example(server, admin, name)
                    answer = await admin.call(operations()[name], given.names, given.body)
                    if name != "make_token":
                        seen.append(answer.text)
                for path in PATHS:
                    answer = await session.request("GET", server.url + path)
                    seen.append(answer.text + str(answer.headers))
                await (await server.with_token(f"{token}x")).get("/status")
                redis.command("ACL", "SETUSER", "canary", "off")
                redis.command("CLIENT", "KILL", "USER", "canary")
                for path in ("/status", "/tasks", "/doctor"):
                    seen.append((await admin.get(path)).text)
                seen.append((await (await server.stranger()).request("GET", f"{server.url}/health")).text)
                redis.command("ACL", "SETUSER", "canary", "on")
                cookie = session.cookies["tickwork_session"]
        finally:
            redis.command("ACL", "DELUSER", "canary")
        ours = [each for each in caplog.records if not each.name.startswith(("httpx", "httpcore"))]  # not the client
        everything = "\n".join([*seen, *(each.getMessage() + str(each.exc_text) for each in ours)])
        secret = token.split("_", 2)[2]
        assert "c4n4ry-pass" not in everything
        assert secret not in everything
        assert cookie not in everything
        assert "canary" in everything  # the name of the user may be seen, so that somebody looked
