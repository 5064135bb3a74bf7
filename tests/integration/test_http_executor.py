"""Tasks that an HTTP service runs."""

from __future__ import annotations

import gzip
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.integration.apps import Make, eventually
from tests.integration.test_outbound import server_context
from tests.support import hostile_http as hostile
from tests.support.hostile_http import ENDLESS_BODY, ENDLESS_HEADERS, Respond, Server, always, answer, serving
from tests.support.redis.tls import TlsFiles, tls_files
from tests.support.waiting import wait_until
from tickwork import ConfigError, Scheduler, Status, TaskFailed, TaskInfo, TaskResult
from tickwork.outbound import client

LONG = 60.0  # seconds; nothing here waits for so long unless it is broken


def options(server: Server, path: str = "/run", **endpoint: Any) -> dict[str, Any]:
    endpoint = {"url": server.url + path, "types": ["ship"], **endpoint}
    return {"allow_addresses": [server.url], "endpoints": {"billing": endpoint}}


@asynccontextmanager
async def running(make: Make, respond: Respond, path: str = "/run", **endpoint: Any) -> AsyncIterator[tuple[Any, Any]]:
    async with serving(respond) as server:
        app = make("memory://", **options(server, path, **endpoint))
        async with app:
            yield app, server


async def failure(make: Make, respond: Respond, **endpoint: Any) -> TaskInfo:
    """How a task ends for which there is no retry."""
    async with running(make, respond, **endpoint) as (app, _):
        return await ended(app)


async def ended(app: Scheduler, payload: Any = None, **said: Any) -> TaskInfo:
    task = await app.submit("ship", payload or {"id": 7}, **{"max_retry": 0, **said})
    with pytest.raises(TaskFailed):
        await task.result(LONG)
    return await task.info()


class TestCalls:
    async def test_a_service_runs_a_task(self, make: Make, url: str) -> None:
        async with serving(always(answer(b'{"parcel": 12}', "201 Created"))) as server:
            app = make(url, **options(server))
            async with app:
                task = await app.submit("ship", {"id": 7})
                assert await task.result(LONG) == {"parcel": 12}
                assert (await task.info()).result == TaskResult(201, "", {"parcel": 12})
        (request,) = server.requests
        assert (request.line, request.body) == ("POST /run HTTP/1.1", b'{"id":7}')
        assert request.header("content-type") == "application/json"
        assert request.header("idempotency-key") == task.id

    async def test_a_handler_and_a_submission_name_an_endpoint(self, make: Make) -> None:
        async with serving(always(answer(b'"done"'))) as server:
            app = make("memory://", **options(server, types=[]))

            @app.task(executor="http", target="billing")
            async def pack(id: int) -> str:
                raise NotImplementedError

            @app.task
            async def weigh(id: int) -> str:
                raise NotImplementedError

            async with app:
                assert await (await pack.submit(7)).result(LONG) == "done"
                there = await weigh.options(executor="http", target="billing").submit(8)
                assert await there.result(LONG) == "done"
        assert [request.body for request in server.requests] == [b'{"id":7}', b'{"id":8}']

    async def test_the_url_and_the_headers_are_made_of_the_task(self, make: Make) -> None:
        headers = {"X-Task": "{type} {attempt}", "X-Fixed": "a"}
        path = "/orders/{payload.order}/ship?zone={tags.zone}&key={key}"
        async with running(make, always(answer()), path, method="GET", headers=headers) as (app, server):
            task = await app.submit("ship", {"order": "a/../b c"}, tags={"zone": "eu&x=y"}, key="k1")
            assert await task.result(LONG) is None
        (request,) = server.requests
        assert request.line == "GET /orders/a%2F..%2Fb%20c/ship?zone=eu%26x%3Dy&key=k1 HTTP/1.1"
        assert (request.header("x-task"), request.header("x-fixed"), request.body) == ("ship 1", "a", b"")
        assert request.header("content-type") is None

    @pytest.mark.parametrize(
        ("payload", "reason"),
        [
            ({"order": ".."}, "{payload.order} is '..', which is no part of a path"),
            ({"other": 1}, "{payload.order} is missing"),
            (
                {"order": "x", "name": "a\r\nX-Admin: yes"},
                "{payload.name} would put a line break or the like into a header",
            ),
            ({"order": "x" * 9000, "name": "a"}, "its URL has 9,0"),
        ],
    )
    async def test_a_task_that_cannot_be_sent(self, make: Make, payload: Any, reason: str) -> None:
        headers = {"X-Name": "{payload.name}"} if "name" in payload else {}
        async with running(make, always(answer()), "/{payload.order}", headers=headers) as (app, server):
            info = await ended(app, payload, max_retry=3)
        assert reason in (info.last_error or "")
        assert (info.attempt, server.requests) == (1, [])

    async def test_a_payload_of_another_serializer_is_sent_as_json(self, make: Make) -> None:
        async with running(make, always(answer())) as (app, server):
            await (await app.submit("ship", {"id": 7}, serializer="msgpack")).result(LONG)
            await (await app.submit("ship")).result(LONG)
        assert [request.body for request in server.requests] == [b'{"id":7}', b"{}"]

    async def test_a_payload_over_the_bound_is_not_sent(self, make: Make) -> None:
        async with running(make, always(answer()), request_limit=10) as (app, server):
            info = await ended(app, {"id": "x" * 10})
        assert "its payload has 19 bytes, request_limit is 10" in (info.last_error or "")
        assert server.requests == []

    async def test_the_key_of_all_attempts_is_the_same(self, make: Make) -> None:
        async with running(make, hostile.vanish) as (app, server):
            info = await ended(app, max_retry=2)
        assert [request.header("idempotency-key") for request in server.requests] == [info.id] * 3

    async def test_its_header_can_be_named_or_left_out(self, make: Make) -> None:
        async with running(make, always(answer()), idempotency_header="X-Once") as (app, server):
            task = await app.submit("ship")
            await task.result(LONG)
        assert server.requests[0].header("x-once") == task.id
        async with running(make, always(answer()), idempotency_header="") as (app, server):
            await (await app.submit("ship")).result(LONG)
        assert server.requests[0].header("idempotency-key") is None

    async def test_many_tasks_share_connections(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client, "KEEP_ALIVE", 600.0)
        async with running(make, always(answer())) as (app, server):
            for _ in range(5):
                await (await app.submit("ship")).result(LONG)
        assert (len(server.requests), server.connections) == (5, 1)


