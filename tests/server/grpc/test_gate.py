"""What stands before the API: tokens, what may come along with a call, bounds, TLS."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from tests.server.grpc.calling import Api, Failed, Grpc, calling
from tests.server.grpc.test_calls import failing
from tests.server.serving import serving
from tickwork.errors import ConfigError
from tickwork.server.grpc.gate import address_of, read_metadata
from tickwork.server.grpc.gen import tickwork_pb2 as pb
from tickwork.server.grpc.gen.tickwork_pb2_grpc import TickworkStub
from tickwork.server.grpc.server import METADATA_MAX, STREAMS_OF_CONNECTION, GrpcServer
from tickwork.server.grpc.service import Service
from tickwork.server.problems import Refused
from tickwork.server.settings import Settings

STATUS = "/tickwork.v1.Tickwork/GetStatus"


class TestTokens:
    @pytest.mark.parametrize("header", ["Bearer tw_a_b", "Bearer ", "Bearer x", "bearer tw__"])
    async def test_a_wrong_token_is_refused(self, header: str, api: Api) -> None:
        stranger = await api.with_token(None)
        error = await failing(stranger.send("GetStatus", pb.GetStatusRequest(), [("authorization", header)]))
        assert (error.code, error.problem.code) == ("UNAUTHENTICATED", "bad_token")

    @pytest.mark.parametrize("header", ["Basic dTpw", "tw_a_b", ""])
    async def test_what_is_no_token_is_none(self, header: str, api: Api) -> None:
        stranger = await api.with_token(None)
        error = await failing(stranger.send("GetStatus", pb.GetStatusRequest(), [("authorization", header)]))
        assert (error.code, error.problem.code) == ("UNAUTHENTICATED", "not_signed_in")

    async def test_guessing_is_slowed_down(self, api: Api) -> None:
        guesser = await api.with_token("tw_a_b")
        codes = [(await failing(guesser.call("get_status"))).code for _ in range(12)]
        assert codes[0] == "UNAUTHENTICATED"
        assert codes[-1] == "RESOURCE_EXHAUSTED"

    async def test_a_token_that_was_revoked_is_none(self, api: Api, caller: Grpc) -> None:
        made = await caller.call("make_token", name="new", role="viewer")
        viewer = await api.with_token(made.token)
        await viewer.call("get_status")
        await caller.call("revoke_token", id=made.info.id)
        assert (await failing(viewer.call("get_status"))).code == "UNAUTHENTICATED"

    async def test_on_loopback_none_is_needed_unless_asked_for(self, url: str) -> None:
        async with calling(url, server_tokens=False) as api:
            anybody = await api.with_token(None)
            made = await anybody.call("make_token", name="new", role="admin")
            assert made.token
            for name in ("forwarded", "x-forwarded-for", "via", "x-real-ip", "x-forwarded-proto", "cf-connecting-ip"):
                for count in (1, 2):
                    came = [(name, "for=1.2.3.4")] * count
                    error = await failing(anybody.send("GetStatus", pb.GetStatusRequest(), came))
                    assert error.code == "UNAUTHENTICATED", name  # it came from elsewhere

    async def test_a_proxy_that_is_listed_names_the_user(self, url: str) -> None:
        given: dict[str, Any] = {"server_user_header": "X-User", "server_roles": {"ann": "viewer"}}
        async with calling(url, server_proxies=("127.0.0.0/8",), **given) as api:
            proxy = await api.with_token(None)
            await proxy.send("GetStatus", pb.GetStatusRequest(), [("x-user", "ann")])
            error = await failing(proxy.send("PauseQueue", pb.PauseQueueRequest(name="q"), [("x-user", "ann")]))
            assert error.code == "PERMISSION_DENIED"
            both = [("x-user", "ann"), ("x-user", "bob")]
            assert (await failing(proxy.send("GetStatus", pb.GetStatusRequest(), both))).code == "INVALID_ARGUMENT"
        async with calling(url, server_proxies=("10.0.0.0/8",), **given) as api:
            stranger = await api.with_token(None)
            error = await failing(stranger.send("GetStatus", pb.GetStatusRequest(), [("x-user", "ann")]))
            assert error.code == "UNAUTHENTICATED"


class TestMetadata:
    @pytest.mark.parametrize("name", ["origin", "referer", "cookie", "sec-fetch-site", "x-grpc-web"])
    async def test_a_browser_is_refused(self, name: str, caller: Grpc) -> None:
        for method in (STATUS, "/grpc.health.v1.Health/Check"):
            error = await failing(caller.raw(method, b"", [*caller.metadata, (name, "http://evil.example")]))
            assert (error.code, error.problem.code) == ("PERMISSION_DENIED", "wrong_origin")

    async def test_what_decides_comes_once(self, caller: Grpc) -> None:
        error = await failing(caller.send("GetStatus", pb.GetStatusRequest(), [*caller.metadata, *caller.metadata]))
        assert (error.code, error.problem.code) == ("INVALID_ARGUMENT", "repeated_header")
        twice = [*caller.metadata, ("x-more", "1"), ("x-more", "2")]
        await caller.send("GetStatus", pb.GetStatusRequest(), twice)

    async def test_there_is_not_too_much_of_it(self, caller: Grpc) -> None:
        many = [*caller.metadata, *((f"x-{number}", "") for number in range(101))]
        error = await failing(caller.send("GetStatus", pb.GetStatusRequest(), many))
        assert (error.code, error.problem.code) == ("RESOURCE_EXHAUSTED", "too_many_headers")
        large = [*caller.metadata, ("x-large", "x" * METADATA_MAX)]
        assert (await failing(caller.send("GetStatus", pb.GetStatusRequest(), large))).code == "RESOURCE_EXHAUSTED"

    async def test_the_name_of_a_namespace_is_bounded(self, caller: Grpc) -> None:
        given = [*caller.metadata, ("tickwork-namespace", "x" * 65)]
        assert (await failing(caller.send("GetStatus", pb.GetStatusRequest(), given))).code == "INVALID_ARGUMENT"

    async def test_the_authority_is_not_to_be_seen(self, api: Api) -> None:
        """When this fails, grpcio tells the name by which it is called: then check it as HTTP does (`gate.py`)."""
        seen: list[Any] = []

        class Spy(grpc.GenericRpcHandler):
            def service(self, details: Any) -> Any:
                seen.append([name for name in dir(details) if not name.startswith("_")])

                async def run(_: Any, context: Any) -> bytes:
                    seen.append([name for name in dir(context) if "authority" in name or "host" in name])
                    seen.append([key for key, _ in context.invocation_metadata()])
                    return b""

                return grpc.unary_unary_rpc_method_handler(run)

        server = grpc.aio.server()
        server.add_generic_rpc_handlers((Spy(),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        options = [("grpc.default_authority", "evil.example")]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as channel:
            await Grpc(channel, None).raw("/a.B/C", b"")
        await server.stop(0)
        assert seen == [["invocation_metadata", "method"], [], ["user-agent"]]

    def test_binary_values_and_those_of_many_are_read(self) -> None:
        found = read_metadata([("a-bin", b"\xff"), ("b", "1"), ("b", "2"), ("c", "3")], Settings())
        assert found == {"a-bin": "ÿ", "b": "1, 2", "c": "3"}
        assert read_metadata([("via", "1"), ("via", "2")], Settings()) == {"via": "1, 2"}
        with pytest.raises(Refused):
            read_metadata([("x-forwarded-user", "1")] * 2, Settings(user_header="X-Forwarded-User"))

    @pytest.mark.parametrize(
        ("peer", "address"),
        [
            ("ipv4:127.0.0.1:1234", "127.0.0.1"), ("ipv6:%5B::1%5D:1234", "::1"), ("ipv6:[::1]:1234", "::1"),
            ("ipv6:%5B::ffff:10.0.0.1%5D:5", "10.0.0.1"), ("ipv6:%5Bfe80::1%25eth0%5D:5", "fe80::1"),
            ("unix:/tmp/x", ""), ("", ""), ("ipv4:nonsense:1", ""),
        ],
    )  # fmt: skip
    def test_addresses(self, peer: str, address: str) -> None:
        assert address_of(peer) == address


class TestBounds:
    async def test_the_right_is_checked_before_the_message_is_read(self, api: Api) -> None:
        """A stranger sends no message at all, and is answered; so is one who sends what is none."""
        stranger, viewer = await api.with_token(None), await api.as_role("viewer")
        for caller, expected in ((stranger, "UNAUTHENTICATED"), (viewer, "PERMISSION_DENIED")):
            call = caller.channel.stream_unary("/tickwork.v1.Tickwork/PauseQueue")(metadata=caller.metadata)
            async with asyncio.timeout(20):
                assert (await call.code()).name == expected
            assert (await failing(caller.raw("/tickwork.v1.Tickwork/PauseQueue", b"\xff"))).code == expected

    async def test_a_call_without_a_message_is_refused(self, caller: Grpc) -> None:
        call = caller.channel.stream_unary(STATUS)(metadata=caller.metadata)
        await call.done_writing()
        assert (await call.code()).name == "INVALID_ARGUMENT"

    async def test_a_message_must_come_in_time(self, caller: Grpc, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tickwork.server.grpc.service.BODY_SECONDS", 0.2)
        call = caller.channel.stream_unary(STATUS)(metadata=caller.metadata)
        async with asyncio.timeout(20):
            assert (await call.code()).name == "DEADLINE_EXCEEDED"

    async def test_compressed_messages_are_refused(self, caller: Grpc) -> None:
        """What they become has no bound before they are read."""
        call = caller.channel.unary_unary("/tickwork.v1.Tickwork/SubmitTask")(
            bytes(100_000), metadata=caller.metadata, compression=grpc.Compression.Gzip
        )
        assert (await call.code()).name in ("UNIMPLEMENTED", "INTERNAL")

    async def test_one_connection_has_so_many_calls_at_a_time(self, api: Api, caller: Grpc) -> None:
        """The next waits at the client until there is room."""
        streams = [
            caller.stub.StreamEvents(pb.StreamEventsRequest(), metadata=caller.metadata)
            for _ in range(STREAMS_OF_CONNECTION)
        ]
        for each in streams:
            await each.read()
        waiting = asyncio.ensure_future(caller.call("get_status"))
        other = await api.as_role("viewer")
        await other.call("get_status")  # another connection has its own
        assert not waiting.done()
        streams[0].cancel()
        await waiting
        for each in streams:
            each.cancel()

    async def test_one_who_pings_all_the_time_is_disconnected(self, api: Api) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", api.served.port)
        settings = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
        ping = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + bytes(8)
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + ping * 20)
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(20):
                assert b"too_many_pings" in await reader.read()
        writer.close()


async def answer_of(port: int, trust: Path) -> str:
    credentials = grpc.ssl_channel_credentials(trust.read_bytes())
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
        stub: Any = TickworkStub(channel)
        return str((await stub.GetStatus(pb.GetStatusRequest(), timeout=20)).namespace)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


@contextlib.asynccontextmanager
async def served_with_tls(url: str, certificate: tuple[Path, Path]) -> AsyncIterator[GrpcServer]:
    cert, key = certificate
    given: dict[str, Any] = {"server_tls_cert": str(cert), "server_tls_key": str(key), "server_tokens": False}
    async with calling(url, **given) as api:
        yield api.served


class TestTls:
    async def test_with_a_certificate_there_is_tls_and_nothing_else(
        self, url: str, certificate: tuple[Path, Path]
    ) -> None:
        async with served_with_tls(url, certificate) as served:
            assert await answer_of(served.port, certificate[0]) == "home"
            async with grpc.aio.insecure_channel(f"127.0.0.1:{served.port}") as channel:
                stub: Any = TickworkStub(channel)
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await stub.GetStatus(pb.GetStatusRequest(), timeout=5)
                assert error.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)

    async def test_a_client_that_does_not_know_the_certificate_does_not_connect(
        self, url: str, certificate: tuple[Path, Path]
    ) -> None:
        async with served_with_tls(url, certificate) as served:
            credentials = grpc.ssl_channel_credentials()
            async with grpc.aio.secure_channel(f"localhost:{served.port}", credentials) as channel:
                stub: Any = TickworkStub(channel)
                with pytest.raises(grpc.aio.AioRpcError):
                    await stub.GetStatus(pb.GetStatusRequest(), timeout=5)


class TestListening:
    async def test_a_port_that_is_taken_is_said(self, url: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(ConfigError, match=rf"server_grpc_port: port {port} .* taken"):
                async with serving(url, server_grpc_port=port):
                    pass

    async def test_two_do_not_share_a_port(self, api: Api, url: str) -> None:
        with pytest.raises(ConfigError, match="taken"):
            async with serving(url, server_grpc_port=api.served.port):
                pass

    async def test_a_unix_socket_and_a_port_do_not_go_together(self, url: str, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="server_socket"):
            async with serving(url, server_grpc_port=0, server_socket=str(tmp_path / "s")):
                pass

    async def test_it_can_be_started_again(self, api: Api, caller: Grpc) -> None:
        before = api.served.port
        await api.served.start()
        assert api.served.port == before
        again = await api.as_role("viewer")
        await again.call("get_status")


class TestHealth:
    async def test_it_is_told_to_anybody_and_says_no_more(self, api: Api) -> None:
        stranger = await api.with_token(None)
        assert await stranger.raw("/grpc.health.v1.Health/Check", b"") == b"\x08\x01"
        named = b"\x0a\x14tickwork.v1.Tickwork"
        assert await stranger.raw("/grpc.health.v1.Health/Check", named) == b"\x08\x01"
        error = await failing(stranger.raw("/grpc.health.v1.Health/Check", b"\x0a\x01x"))
        assert error.code == "NOT_FOUND"

    async def test_a_store_that_is_away_is_told(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        class Ill:
            works = False

        async def look() -> Ill:
            return Ill()

        service = api.served._service
        assert isinstance(service, Service)
        stranger = await api.with_token(None)
        watch = stranger.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        assert await watch.read() == b"\x08\x01"
        watch.cancel()
        monkeypatch.setattr(service._health._look, "get", look)
        assert await stranger.raw("/grpc.health.v1.Health/Check", b"") == b"\x08\x02"

    async def test_a_change_is_told_to_those_who_watch(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tickwork.server.grpc.health.LOOK_AGAIN", 0.05)
        stranger = await api.with_token(None)
        watch = stranger.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        assert await watch.read() == b"\x08\x01"
        service = api.served._service
        assert isinstance(service, Service)

        class Ill:
            works = False

        async def look() -> Ill:
            return Ill()

        monkeypatch.setattr(service._health._look, "get", look)
        async with asyncio.timeout(20):
            assert await watch.read() == b"\x08\x02"
        unknown = stranger.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"\x0a\x01x")
        assert await unknown.read() == b"\x08\x03"
        unknown.cancel()
        await api.served.stop()
        with pytest.raises(grpc.aio.AioRpcError):
            await watch.read()

    async def test_not_too_many_watch(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tickwork.server.grpc.health.WATCHES_MAX", 1)
        stranger = await api.with_token(None)
        watch = stranger.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        await watch.read()
        second = stranger.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        assert (await second.code()).name == "RESOURCE_EXHAUSTED"
        watch.cancel()


async def test_a_failed_call_shows_what_went_wrong(caller: Grpc) -> None:
    """The helper of these tests itself."""
    with pytest.raises(Failed, match=r"NOT_FOUND: .*no-such"):
        await caller.call("get_task", id="no-such")
