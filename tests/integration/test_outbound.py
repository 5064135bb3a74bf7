"""The HTTP client of all outgoing calls, against servers that behave and servers that do not."""

from __future__ import annotations

import asyncio
import gzip
import os
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import hostile_http as hostile
from tests.support.hostile_http import ENDLESS_BODY, ENDLESS_HEADERS, Respond, Server, always, answer, serving
from tests.support.redis.tls import TlsFiles, tls_files
from tickwork.errors import ConfigError, ExecutorError
from tickwork.outbound import client
from tickwork.outbound.addresses import Allowed
from tickwork.outbound.client import Answer, AnswerRefused, CallFailed, Outbound
from tickwork.outbound.tls import Tls

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds; none of these tests waits for it


@pytest.fixture(autouse=True)
def _patient_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine must not let a connection end that a test counts on."""
    monkeypatch.setattr(client, "KEEP_ALIVE", 600.0)


async def call(respond: Respond, *, path: str = "/x", timeout: float = PATIENCE, limit: int = 1000) -> Answer:
    async with serving(respond) as server:
        return await get(server, path=path, timeout=timeout, limit=limit)


async def get(server: Server, *, path: str = "/x", timeout: float = PATIENCE, limit: int = 1000) -> Answer:
    outbound = Outbound(Allowed([server.url]))
    try:
        return await outbound.request("GET", server.url + path, timeout=timeout, limit=limit)
    finally:
        await outbound.close()


class TestAnswers:
    async def test_status_headers_and_body(self) -> None:
        answered = await call(always(answer(b"no", "404 Not Found", "X-Why: because")))
        assert (answered.status, answered.body, answered.headers["x-why"]) == (404, b"no", "because")

    async def test_of_exactly_the_bound_are_taken(self) -> None:
        assert (await call(always(answer(b"x" * 1000)))).body == b"x" * 1000

    @pytest.mark.parametrize(
        "respond",
        [always(answer(b"x" * 1001)), always(answer(b"", length=10**10)), ENDLESS_BODY],
        ids=["one byte more", "10 GB", "without end"],
    )
    async def test_over_the_bound_are_not_read(self, respond: Respond) -> None:
        with pytest.raises(AnswerRefused, match="has answered with more than 1000 bytes"):
            await call(respond)

    @pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "x-unknown"])
    async def test_that_are_compressed_are_refused(self, coding: str) -> None:
        body = gzip.compress(bytes(10_000_000))
        with pytest.raises(AnswerRefused, match=f"in the coding '{coding}', which was not asked for"):
            await call(always(answer(body, "200 OK", f"Content-Encoding: {coding}")), limit=10**9)

    async def test_that_say_identity_are_not_compressed(self) -> None:
        assert (await call(always(answer(b"x", "200 OK", "Content-Encoding: identity")))).body == b"x"

    @pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
    async def test_that_lead_elsewhere_are_not_followed(self, status: str) -> None:
        async with serving(always(answer(b"", status, "Location: http://169.254.169.254/latest/meta-data"))) as server:
            answered = await get(server)
        assert (answered.status, len(server.requests)) == (int(status[:3]), 1)

    @pytest.mark.parametrize(
        "respond",
        [
            ENDLESS_HEADERS,
            always(answer(b"", "200 OK", f"X-Long: {'y' * 100_000}")),
            always(b"220 mail.example SMTP\r\n"),
        ],
        ids=["headers without end", "a long header", "no HTTP"],
    )
    async def test_that_are_no_http_of_a_usual_size_are_refused(self, respond: Respond) -> None:
        with pytest.raises(AnswerRefused, match="has not answered in HTTP") as caught:
            await call(respond)
        assert len(str(caught.value)) < 300

    @pytest.mark.parametrize("respond", [hostile.reset, hostile.vanish])
    async def test_that_are_broken_off_have_failed(self, respond: Respond) -> None:
        with pytest.raises(CallFailed):
            await call(respond)

    @pytest.mark.parametrize("respond", [hostile.hang, hostile.drip])
    async def test_that_do_not_end_have_failed_after_the_timeout(self, respond: Respond) -> None:
        with pytest.raises(CallFailed, match=r"has not answered within 0\.2 seconds"):
            await call(respond, timeout=0.2, limit=10**9)

    async def test_when_nobody_listens(self) -> None:
        async with serving(always(answer())) as server:
            pass
        with pytest.raises(CallFailed, match=r"cannot call http://127\.0\.0\.1"):
            await get(server)

    async def test_to_a_head_have_a_length_and_no_body(self) -> None:
        async with serving(always(answer(b"", length=10**10))) as server:
            outbound = Outbound(Allowed([server.url]))
            answered = await outbound.request("HEAD", server.url, timeout=PATIENCE)
            await outbound.close()
        assert (answered.status, answered.body, answered.headers["content-length"]) == (200, b"", "10000000000")

    async def test_keep_no_traceback_of_their_own(self) -> None:
        """What is kept with a task says what happened there, not where this program was."""
        with pytest.raises(ExecutorError) as caught:
            await call(hostile.vanish)
        assert caught.value.__suppress_context__


class TestRequests:
    async def test_carry_what_was_given_and_little_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with serving(always(answer())) as server:
            outbound = Outbound(Allowed([server.url]))
            await outbound.request(
                "POST", f"{server.url}/a%2Fb/../c?d=%20e", headers={"X-Key": "k"}, body=b"{}", timeout=PATIENCE
            )
            await outbound.close()
        (request,) = server.requests
        assert request.line == "POST /a%2Fb/../c?d=%20e HTTP/1.1"
        assert {name.lower(): value for name, value in request.headers} == {
            "host": f"127.0.0.1:{server.port}", "x-key": "k", "accept-encoding": "identity", "user-agent": "tickwork",
            "accept": "*/*", "content-length": "2",
        }  # fmt: skip
        assert request.body == b"{}"

    async def test_keep_no_cookies(self) -> None:
        async with serving(always(answer(b"", "200 OK", "Set-Cookie: a=b; Path=/"))) as server:
            outbound = Outbound(Allowed([server.url]))
            for _ in range(2):
                await outbound.request("GET", server.url, timeout=PATIENCE)
            await outbound.close()
        assert [request.header("cookie") for request in server.requests] == [None, None]

    async def test_read_no_proxies_and_no_netrc(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login ada password hunter2\ndefault login x password y\n")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        async with serving(always(answer())) as server:
            await get(server)
        assert server.requests[0].header("authorization") is None

    async def test_share_a_connection(self) -> None:
        async with serving(always(answer(b"x"))) as server:
            outbound = Outbound(Allowed([server.url]))
            for _ in range(3):
                await outbound.request("POST", server.url, body=b"y", timeout=PATIENCE)
            await outbound.close()
        assert (len(server.requests), server.connections) == (3, 1)

    async def test_of_two_clients_share_none(self) -> None:
        async with serving(always(answer(b"x"))) as server:
            clients = [Outbound(Allowed([server.url])) for _ in range(2)]
            for outbound in clients * 2:
                await outbound.request("GET", server.url, timeout=PATIENCE)
            for outbound in clients:
                await outbound.close()
        assert (len(server.requests), server.connections) == (4, 2)

    async def test_that_are_cancelled_close_the_connection(self) -> None:
        async with serving(hostile.hang) as server, asyncio.timeout(PATIENCE):
            calling = asyncio.ensure_future(get(server))
            while not server.requests:
                await asyncio.sleep(0.01)
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
            await server.closed.wait()

    async def test_work_again_after_a_close(self) -> None:
        async with serving(always(answer(b"x"))) as server:
            outbound = Outbound(Allowed([server.url]))
            for _ in range(2):
                assert (await outbound.request("GET", server.url, timeout=PATIENCE)).body == b"x"
                await outbound.close()

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("Host", "evil"), ("host", "evil"), ("Content-Length", "5"), ("Transfer-Encoding", "chunked"),
            ("Connection", "close"), ("Accept-Encoding", "gzip"), ("Upgrade", "h2c"), ("X-A", "b\r\nX-C: d"),
            ("X-A", "b\nc"), ("X-A", "b\0"), ("X-A", "\x7f"), ("X A", "b"), ("X-A:", "b"), ("", "b"), ("X\r\nY", "b"),
            ("Ä", "b"), ("X-A", "\ud800"),
        ],
    )  # fmt: skip
    async def test_with_a_header_that_cannot_be_sent(self, name: str, value: str) -> None:
        outbound = Outbound(Allowed(["http://127.0.0.1:1"]))
        with pytest.raises(ConfigError, match="header"):
            await outbound.request("GET", "http://127.0.0.1:1", headers={name: value}, timeout=PATIENCE)


class TestAddresses:
    async def test_outside_the_list_are_not_called(self) -> None:
        async with serving(always(answer())) as server:
            outbound = Outbound(Allowed(["http://127.0.0.1:1"]))
            with pytest.raises(ConfigError, match="is not allowed"):
                await outbound.request("GET", server.url, timeout=PATIENCE)
        assert server.connections == 0

    async def test_a_name_is_looked_up_once_and_connected_where_it_was_checked(self) -> None:
        """A name server that answers first with an address that is allowed, then with another one."""
        lookups: list[str] = []

        async def rebinding(host: str, _port: int) -> list[str]:
            lookups.append(host)
            return ["127.0.0.1"] if len(lookups) == 1 else ["169.254.169.254"]

        async with serving(always(answer(b"x"))) as server:
            patterns = [f"http://api.example.com:{server.port}", f"http://127.0.0.1:{server.port}"]
            outbound = Outbound(Allowed(patterns, lookup=rebinding))
            url = f"http://api.example.com:{server.port}/"
            assert (await outbound.request("GET", url, timeout=PATIENCE)).body == b"x"
            await outbound.close()
            assert lookups == ["api.example.com"]
            assert server.requests[0].header("host") == f"api.example.com:{server.port}"
            with pytest.raises(ConfigError, match=r"has the address 169\.254\.169\.254 \(metadata\)"):
                await outbound.request("GET", url, timeout=PATIENCE)
            await outbound.close()

    async def test_a_name_that_leads_inside_is_not_connected_to(self) -> None:
        async def lookup(_host: str, _port: int) -> list[str]:
            return ["127.0.0.1"]

        async with serving(always(answer())) as server:
            outbound = Outbound(Allowed([f"http://api.example.com:{server.port}"], lookup=lookup))
            with pytest.raises(ConfigError, match="loopback"):
                await outbound.request("GET", f"http://api.example.com:{server.port}", timeout=PATIENCE)
            await outbound.close()
        assert server.connections == 0

    async def test_a_name_that_cannot_be_looked_up_may_be_found_later(self) -> None:
        async def lookup(_host: str, _port: int) -> list[str]:
            raise OSError("no name server")

        outbound = Outbound(Allowed(["http://api.example.com"], lookup=lookup))
        with pytest.raises(CallFailed, match="no name server"):
            await outbound.request("GET", "http://api.example.com", timeout=PATIENCE)
        await outbound.close()

    async def test_a_name_server_that_hangs_is_not_waited_for(self) -> None:
        async def lookup(_host: str, _port: int) -> list[str]:
            await asyncio.Event().wait()
            raise AssertionError

        outbound = Outbound(Allowed(["http://api.example.com"], lookup=lookup), connect_timeout=0.1)
        with pytest.raises(CallFailed, match=r"cannot connect to http://api.example.com:80 within 0\.1 seconds"):
            await outbound.request("GET", "http://api.example.com", timeout=PATIENCE)
        await outbound.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return tls_files(tmp_path_factory.mktemp("tls"))


def server_context(files: TlsFiles, change: Callable[[ssl.SSLContext], None] = lambda _: None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files["server_cert"], files["server_key"])
    change(context)
    return context


class TestTls:
    async def test_the_authority_is_the_one_that_is_named(self, files: TlsFiles) -> None:
        assert (await self.call(Tls(ca=str(files["ca"])), server_context(files))).body == b"x"

    async def test_a_certificate_of_somebody_unknown_is_refused(self, files: TlsFiles) -> None:
        with pytest.raises(CallFailed, match=r"its certificate is not accepted: .*unable to get local issuer"):
            await self.call(None, server_context(files))

    async def test_a_certificate_of_another_name_is_refused(self, files: TlsFiles) -> None:
        with pytest.raises(CallFailed, match=r"its certificate is not accepted: .*api\.example\.com"):
            await self.call(Tls(ca=str(files["ca"])), server_context(files), host="api.example.com")

    async def test_a_client_shows_its_certificate(self, files: TlsFiles) -> None:
        def demand(context: ssl.SSLContext) -> None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(files["ca"])

        own = Tls(ca=str(files["ca"]), cert=str(files["client_cert"]), key=str(files["client_key"]))
        assert (await self.call(own, server_context(files, demand))).body == b"x"
        with pytest.raises(CallFailed):
            await self.call(Tls(ca=str(files["ca"])), server_context(files, demand))

    async def test_an_old_version_is_refused(self, files: TlsFiles) -> None:
        def be_old(context: ssl.SSLContext) -> None:
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
            context.set_ciphers("ALL:@SECLEVEL=0")

        with pytest.warns(DeprecationWarning, match="TLSVersion"):
            context = server_context(files, be_old)
        with pytest.raises(CallFailed):
            await self.call(Tls(ca=str(files["ca"])), context)

    async def test_a_plain_server_is_not_taken_for_a_safe_one(self) -> None:
        async with serving(always(answer(b"x"))) as server:
            outbound = Outbound(Allowed([f"https://127.0.0.1:{server.port}"]))
            with pytest.raises(CallFailed):
                await outbound.request("GET", f"https://127.0.0.1:{server.port}", timeout=PATIENCE)
            await outbound.close()

    def test_files_that_cannot_be_used(self, files: TlsFiles, tmp_path: Path) -> None:
        (tmp_path / "no.pem").write_text("no certificate")
        for tls, reason in [
            (Tls(ca="/nowhere/ca.pem"), "the authorities in '/nowhere/ca.pem' cannot be read: No such file"),
            (Tls(ca=str(tmp_path / "no.pem")), "no.pem' cannot be read: they are not PEM"),
            (Tls(cert="/nowhere/c.pem"), "certificate and key in '/nowhere/c.pem' cannot be used: No such file"),
            (Tls(cert=str(files["client_cert"]), key=str(files["server_key"])), "or do not belong together"),
            (Tls(key="/x.key"), "the key '/x.key' needs the certificate"),
        ]:
            with pytest.raises(ConfigError, match=reason):
                Outbound(Allowed(), tls=tls)

    async def call(self, tls: Tls | None, context: ssl.SSLContext, host: str = "127.0.0.1") -> Answer:
        async def lookup(_host: str, _port: int) -> list[str]:
            return ["127.0.0.1"]

        async with serving(always(answer(b"x")), context) as server:
            patterns = [f"https://{host}:{server.port}", f"https://127.0.0.1:{server.port}"]
            outbound = Outbound(Allowed(patterns, lookup=lookup), tls=tls)
            try:
                return await outbound.request("GET", f"https://{host}:{server.port}/", timeout=PATIENCE)
            finally:
                await outbound.close()


def test_without_aiohttp_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(ConfigError, match=r'pip install "tickwork\[http\]"'):
        Outbound(Allowed())


FORKING = """
import asyncio, gc, os, sys
from tests.support.hostile_http import always, answer, serving
from tickwork.outbound.addresses import Allowed
from tickwork.outbound.client import Outbound

async def main():
    async with serving(always(answer(b"x"))) as server:
        outbound = Outbound(Allowed([server.url]))
        assert (await outbound.request("GET", server.url, timeout=60)).body == b"x"
        if (child := os.fork()) == 0:
            left = outbound._session is None
            del outbound
            gc.collect()
            os._exit(0 if left else 1)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert (await outbound.request("GET", server.url, timeout=60)).body == b"x"
        await outbound.close()
    assert (os.waitstatus_to_exitcode(status), server.connections) == (0, 1)

asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_the_connections_to_its_parent() -> None:
    """In a process of its own: what other tests leave behind in this one may not survive a fork."""
    ended = subprocess.run([sys.executable, "-c", FORKING], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
