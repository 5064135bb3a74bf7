"""What is sent is looked at before it is decoded, and hostile bytes are never a mistake of the server."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any
from urllib.parse import quote

import pytest

from tests.server.examples import MAKERS, NAMES
from tests.server.serving import API, HOME, Client, Server, raw, serving
from tickwork import Scheduler
from tickwork.monitor import serving as listening
from tickwork.server.callers import Role
from tickwork.server.http import guard
from tickwork.server.http.guard import BODY_MAX, check_json
from tickwork.server.operations import operations
from tickwork.server.problems import Refused

JSON = {"content-type": "application/json"}


async def sent(client: Client, body: bytes, path: str = "/tasks", method: str = "POST") -> Any:
    return await client.request(method, f"{API}{path}", content=body, headers=JSON)


def nested(depth: int, inner: bytes = b"1") -> bytes:
    return b'{"type":"mail","payload":' + b"[" * depth + inner + b"]" * depth + b"}"


HOSTILE = {
    "empty": b"", "a word": b"x", "cut short": b'{"type":', "two values": b"{} {}", "a comma": b'{"type":"a",}',
    "bytes": b"\xff\xfe\x00", "bad UTF-8": b'{"type":"a","key":"\xff"}', "overlong": b'{"type":"a","key":"\xc0\xaf"}',
    "raw surrogate": b'{"type":"a","key":"\xed\xa0\x80"}', "lone surrogate": b'{"type":"a","key":"\\ud800"}',
    "lone in payload": b'{"type":"a","payload":{"x":"\\udfff"}}',
    "lone in name": b'{"type":"a","payload":{"\\ud800":1}}',
    "NaN": b'{"type":"a","payload":NaN}', "infinity": b'{"type":"a","payload":-Infinity}',
    "BOM": b'\xef\xbb\xbf{"type":"a"}', "UTF-16": '{"type":"a"}'.encode("utf-16"),
    "UTF-32": '{"type":"a"}'.encode("utf-32"),
    "nul": b'{"type":"a","key":"\x00"}', "control": b'{"type":"a","key":"a\nb"}', "a list": b"[]", "null": b"null",
    "a number": b"1", "a long number": b'{"type":"a","priority":' + b"9" * 5000 + b"}", "a comment": b'{"type":"a"}//x',
    "twins": b'{"type":"a","type":"b"}', "deep twins": b'{"type":"a","payload":[{"x":1,"x":2}]}',
    "escaped twins": b'{"type":"a","payload":{"x":1,"\\u0078":2}}', "deep": nested(100), "very deep": nested(100_000),
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "unclosed": b"[" * 200_000, "quotes": b'"' * 100_001,
    "backslashes": b'"' + b"\\" * 100_001, "a single quote": b"{'type':'a'}",
}  # fmt: skip


class TestForm:
    @pytest.mark.parametrize("name", HOSTILE)
    async def test_a_hostile_body_is_refused_with_4xx(self, name: str, admin: Client, server: Server) -> None:
        answer = await sent(admin, HOSTILE[name])
        assert 400 <= answer.status_code < 500, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert len(answer.text) < 600
        assert (await admin.read("/tasks"))["items"] == []

    async def test_the_same_for_every_operation_that_takes_a_body(self, admin: Client) -> None:
        taking = [each for each in operations().values() if "body" in each.parameters]
        assert len(taking) > 15
        for operation in taking:
            path = operation.path.format(id="x", name="x")
            for name in (
                "empty",
                "a word",
                "raw surrogate",
                "lone surrogate",
                "UTF-16",
                "twins",
                "deep",
                "a list",
                "null",
            ):
                answer = await sent(admin, HOSTILE[name], path, operation.method)
                assert 400 <= answer.status_code < 500, f"{operation.name} {name}: {answer.text}"
        assert (await sent(admin, b'{"token":"\\ud800"}', "/session")).status_code in (400, 401)

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            (b'{"type":"a","type":"a"}', "repeated_name"),
            (b'{"type":"a","payload":{"deep":[{"x":1,"x":1}]}}', "repeated_name"),
            (nested(70), "too_deep"),
            (b'{"type":"a","key":"\xff"}', "not_json"),
        ],
    )
    async def test_it_is_said_what_is_wrong(self, body: bytes, code: str, admin: Client) -> None:
        assert (await sent(admin, body)).json()["code"] == code

    @pytest.mark.parametrize("depth", [1, 63, 64])
    async def test_a_payload_may_be_64_levels_deep(self, depth: int, admin: Client) -> None:
        answer = await sent(admin, nested(depth))
        assert answer.status_code == 201, answer.text
        task = answer.json()["id"]
        assert (await admin.get(f"/tasks/{task}")).status_code == 200

    @pytest.mark.parametrize("depth", [65, 66, 67, 68, 69])
    async def test_and_no_deeper(self, depth: int, admin: Client) -> None:
        for path, body in (("/tasks", nested(depth)), ("/tasks/batch", b'{"tasks":[' + nested(depth) + b"]}")):
            answer = await sent(admin, body, path)
            if answer.status_code == 200:
                assert answer.json()["refused"] == 1
            else:
                assert answer.status_code == 400
        assert (await admin.read("/tasks"))["items"] == []

    async def test_texts_of_any_kind_come_back_as_they_were(self, admin: Client) -> None:
        payload = {"a": "\u0000\u202e\ufeff😀<script>\u2028", "": [None, True, 1.5, -0.0, 10**15, "\\u0000"]}
        made = await admin.do("POST", "/tasks", {"type": "a", "payload": payload, "key": "<b>\u202e"})
        assert made["payload"] == payload
        assert (await admin.read(f"/tasks/{made['id']}"))["key"] == "<b>\u202e"

    def test_one_name_in_two_objects_is_no_twin(self) -> None:
        check_json(b'{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":1}]}')
        with pytest.raises(Refused):
            check_json(b'{"a":{"x":1},"a":{"x":1}}')

    async def test_an_operation_without_a_body_needs_none(self, admin: Client) -> None:
        await admin.do("POST", "/tasks", {"type": "a", "id": "t", "delay": 60})
        assert (await admin.post("/tasks/t/run-now")).status_code == 200
        assert (await sent(admin, b"\xff", "/tasks/t/run-now")).status_code == 400


class TestSize:
    async def test_a_batch_may_have_32_mib(self) -> None:
        """Few tasks with large payloads, as the documentation says."""
        app = Scheduler("memory://", namespace=HOME, server_port=0, server_tokens=True)

        @app.task("a")
        def run(text: str) -> None: ...

        async with serving("memory://", app=app) as server:
            submitter = await server.as_role("submitter")
            tasks = [{"type": "a", "payload": {"text": f"{number:,}" * 50_000}} for number in range(1_000, 1_048)]
            body = json.dumps({"tasks": tasks}).encode()
            assert 11_500_000 < len(body) < 12_500_000
            answer = await sent(submitter, body, "/tasks/batch")
            assert (answer.status_code, answer.json().get("refused")) == (200, 0), answer.text
            assert answer.json()["created"] == 48

    async def test_a_large_one_is_looked_at_in_a_thread(self, admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        """Else nobody else would be answered meanwhile."""
        on_loop: list[bool] = []

        def check(body: bytes) -> None:
            on_loop.append(threading.current_thread() is threading.main_thread())
            check_json(body)

        monkeypatch.setattr(guard, "check_json", check)
        assert (await sent(admin, b'{"type":"a"}')).status_code == 201
        assert (await sent(admin, b'{"type":"a"}' + b" " * 300_000)).status_code == 201
        assert (await sent(admin, b'{"type":"a","type":"b"}' + b" " * 300_000)).json()["code"] == "repeated_name"
        assert on_loop == [True, False, False]

    @pytest.mark.parametrize("value", [b"1", b"[]", b"[[[[]]]]", b'{"a":1}', b'"",""', b'"\\"","\\\\"'])
    def test_the_number_of_values_has_a_bound(self, value: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(guard, "VALUES_MAX", 100)
        check_json(b"[" + b",".join([value] * 10) + b"]")
        with pytest.raises(Refused, match="at most 100 values"):
            check_json(b"[" + b",".join([value] * 101) + b"]")

    def test_what_stands_in_texts_is_no_value(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(guard, "VALUES_MAX", 100)
        for text in (",[{" * 500, '",' * 500, '\\",[' * 500, "\\," * 500):
            check_json(json.dumps([text, "", text]).encode())

    async def test_a_megabyte_is_the_most_and_a_batch_may_be_larger(self, admin: Client) -> None:
        filler = b" " * BODY_MAX
        large = await sent(admin, b'{"type":"a"}' + filler)
        assert (large.status_code, large.json()["code"]) == (413, "too_large")
        assert (await sent(admin, b'{"tasks":[{"type":"a"}]}' + filler, "/tasks/batch")).status_code == 200

    async def test_one_that_does_not_say_how_long_it_is_has_the_same_bound(self, admin: Client) -> None:
        async def chunks() -> Any:
            for _ in range(BODY_MAX // 65_536 + 2):
                yield b" " * 65_536

        answer = await admin.request("POST", f"{API}/tasks", content=chunks(), headers=JSON)
        assert answer.status_code == 413

    @pytest.mark.parametrize("length", ["99999999999", "9" * 18, "-1", "1x", "0x10", "+5", "1_0", " ", "١"])
    async def test_a_length_that_is_none_is_refused_unread(self, length: str, server: Server) -> None:
        token = await server.token("admin")
        head = f"POST {API}/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        answer = await raw(server.port, f"{head}Content-Length: {length}\r\n\r\n".encode())
        assert answer.split(b" ", 2)[1] in (b"400", b"413")

    async def test_who_may_not_do_it_is_refused_before_the_body_is_sent(self, server: Server) -> None:
        """The answer comes although the body never does."""
        head = f"POST {API}/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        answer = await raw(server.port, f"{head}Content-Length: 1000000\r\n\r\n".encode())
        assert b" 401 " in answer.splitlines()[0]


class TestHttp:
    async def test_two_lengths_are_refused(self, server: Server) -> None:
        head = f"POST {API}/tasks HTTP/1.1\r\nHost: localhost\r\n"
        for lines in (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: x\r\n",
            "Transfer-Encoding : chunked\r\n", "Content-Length: 5, 5\r\n",
        ):  # fmt: skip
            smuggled = f"{head}{lines}\r\n0\r\n\r\nGET {API}/session HTTP/1.1\r\nHost: localhost\r\n\r\n"
            answer = await raw(server.port, smuggled.encode())
            assert answer.split(b" ", 2)[1] in (b"400", b"401"), lines
            assert answer.count(b"HTTP/1.1 ") == 1, lines

    @pytest.mark.parametrize(
        "data", [b"\x00" * 100, b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n"]
    )
    async def test_what_is_no_http_ends_the_connection(self, data: bytes, server: Server) -> None:
        answer = await raw(server.port, data)
        assert answer == b"" or answer.split(b" ", 2)[1] in (b"400", b"421")
        assert (await (await server.as_role("viewer")).get("/status")).status_code == 200

    async def test_headers_that_do_not_come_end_the_connection(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(listening, "HEAD_SECONDS", 0.05)
        for data in (b"", f"GET {API}/status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".encode()):
            assert await raw(server.port, data) == b""

    async def test_a_body_that_does_not_come_is_given_up(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(guard, "BODY_SECONDS", 0.05)
        head = (
            f"POST {API}/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nContent-Type: application/json\r\n"
        )
        auth = f"Authorization: Bearer {await server.token('admin')}\r\n\r\n"
        answer = await raw(server.port, f"{head}{auth}{{".encode())
        assert b" 408 " in answer.splitlines()[0]
        assert b"connection: close" in answer

    @pytest.mark.parametrize("path", [f"{API}/session", "/", "/health"])
    async def test_that_of_a_stranger_is_given_up_sooner(
        self, path: str, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert guard.STRANGER_SECONDS < guard.BODY_SECONDS
        monkeypatch.setattr(guard, "STRANGER_SECONDS", 0.05)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
        answer = await raw(server.port, f"{head}{{".encode())
        assert b" 408 " in answer.splitlines()[0]
        assert b"within 0.05 s" in answer

    async def test_one_that_drips_is_given_up_too(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = f"POST {API}/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
        writer.write(f"{head}Authorization: Bearer {await server.token('admin')}\r\n\r\n".encode())
        answering = asyncio.ensure_future(reader.readline())
        while not answering.done():
            writer.write(b" ")
            await asyncio.wait([answering], timeout=0.02)
        assert b" 408 " in await answering
        writer.close()

    async def test_too_many_and_too_long_headers_are_refused(self, server: Server) -> None:
        head = f"GET {API}/status HTTP/1.1\r\nHost: localhost\r\n"
        many = "".join(f"X-{number}: y\r\n" for number in range(150))
        answer = await raw(server.port, f"{head}{many}\r\n".encode())
        assert b" 431 " in answer.splitlines()[0]
        for data in (
            f"{head}X-Long: {'y' * 40_000}\r\n\r\n", f"GET /{'y' * 40_000} HTTP/1.1\r\nHost: localhost\r\n\r\n",
            f"GET {API}/status?x={'y' * 40_000} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ):  # fmt: skip
            answer = await raw(server.port, data.encode())
            assert answer.split(b" ", 2)[1] in (b"400", b"431"), data[:40]

    @pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND", "HEAD", "OPTIONS", "PATCH", "GETT"])
    async def test_other_methods_do_nothing(self, method: str, server: Server) -> None:
        token = await server.token("admin")
        head = f"{method} {API}/queues/q/pause HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        answer = await raw(server.port, f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
        assert answer.split(b" ", 2)[1] in (b"204", b"400", b"404", b"405")
        assert await server.app.queues.list() == []


class TestEdges:
    """Ids, names and cursors are checked before they come near a store."""

    NAMES = (
        "\x00",
        "../x",
        "a\nb",
        "\u202e😀",
        "x" * 129,
        "x" * 3000,
        "{home}:task:1",
        "'\"\\",
        "a%00b",
        "?#;",
        "tickwork.x",
    )

    async def test_a_strange_name_in_a_path_is_4xx_for_every_operation(self, any_url: str) -> None:
        async with serving(any_url) as server:
            admin = await server.as_role(Role.ADMIN)
            named = [operations()[name] for name in NAMES if "{" in operations()[name].path]
            assert len(named) > 30
            for operation in named:
                body = None
                if "body" in operation.parameters:
                    body = {"filter": "status:dead"} if operation.name == "save_view" else {}
                for name in self.NAMES:
                    path = operation.path.replace("{id}", quote(name, "")).replace("{name}", quote(name, ""))
                    answer = await admin.ask(operation.method, path, body)
                    assert answer.status_code < 500, f"{operation.name} {name!r}: {answer.text}"
                    assert len(answer.text) < 20_000

    async def test_raw_bytes_in_a_path_and_a_query_are_no_mistake_of_the_server(self, server: Server) -> None:
        token = await server.token("admin")
        for target in (
            "/tasks/%ff", "/tasks/%ed%a0%80", "/tasks?q=%ff", "/tasks?q=%ed%a0%80", "/tasks?limit=%ff", "/tasks?ns=%ff",
            "/tasks?%ff=1", "/tasks?q=a&q=b", "/tasks?limit=1&limit=2", "/tasks?=&&&=", "/tasks?q=%",
            "/tasks?cursor=%00",
            "/tasks/%2e%2e", "/tasks/%2e%2e%2fstatus", "/tasks;x=1", "/tasks/\xff",
        ):  # fmt: skip
            head = f"GET {API}{target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            answer = await raw(server.port, f"{head}Authorization: Bearer {token}\r\n\r\n".encode("latin-1"))
            assert answer.split(b" ", 2)[1] in (b"200", b"400", b"404"), target

    async def test_durations_have_64_characters_at_most(self, admin: Client) -> None:
        for q in ("submitted>" + "1" * 1900, "run>" + "1" * 1900 + "x", "wait<" + "1e" * 900):
            began = asyncio.get_running_loop().time()
            assert (await admin.get("/tasks", q=q)).status_code == 400
            assert asyncio.get_running_loop().time() - began < 2


class TestEchoes:
    """An error repeats at most about a hundred characters of what was sent."""

    LONG = "A" * 1500

    async def test_no_answer_repeats_a_long_value(self, admin: Client) -> None:
        long = self.LONG
        for method, path, body in (
            ("GET", f"/tasks/{long}", None), ("GET", f"/tasks?q=nope:{long}", None), ("GET", f"/tasks?q={long}!", None),
            ("GET", f"/tasks?q=waits:{long}", None), ("GET", f"/tasks?q=status:{long}", None),
            ("GET", f"/tasks?q=attempt>{long}", None), ("GET", f"/tasks?cursor={long[:400]}", None),
            ("GET", f"/tasks?ns={long}", None), ("GET", f"/tasks?ns={long[:64]}", None), ("GET",
            f"/tasks?limit={long}", None),
            ("GET", f"/reports?by={long}", None), ("GET", f"/events/stream?topics={long[:400]}", None),
            ("GET", f"/queues/{long}", None), ("GET", f"/failures/{long}", None), ("GET", f"/bulk/{long}", None),
            ("GET", f"/workers/{long}", None), ("GET", f"/schedules/{long}", None), ("GET", f"/{long}", None),
            ("DELETE", f"/tokens/{long}", None), ("POST", f"/queues/{long}/pause", {}),
            ("POST", "/tasks", {"type": long}), ("POST", "/tasks", {"type": "a", long: 1}),
            ("POST", "/tasks", {"type": "a", "unique": long}), ("POST", "/tasks", {"type": "a", "id": long}),
            ("POST", "/tasks", {"type": "a", "tags": {long: "x"}}), ("POST", "/tasks", {"type": "a",
            "requires": {"x": long}}),
            ("POST", "/tasks", {"type": "a", "tags": {"x": long}}), ("POST", "/tasks", {"type": "a", "delay": long}),
            ("POST", "/tasks", {"type": "a", "requires": {long: "x"}}),
            ("POST", "/tasks", {"type": "a", "schedule_at": long}), ("POST", "/tokens", {"name": "x", "role": long}),
            ("POST", "/tokens", {"name": "x", "role": "viewer", "namespaces": [f"{long} "]}),
            ("PUT", "/limits", {"of": long[:700]}), ("PUT", "/limits", {"of": "type:a", "rate": long[:64]}),
            ("POST", "/switches/off", {"of": long[:700]}), ("POST", "/schedules", {"id": "s", "type": "a",
            "dst": long}),
            ("POST", "/bulk", {"preview": long}), ("POST", "/bulk/preview", {"action": long, "filter": "x"}),
            ("POST", "/workers", {"id": long}), ("POST", "/workers", {"id": "w", "labels": {long: "x"}}),
            ("PATCH", f"/workers/{long[:128]}", {"queues": [long]}),
        ):  # fmt: skip
            answer = await admin.ask(method, path, body)
            assert 400 <= answer.status_code < 500, f"{method} {path[:60]}: {answer.status_code}"
            assert "A" * 131 not in answer.text, f"{method} {path[:60]} {str(body)[:60]}: {answer.text[:400]}"

    async def test_neither_does_that_of_twins(self, admin: Client) -> None:
        body = json.dumps({"type": "a", self.LONG: 1}).encode()[:-1] + f',"{self.LONG}":2}}'.encode()
        assert "A" * 131 not in (await sent(admin, body)).text


def test_every_operation_has_an_example() -> None:
    assert set(MAKERS) | {"run_bulk", "get_bulk", "stop_bulk"} == set(NAMES)
