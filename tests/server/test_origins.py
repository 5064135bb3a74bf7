"""From where the server may be called: host names, pages of other origins, proxies, Unix sockets, and who nobody is."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.serving import API, MAKER, Client, Server, raw, serving
from tickwork import ConfigError, Scheduler
from tickwork.monitor.listener import Listeners
from tickwork.server.callers import Role
from tickwork.server.operations import operations
from tickwork.server.parts import serve
from tickwork.server.sessions import COOKIE
from tickwork.server.settings import Settings, check_reach, is_loopback, settings_of
from tickwork.server.tokens import Tokens

STATUS = f"{API}/status"


async def asked(server: Server, *headers: str, target: str = STATUS, method: str = "GET") -> int:
    """The status of the answer to a request with exactly these headers."""
    lines = [f"{method} {target} HTTP/1.1", *headers, "Connection: close", "", ""]
    answer = await raw(server.port, "\r\n".join(lines).encode("latin-1"))
    return int(answer.split(b" ", 2)[1])


class TestHosts:
    """Also on loopback, where nobody is asked for a token: there the name is all that keeps other pages out."""

    @pytest.mark.parametrize(
        "host",
        [
            "localhost",
            "LOCALHOST",
            "LocalHost:8080",
            "127.0.0.1",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:8080",
            "localhost:65535",
        ],
    )
    async def test_names_of_loopback_are_answered(self, host: str, url: str) -> None:
        async with serving(url, server_tokens=False) as server:
            assert await asked(server, f"Host: {host}") == 200

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example", "evil.example:8080", "localhost.evil.example", "evil.localhost", "localhost.", "127.0.0.1.",
            "127.0.0.2", "127.1", "2130706433", "0.0.0.0", "[::]", "::1", "[::ffff:127.0.0.1]", "localhost:80:80", "",
            "localhost@evil.example", "evil.example@localhost", "evil.example#localhost", "localhost, evil.example",
            "localhost:", "localhost:x", "*", "localhost\x00", " ", "local\thost", "[::1", "[localhost]",
        ],
    )  # fmt: skip
    async def test_other_names_are_refused(self, host: str, url: str) -> None:
        async with serving(url, server_tokens=False) as server:
            assert await asked(server, f"Host: {host}") in (400, 421)
            for target in ("/", "/health", "/metrics", f"{API}/session", f"{API}/openapi.json"):
                assert await asked(server, f"Host: {host}", target=target) in (400, 421), target

    async def test_none_and_two_are_refused(self, url: str) -> None:
        async with serving(url, server_tokens=False) as server:
            assert await asked(server) in (400, 421)
            assert await asked(server, "Host: localhost", "Host: localhost") == 400
            assert await asked(server, "Host: localhost", "Host: evil.example") == 400
            old = await raw(server.port, f"GET {STATUS} HTTP/1.0\r\n\r\n".encode())
            assert b" 421 " in old.splitlines()[0]

    async def test_the_header_counts_and_not_the_address_in_the_request_line(self, url: str) -> None:
        async with serving(url, server_tokens=False) as server:
            assert await asked(server, "Host: evil.example", target=f"http://localhost{STATUS}") == 421
            assert await asked(server, "Host: localhost", target=f"http://localhost{STATUS}") == 200
            for target in ("*", "localhost:80", "//localhost/api/v1/status", f"http://evil.example{STATUS}"):
                assert await asked(server, "Host: evil.example", target=target) in (400, 404, 421), target

    async def test_a_forwarded_name_changes_nothing(self, url: str) -> None:
        async with serving(url) as server:
            assert await asked(server, "Host: evil.example", "X-Forwarded-Host: localhost") == 421

    async def test_other_names_are_named_by_an_option(self, url: str) -> None:
        async with serving(url, server_hosts=("Tick.Example",)) as server:
            assert await asked(server, "Host: tick.example:8443") == 401
            assert await asked(server, "Host: tock.example") == 421
            assert await asked(server, "Host: localhost") == 401

    async def test_a_refusal_repeats_little_of_the_name(self, url: str) -> None:
        async with serving(url) as server:
            answer = await raw(server.port, b"GET / HTTP/1.1\r\nHost: " + b"a" * 5000 + b"\r\n\r\n")
        assert answer.count(b"aaaaaaaaaa") <= 11


POSTED = {"content-type": "application/json"}


class TestOtherPages:
    """A page of another origin cannot change anything, whatever it can make a browser send."""

    @pytest.mark.parametrize(
        "headers",
        [
            {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://localhost:1"}, {"origin": ""},
            {"origin": "https://localhost.evil.example"}, {"origin": "file://"}, {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"}, {"sec-fetch-site": "x"},
        ],
    )  # fmt: skip
    async def test_a_change_is_refused(self, headers: dict[str, str], url: str) -> None:
        async with serving(url, server_tokens=False) as server:
            caller = await server.stranger()
            own = f"127.0.0.1:{server.port}"
            assert headers.get("origin", "").partition("://")[2] != own
            for method, path, body in (
                ("POST", "/queues/q/pause", {}), ("POST", "/queues/q/resume", None), ("DELETE", "/views/x", None),
                ("PUT", "/views/x", {"filter": "status:dead"}), ("DELETE", "/session", None),
                ("POST", "/session", {"token": "x"}),
            ):  # fmt: skip
                answer = await caller.ask(method, path, body, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (403, "wrong_origin"), path
            assert await server.app.queues.list() == []

    async def test_our_own_page_may(self, url: str) -> None:
        async with serving(url, server_tokens=False) as server:
            caller = await server.stranger()
            headers = {"origin": server.url, "sec-fetch-site": "same-origin"}
            assert (await caller.ask("POST", "/queues/q/pause", {}, headers=headers)).status_code == 200

    @pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
    async def test_what_a_form_can_send_is_no_json(self, kind: str, admin: Client) -> None:
        headers = {"content-type": kind} if kind else {}
        answer = await admin.request("POST", f"{API}/tasks", content=b'{"type":"mail"}', headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "not_json")

    async def test_no_answer_lets_other_origins_read_it(self, admin: Client) -> None:
        for method in ("GET", "OPTIONS"):
            headers = {"origin": "http://evil.example", "access-control-request-method": "POST"}
            answer = await admin.ask(method, "/status", headers=headers)
            assert not [name for name in answer.headers if name.startswith("access-control-")]

    async def test_no_get_changes_anything(self) -> None:
        assert [each.name for each in operations().values() if each.method == "GET" and each.changes] == []

    async def test_a_session_needs_a_header_that_no_form_can_send(self, server: Server) -> None:
        caller = await server.signed_in(Role.OPERATOR)
        del caller.headers["x-tickwork-csrf"]
        answer = await caller.post("/queues/q/pause", {})
        assert (answer.status_code, answer.json()["code"]) == (403, "no_csrf")
        assert (await caller.get("/status")).status_code == 200
        caller.headers["x-tickwork-csrf"] = "1"
        assert (await caller.post("/queues/q/pause", {})).status_code == 200


class TestNobody:
    async def test_on_loopback_without_tokens_everybody_is_administrator(self, url: str) -> None:
        async with serving(url, server_tokens=False) as server:
            me = (await (await server.stranger()).read("/session"))["caller"]
        assert (me["role"], me["via"]) == ("admin", "loopback")

    @pytest.mark.parametrize(
        "header",
        [
            "forwarded", "x-forwarded-for", "x-real-ip", "via", "x-forwarded-proto", "x-forwarded-host",
            "x-forwarded-user", "x-forwarded-anything", "cf-connecting-ip", "true-client-ip", "x-client-ip",
        ],
    )  # fmt: skip
    async def test_but_not_whoever_comes_by_a_proxy(self, header: str, url: str) -> None:
        """Behind one on the same machine everybody would come from loopback."""
        async with serving(url, server_tokens=False) as server:
            caller = await server.stranger(**{header: "127.0.0.1"})
            assert (await caller.get("/status")).status_code == 401
            assert (await caller.read("/session"))["caller"] is None

    @pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.0/8"])
    async def test_nor_by_a_proxy_that_is_listed(self, address: str, url: str) -> None:
        options: dict[str, Any] = {"server_proxies": (address,), "server_user_header": "x-user"}
        async with serving(url, server_tokens=False, server_roles={"ines": "viewer"}, **options) as server:
            for headers in ({}, {"x-user": "mallory"}, {"x-user": ""}, {"x-forwarded-for": "10.0.0.1"}):
                answer = await (await server.stranger(**headers)).get("/status")
                assert answer.status_code == 401, headers


class TestProxies:
    OPTIONS: dict[str, Any] = {  # noqa: RUF012
        "server_user_header": "X-User", "server_roles": {"ines": "operator", "*": "viewer"},
    }  # fmt: skip

    async def test_the_user_that_a_listed_proxy_names_is_believed(self, url: str) -> None:
        async with serving(url, server_proxies=("127.0.0.1",), **self.OPTIONS) as server:
            caller = await server.stranger(**{"x-user": "ines", "x-tickwork-csrf": "1"})
            me = (await caller.read("/session"))["caller"]
            assert (me["name"], me["role"], me["via"]) == ("ines", "operator", "proxy")
            await caller.do("POST", "/queues/q/pause", {})
            entry = (await caller.read("/audit"))["items"][0]
            assert (entry["who"], entry["via"]) == ("ines", "proxy")
            del caller.headers["x-tickwork-csrf"]
            assert (await caller.post("/queues/q/pause", {})).json()["code"] == "no_csrf"
            other = await server.stranger(**{"x-user": "olga"})
            assert (await other.read("/session"))["caller"]["role"] == "viewer"

    @pytest.mark.parametrize("proxies", [(), ("10.0.0.0/8",), ("::1",), ("127.0.0.2",)])
    async def test_that_of_anybody_else_is_not(self, proxies: tuple[str, ...], url: str) -> None:
        async with serving(url, server_proxies=proxies, **self.OPTIONS) as server:
            assert (await (await server.stranger(**{"x-user": "ines"})).get("/status")).status_code == 401

    async def test_a_header_that_comes_twice_is_refused(self, url: str) -> None:
        async with serving(url, server_proxies=("127.0.0.1",), **self.OPTIONS) as server:
            assert await asked(server, "Host: localhost", "X-User: olga", "X-User: ines") == 400
            assert await asked(server, "Host: localhost", "X-User: olga", "x-user: ines") == 400
            assert await asked(server, "Host: localhost", "X-User: ines") == 200
            assert await asked(server, "Host: localhost", "X_User: ines") == 401

    @pytest.mark.parametrize(
        "header",
        ["Content-Type: a/b", "Authorization: Bearer x", "Origin: http://a", "X-Tickwork-Csrf: 1", "X-User: ines",
         "Sec-Fetch-Site: none", "Content-Length: 0"],
    )  # fmt: skip
    async def test_so_is_any_other_that_decides_something(self, header: str, url: str) -> None:
        async with serving(url, server_proxies=("127.0.0.1",), **self.OPTIONS) as server:
            assert await asked(server, "Host: localhost", header, header) == 400
            assert await asked(server, "Host: localhost", header, header.swapcase()) == 400

    @pytest.mark.parametrize("header", ["Via: 1.1 a", "Tracestate: a=b", "X-Forwarded-For: 1.1.1.1", "X-Other: 1"])
    async def test_but_not_what_every_hop_may_add_to(self, header: str, url: str) -> None:
        async with serving(url, server_proxies=("127.0.0.1",), **self.OPTIONS) as server:
            assert await asked(server, "Host: localhost", "X-User: ines", header, header) == 200
        async with serving(url, server_tokens=False) as server:  # and it still came from elsewhere
            expected = 401 if header.startswith(("Via", "X-Forwarded")) else 200
            assert await asked(server, "Host: localhost", header, header) == expected

    async def test_several_cookies_are_one(self, server: Server) -> None:
        caller = await server.signed_in(Role.VIEWER)
        cookie = f"Cookie: {COOKIE}={caller.cookies[COOKIE]}"
        assert await asked(server, "Host: localhost", cookie, "Cookie: theme=dark") == 200
        assert await asked(server, "Host: localhost", "Cookie: theme=dark", cookie) == 200

    @pytest.mark.parametrize("user", ["", "a\x7fb", "x" * 201])
    async def test_what_is_no_name_is_nobody(self, user: str, url: str) -> None:
        async with serving(url, server_proxies=("127.0.0.1",), **self.OPTIONS) as server:
            assert await asked(server, "Host: localhost", f"X-User: {user}") in (400, 401)

    async def test_without_a_role_of_its_own_a_user_is_nobody(self, url: str) -> None:
        options = {**self.OPTIONS, "server_roles": {"ines": "operator"}, "server_proxies": ("127.0.0.1",)}
        async with serving(url, **options) as server:
            assert (await (await server.stranger(**{"x-user": "olga"})).get("/status")).status_code == 401

    async def test_the_address_in_the_audit_log_never_comes_from_a_header(self, server: Server) -> None:
        admin = await server.as_role("admin")
        admin.headers["x-forwarded-for"] = "6.6.6.6"
        await admin.do("POST", "/queues/q/pause", {})
        entry = (await admin.read("/audit"))["items"][0]
        assert entry["address"] == "via 127.0.0.1"


class TestUnixSockets:
    async def test_it_is_for_one_user_and_asks_no_token(self, url: str, tmp_path: Path) -> None:
        path = str(tmp_path / "s")
        before = os.umask(0)
        try:
            async with serving(url, server_socket=path, server_tokens=False) as server:
                mode = os.stat(path).st_mode
                assert server.url == f"unix:{path}"
                async with _by_socket(path) as caller:
                    me = (await caller.get("http://localhost/api/v1/session")).json()["caller"]
                    evil = await caller.get("http://evil.example/api/v1/session")
                    proxied = await caller.get("http://localhost/api/v1/status", headers={"x-forwarded-for": "1.2.3.4"})
        finally:
            os.umask(before)
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600
        assert (me["role"], evil.status_code, proxied.status_code) == ("admin", 421, 401)

    async def test_one_that_is_in_use_is_not_taken_over(self, url: str, tmp_path: Path) -> None:
        path = str(tmp_path / "s")
        async with serving(url, server_socket=path, server_tokens=False):
            with pytest.raises(ConfigError, match="is in use by another process"):
                async with serving(url, server_socket=path, server_tokens=False):
                    pass

    async def test_a_file_that_is_no_socket_is_not_removed(self, url: str, tmp_path: Path) -> None:
        path = tmp_path / "precious"
        path.write_text("mine")
        with pytest.raises(ConfigError):
            async with serving(url, server_socket=str(path), server_tokens=False):
                pass
        assert path.read_text() == "mine"


def _by_socket(path: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=path), trust_env=False)


class TestReach:
    @pytest.mark.parametrize("host", ["0.0.0.0", "::"])
    async def test_where_others_can_reach_it_it_does_not_start_without_tokens(self, host: str, url: str) -> None:
        app = Scheduler(url, host=host, server_port=0)
        listeners = Listeners(app.config)
        serve(app, app.config, listeners, app._other_namespace)
        (service,) = listeners.services()
        assert service.start is not None
        sentence = rf"would listen on {host}, where others can reach it, and nobody could sign in: make a token first"
        with pytest.raises(ConfigError, match=sentence):
            await service.start()
        await app.close()

    async def test_with_a_token_it_starts_and_asks_for_it(self, url: str) -> None:
        app = Scheduler(url, namespace="home", host="0.0.0.0", server_port=0)
        await Tokens(app._access.open_store).make("x", Role.ADMIN, MAKER)
        async with serving(url, app=app) as server:
            answer = await raw(
                server.port, f"GET {STATUS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
            )
        assert b" 401 " in answer.splitlines()[0]

    def test_expired_tokens_do_not_count(self) -> None:
        open_to_all = Settings(host="0.0.0.0")
        with pytest.raises(ConfigError):
            check_reach(open_to_all, has_tokens=False)
        (warning,) = check_reach(open_to_all, has_tokens=True)
        assert "without TLS" in warning
        assert check_reach(Settings(host="0.0.0.0", tls=("c", "k")), has_tokens=True) == []
        assert check_reach(Settings(), has_tokens=False) == []
        assert open_to_all.asks

    @pytest.mark.parametrize(
        ("host", "loopback"),
        [
            ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("localhost", True),
            ("0.0.0.0", False),
            ("", False), ("via 127.0.0.1", False), ("127.0.0.1.evil", False), ("10.0.0.1", False), ("localhost.",
            False),
        ],
    )  # fmt: skip
    def test_what_loopback_is(self, host: str, loopback: bool) -> None:
        assert is_loopback(host) is loopback

    def test_files_of_tls_belong_together(self, url: str) -> None:
        with pytest.raises(ConfigError, match="belong together"):
            settings_of(Scheduler(url, server_tls_cert="c.pem").config)


async def test_the_command_says_so_and_ends(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tickwork", "server", f"sqlite:///{tmp_path}/t.db", "--host", "0.0.0.0", "--port", "0",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode not in (0, None)
    assert b"make a token first" in err
    assert b"Traceback" not in err
    assert out == b""
