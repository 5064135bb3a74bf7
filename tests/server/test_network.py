"""What a stranger on the network meets: TLS, pages that say little, limits that no header gets around."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.grpc.calling import Failed, calling
from tests.server.serving import API, HOME, MAKER, Server, raw, serving
from tickwork import ConfigError, Scheduler
from tickwork.config import OPTIONS
from tickwork.errors import StoreUnavailable
from tickwork.server.callers import Role
from tickwork.server.tokens import Tokens

WHERE = "cannot reach redis at db.internal:6379"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


class TestTls:
    async def test_with_files_there_is_tls_and_nothing_else(self, url: str, certificate: tuple[str, str]) -> None:
        cert, key = certificate
        async with serving(url, server_tls_cert=cert, server_tls_key=key) as server:
            trusting = ssl.create_default_context(cafile=cert)
            headers = {"authorization": f"Bearer {await server.token('viewer')}"}
            address = f"https://localhost:{server.port}{API}/status"
            async with httpx.AsyncClient(verify=trusting, trust_env=False) as caller:
                answer = await caller.get(address, headers=headers)
            async with httpx.AsyncClient(trust_env=False) as distrusting:
                with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                    await distrusting.get(address)
            clear = await raw(server.port, f"GET {API}/session HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert answer.status_code == 200
        assert answer.headers["strict-transport-security"]
        assert b"HTTP/1.1" not in clear

    async def test_files_that_cannot_be_used_are_told_at_the_start(self, url: str, tmp_path: Path) -> None:
        (tmp_path / "cert.pem").write_text("no certificate")
        with pytest.raises(ConfigError, match="server_tls_cert and server_tls_key cannot be used"):
            async with serving(url, server_tls_cert=str(tmp_path / "cert.pem"), server_tls_key=str(tmp_path / "none")):
                pass


@pytest.fixture
async def reached(url: str) -> AsyncIterator[Server]:
    """A node with metrics that listens on all addresses."""
    app = Scheduler(url, namespace=HOME, host="0.0.0.0", server=True, server_port=0, metrics=True, metrics_port=0)

    @app.task("mail")
    def mail() -> None: ...

    await Tokens(app._access.open_store).make("first", Role.ADMIN, MAKER)
    async with serving(url, app=app, node=True) as server:
        yield server


class TestOffLoopback:
    async def test_pages_say_nothing_to_strangers(self, reached: Server) -> None:
        """Also to one who comes from this machine, where a server on loopback would ask nobody."""
        stranger, viewer = await reached.stranger(), await reached.as_role("viewer")
        address = f"http://127.0.0.1:{reached.port}"
        for path in ("/health", "/ready"):
            answer = await stranger.request("GET", address + path)
            assert list(answer.json()) == ["status"], answer.text
        refused = await stranger.request("GET", f"{address}/metrics")
        assert (refused.status_code, refused.json()["code"]) == (401, "not_signed_in")
        assert (await viewer.request("GET", f"{address}/metrics")).status_code == 200
        assert (await stranger.request("GET", f"{address}{API}/session")).json()["version"] is None


class TestOutage:
    """While the store is away nobody is known, and what a store says of itself is not for strangers."""

    @pytest.mark.parametrize("token", [None, "x", f"tw_{'a' * 12}_{'s' * 43}"])
    async def test_no_answer_says_where_the_store_is(
        self, token: str | None, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with serving(url) as server:
            stranger = await server.with_token(token)
            _break(server, monkeypatch)
            answers = [await stranger.request("GET", server.url + path) for path in ("/health", "/ready", "/metrics")]
            answers += [await stranger.get(path) for path in ("/status", "/session", "/events/stream")]
            answers.append(await stranger.post("/session", {"token": f"tw_{'b' * 12}_{'s' * 43}"}))
        assert [each.text for each in answers if "db.internal" in each.text] == []
        assert [each.status_code for each in answers[:2]] == [503, 503]
        assert (answers[-1].status_code, answers[-1].json()["code"]) == (503, "store_unavailable")

    async def test_nor_does_one_of_grpc(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        async with calling(url) as api:
            stranger = await api.with_token(f"tw_{'a' * 12}_{'s' * 43}")
            _break(api.server, monkeypatch)
            with pytest.raises(Failed) as failed:
                await stranger.call("get_status")
        assert (failed.value.code, failed.value.problem.code) == ("UNAVAILABLE", "store_unavailable")
        assert "db.internal" not in failed.value.details + failed.value.problem.detail


def _break(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable(WHERE)

    monkeypatch.setattr(server.app._access, "open_store", gone)
    monkeypatch.setattr(server.plane.tokens, "_open_store", gone)
    monkeypatch.setattr(server.plane.home, "store", gone)


class TestHeaders:
    async def test_no_header_of_a_stranger_gets_around_the_limit_of_failures(self, server: Server) -> None:
        """Whoever says to come from elsewhere each time is still the one at the other end of the connection."""
        answers: list[int] = []
        for number in range(12):
            caller = await server.with_token("tw_aaaaaaaaaaaa_x", **{"x-forwarded-for": f"6.6.6.{number}"})
            answers.append((await caller.get("/status")).status_code)
        assert answers == [401] * 11 + [429]

    @pytest.mark.parametrize("name", ["token", "access_token", "bearer", "authorization", "api_key"])
    async def test_a_token_in_an_address_is_none(self, name: str, server: Server) -> None:
        token = await server.token("admin")
        stranger = await server.stranger()
        for path in ("/status", "/events/stream"):
            for value in (token, f"Bearer {token}"):
                assert (await stranger.get(path, **{name: value})).status_code == 401


class TestFirstToken:
    async def test_there_is_none_by_default(self, server: Server) -> None:
        assert await server.plane.tokens.infos() == []
        assert await server.plane.tokens.any() is False

    @pytest.mark.parametrize("name", ["TOKEN", "TOKENS", "SERVER_TOKEN", "ADMIN_TOKEN"])
    def test_none_comes_from_the_environment(self, name: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(f"TICKWORK_{name}", f"tw_{'a' * 12}_{'s' * 43}")
        with pytest.raises(ConfigError, match="unknown option") as refused:
            Scheduler(url)
        assert "s" * 43 not in str(refused.value)

    def test_the_only_option_of_that_name_is_a_switch(self) -> None:
        assert [name for name in OPTIONS if "token" in name or "password" in name] == ["server_tokens"]