class TestSecrets:
    async def test_are_read_for_each_call(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("one\n")
        headers = {"Authorization": {"secret": f"file:{tmp_path / 'token'}", "prefix": "Bearer "}}
        async with running(make, always(answer()), headers=headers) as (app, server):
            await (await app.submit("ship")).result(LONG)
            (tmp_path / "next").write_text("two\n")
            (tmp_path / "next").replace(tmp_path / "token")
            await (await app.submit("ship")).result(LONG)
        sent = [request.header("authorization") for request in server.requests]
        assert sent == ["Bearer one", "Bearer two"]

    async def test_that_cannot_be_read_are_a_failed_attempt(self, make: Make, tmp_path: Path) -> None:
        headers = {"X-Key": {"secret": f"file:{tmp_path / 'token'}"}}
        async with running(make, always(answer()), headers=headers) as (app, server):
            info = await ended(app, max_retry=1)
        assert "endpoint 'billing': the secret in file" in (info.last_error or "")
        assert (info.attempt, server.requests) == (2, [])

    async def test_appear_in_nothing_that_is_shown(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("hunter2")
        headers = {"X-Key": {"secret": f"file:{tmp_path / 'token'}"}}
        async with running(make, always(answer(b"no", "500 Oops")), headers=headers) as (app, server):
            info = await ended(app)
            assert server.requests[0].header("x-key") == "hunter2"
            assert "hunter2" not in repr(app.config) + repr(info) + repr(app.loaded)

    async def test_a_submission_cannot_name_one(self, make: Make, tmp_path: Path) -> None:
        """It is a text like any other there."""
        (tmp_path / "token").write_text("hunter2")
        async with running(make, always(answer()), headers={"X-Key": "{payload.key}"}) as (app, server):
            await (await app.submit("ship", {"key": f"file:{tmp_path / 'token'}"})).result(LONG)
        assert server.requests[0].header("x-key") == f"file:{tmp_path / 'token'}"


class TestAnswers:
    @pytest.mark.parametrize(
        ("result", "body", "value"),
        [
            ("json", b'{"a": [1, {"b": 2}]}', {"a": [1, {"b": 2}]}),
            ("json.a.1.b", b'{"a": [1, {"b": 2}]}', 2),
            ("json", b"", None),
            ("json.a", b"", None),
            ("text", b"caf\xc3\xa9 \xff", "café \ufffd"),
            ("none", b"anything", None),
        ],
    )
    async def test_are_mapped_to_the_result(self, make: Make, result: str, body: bytes, value: Any) -> None:
        async with running(make, always(answer(body)), result=result) as (app, _):
            assert await (await app.submit("ship")).result(LONG) == value

    @pytest.mark.parametrize(
        ("result", "body", "reason"),
        [
            ("json", b"<html>", "has answered 200, but not with JSON that can be used"),
            ("json", b"[" * 10_000 + b"]" * 10_000, "nested more than 64 levels deep"),
            ("json", b"NaN", "not with JSON"),
            ("json.a.b", b'{"a": 1}', "has answered 200, but there is nothing at json.a.b: '{\"a\": 1}'"),
        ],
    )
    async def test_that_are_not_what_was_meant_end_the_task(
        self, make: Make, result: str, body: bytes, reason: str
    ) -> None:
        async with running(make, always(answer(body)), result=result) as (app, server):
            info = await ended(app, max_retry=3)
        assert reason in (info.last_error or "")
        assert len(server.requests) == 1, "the work is done there"

    @pytest.mark.parametrize("status", ["400 Bad", "404 Not Found", "422 No", "302 Found"])
    async def test_of_a_refusal_end_the_task(self, make: Make, status: str) -> None:
        respond = always(answer(b"no", status, "Location: http://169.254.169.254/"))
        async with running(make, respond) as (app, server):
            info = await ended(app, max_retry=3)
        assert (info.status, info.attempt, len(server.requests)) == (Status.DEAD, 1, 1)
        assert f"has answered {status[:3]}" in (info.last_error or "")

    @pytest.mark.parametrize("status", ["500 Oops", "502 Bad Gateway", "504 Late"])
    async def test_of_a_failure_are_retried(self, make: Make, status: str) -> None:
        async with running(make, always(answer(b"no", status))) as (app, server):
            info = await ended(app, max_retry=2)
        assert (info.attempt, len(server.requests)) == (3, 3)
        assert (info.last_error or "").endswith(f"has answered {status[:3]}: 'no'")
        assert "Traceback" not in (info.last_error or "")

    async def test_not_now_charges_no_attempt(self, make: Make) -> None:
        busy = always(answer(b"", "503 Busy", "Retry-After: 1"))

        async def respond(request: hostile.Request, writer: Any) -> None:
            await (busy if len(seen) < 3 else always(answer(b"1")))(request, writer)
            seen.append(request)

        seen: list[hostile.Request] = []
        async with running(make, respond) as (app, _):
            task = await app.submit("ship", max_retry=0)
            assert await task.result(LONG) == 1
            assert (await task.info()).attempt == 1
        assert len(seen) == 4

    async def test_statuses_can_be_given_another_meaning(self, make: Make) -> None:
        async with running(make, always(answer(b"1", "404 Gone")), success=[404]) as (app, _):
            assert await (await app.submit("ship")).result(LONG) == 1
        async with running(make, always(answer(b"1", "201 Made")), success=[200]) as (app, _):
            assert "has answered 201" in ((await ended(app)).last_error or "")
        for status in ("409 Conflict", "503 Busy"):
            async with running(make, always(answer(b"x", status)), retry_on=[409, 503]) as (app, server):
                assert (await ended(app, max_retry=1)).attempt == 2
            assert len(server.requests) == 2

    @pytest.mark.parametrize(
        ("respond", "reason", "tries"),
        [
            (ENDLESS_BODY, "has answered with more than 1000 bytes", 1),
            (always(answer(b"", length=10**10)), "has answered with more than 1000 bytes", 1),
            (always(answer(gzip.compress(bytes(10**6)), "200 OK", "Content-Encoding: gzip")), "the coding 'gzip'", 1),
            (ENDLESS_HEADERS, "has not answered in HTTP", 1),
            (hostile.reset, "has broken off its answer", 3),
            (hostile.vanish, "cannot call http://127.0.0.1", 3),
            (hostile.hang, "has not answered within 0.2 seconds", 3),
            (hostile.drip, "has not answered within 0.2 seconds", 3),
        ],
        ids=["without end", "10 GB", "gzip bomb", "headers", "reset", "gone", "hang", "drip"],
    )
    async def test_of_hostile_services(self, make: Make, respond: Respond, reason: str, tries: int) -> None:
        timeout = 0.2 if "within" in reason else LONG
        limit = 1000 if "1000" in reason else 10**9
        async with running(make, respond, timeout=timeout, response_limit=limit) as (app, server):
            info = await ended(app, max_retry=2)
        assert reason in (info.last_error or "")
        assert "endpoint 'billing'" in (info.last_error or "")
        assert (info.attempt, len(server.requests)) == (tries, tries)

    async def test_words_of_a_stranger_are_cleaned(self, make: Make) -> None:
        info = await failure(make, always(answer(b"\x1b[2Jone\r\ntwo\x00" + b"x" * 100_000, "400 Bad")))
        assert (info.last_error or "").isprintable()
        assert len(info.last_error or "") < 1000


class TestEnds:
    async def test_a_cancel_closes_the_connection(self, make: Make) -> None:
        async with running(make, hostile.hang) as (app, server):
            task = await app.submit("ship")
            await wait_until(lambda: server.requests)
            await task.cancel(force=True)
            await wait_until(server.closed.is_set)
            await eventually(lambda: _is(task, Status.CANCELLED))

    async def test_a_timeout_of_the_task_closes_the_connection(self, make: Make) -> None:
        async with running(make, hostile.hang, timeout=LONG) as (app, server):
            info = await ended(app, timeout=0.3)
            await wait_until(server.closed.is_set)
        assert "0.3 s" in (info.last_error or "") or "has not answered within 0." in (info.last_error or "")

    async def test_a_shutdown_gives_the_task_back(self, make: Make, sqlite_url: str) -> None:
        async with serving(hostile.hang) as server:
            app = make(sqlite_url, **options(server), shutdown_timeout=0.1)
            await app.start()
            task = await app.submit("ship")
            await wait_until(lambda: server.requests)
            await app.shutdown()
            await wait_until(server.closed.is_set)
            info = await task.info()
        assert (info.status, info.attempt) == (Status.READY, 0)

    async def test_a_scheduler_is_started_again(self, make: Make, sqlite_url: str) -> None:
        async with serving(always(answer(b"1"))) as server:
            app = make(sqlite_url, **options(server))
            for _ in range(2):
                async with app:
                    assert await (await app.submit("ship")).result(LONG) == 1


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return tls_files(tmp_path_factory.mktemp("tls"))


class TestTls:
    async def test_of_an_authority_that_is_named(self, make: Make, files: TlsFiles) -> None:
        async with serving(always(answer(b"1")), server_context(files)) as server:
            app = make("memory://", **options(server, tls={"ca": str(files["ca"])}))
            async with app:
                assert await (await app.submit("ship")).result(LONG) == 1

    async def test_a_certificate_that_does_not_fit(self, make: Make, files: TlsFiles) -> None:
        async with serving(always(answer(b"1")), server_context(files)) as server:
            app = make("memory://", **options(server))
            async with app:
                info = await ended(app)
        assert "endpoint 'billing': cannot call https://127.0.0.1:" in (info.last_error or "")
        assert "its certificate is not accepted" in (info.last_error or "")
        assert server.requests == []

    async def test_a_file_that_is_missing_is_told_at_the_start(self, make: Make) -> None:
        app = make("memory://", **options(Server(9, "https"), tls={"ca": "/nowhere/ca.pem"}))
        with pytest.raises(ConfigError, match=r"endpoints: billing: tls: the authorities in '/nowhere/ca\.pem'"):
            await app.start()


class TestConfiguration:
    def test_an_address_outside_the_list(self) -> None:
        given = options(Server(9)) | {"allow_addresses": ["http://127.0.0.1:10"]}
        with pytest.raises(ConfigError, match=r"endpoints: billing: address http://127\.0\.0\.1:9 is not allowed"):
            Scheduler("memory://", **given)

    async def test_an_unknown_endpoint_is_refused_with_those_that_are_known(self, sqlite_url: str) -> None:
        app = Scheduler(sqlite_url, **options(Server(9)))
        with pytest.raises(ConfigError, match="executor 'http' has no target 'biling'; known are billing"):
            await app.submit("ship", executor="http", target="biling")
        with pytest.raises(ConfigError, match="executor 'http' needs a target; known are billing"):
            await app.submit("other", executor="http")
        await app.close()

    @pytest.mark.parametrize(
        ("endpoint", "complaint"),
        [
            ({"method": "TRACE"}, "method must be one of GET, HEAD, POST"),
            ({"method": "post"}, "method must be one of"),
            ({"body": "form"}, "body must be payload or none"),
            ({"result": "xml"}, "result must be json, json.path.in.it, text or none"),
            ({"result": "json."}, "result must be"),
            ({"timeout": 0}, "timeout must be above 0"),
            ({"response_limit": 0}, "response_limit must be from 1"),
            ({"success": [99]}, "success holds 99"),
            ({"retry_on": [600]}, "retry_on holds 600"),
            ({"success": [200], "retry_on": [200]}, "success and retry_on both hold 200"),
            ({"headers": {"Host": "x"}}, "the header Host cannot be set"),
            ({"headers": {"content-length": "1"}}, "the header content-length cannot be set"),
            ({"headers": {"X-A": "a\r\nb"}}, "has a line break"),
            ({"headers": {"X-A": "{nothing}"}}, "has an unknown placeholder {nothing}"),
            ({"headers": {"Authorization": "Bearer hunter2"}}, "header Authorization is a secret"),
            ({"headers": {"X-A": {"secret": "hunter2"}}}, "a secret is named by reference"),
            ({"headers": {"X-A": {"secret": "env:HOME"}}}, "a secret is named by reference"),
            ({"headers": {"Idempotency-Key": "x"}}, "which is idempotency_header"),
            ({"idempotency_header": "a b"}, "is not the name of a header"),
            ({"url": "http://{payload.host}:9/"}, "scheme, host and port cannot have placeholders"),
            ({"url": "http://127.0.0.1:9/{payload.__class__!r}"}, "has an unknown placeholder"),
            ({"url": "http://u:hunter2@127.0.0.1:9/"}, "has a user name or a password"),
            ({"tls": {"ca": "/x"}}, "tls goes with a url of https://"),
            ({"timout": 3}, "has an unknown field 'timout'; did you mean 'timeout'?"),
        ],
    )
    def test_an_endpoint_that_cannot_be_used(self, endpoint: dict[str, Any], complaint: str) -> None:
        with pytest.raises(ConfigError, match=r"^endpoints: ") as refused:
            Scheduler("memory://", **options(Server(9), **endpoint))
        assert complaint in str(refused.value)
        assert "hunter2" not in str(refused.value)

    def test_one_type_has_one_endpoint(self) -> None:
        given = options(Server(9))
        given["endpoints"]["mail"] = given["endpoints"]["billing"]
        with pytest.raises(ConfigError, match="endpoints: mail: endpoint 'billing' runs type 'ship' already"):
            Scheduler("memory://", **given)

    def test_a_file_has_the_same(self, tmp_path: Path) -> None:
        given = options(Server(9), headers={"X-A": {"secret": "file:/x"}}, timeout="5s", success=[200, 201])
        (tmp_path / "t.yaml").write_bytes(msgspec.yaml.encode(given))
        endpoint = Scheduler("memory://", config=tmp_path / "t.yaml").config.endpoints["billing"]
        assert (endpoint.timeout, endpoint.success, endpoint.method) == (5.0, (200, 201), "POST")

    def test_a_list_of_addresses_is_read_though_nobody_is_called(self) -> None:
        with pytest.raises(ConfigError, match=r"allow_addresses: 'api\.example\.com' is not scheme, host and port"):
            Scheduler("memory://", allow_addresses=["api.example.com"])

    async def test_endpoints_can_be_taken_away(self, sqlite_url: str) -> None:
        app = Scheduler(sqlite_url, **options(Server(9)))
        app.configure(endpoints={})
        with pytest.raises(ConfigError, match="unknown executor 'http'; known are local"):
            await app.submit("ship", executor="http", target="billing")
        await app.close()

    async def test_who_only_submits_needs_no_aiohttp(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        app = Scheduler("memory://", **options(Server(9)))
        await app.submit("ship", {"id": 7})
        with pytest.raises(ConfigError, match=r'pip install "tickwork\[http\]"'):
            await app.start()
        await app.close()


async def _is(task: Any, status: Status) -> bool:
    return bool((await task.info()).status is status)
