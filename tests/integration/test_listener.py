"""The server inside a node: which requests it answers, on which ports, and how it starts and stops."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Unpack

import pytest

from tests.support.pages import fetch
from tickwork import ConfigError, Scheduler
from tickwork.config import Config
from tickwork.config.options import ConfigOptions
from tickwork.monitor import serving
from tickwork.monitor.listener import Listener, Listeners, Reply
from tickwork.observe.loggers import Log


async def hello() -> Reply:
    return Reply(200, "text/plain", b"hello")


async def broken() -> Reply:
    raise RuntimeError("a bug")


@asynccontextmanager
async def listening(host: str = "127.0.0.1") -> AsyncIterator[Listener]:
    listener = Listener(host, 0, Log.of(None, "listener"))
    listener.options.append("health_port")
    listener.add("/hello", hello)
    listener.add("/broken", broken)
    await listener.start()
    running = asyncio.ensure_future(listener.run())
    try:
        yield listener
    finally:
        await listener.stop(1)
        await running


def node_with_a_page(**options: Unpack[ConfigOptions]) -> tuple[Scheduler, Listener]:
    """A scheduler that is not started yet, and the listener of its `health_port`."""
    listeners = Listeners(Config(**options))
    listener = listeners.at("health_port")
    listener.add("/hello", hello)
    app = Scheduler("memory://")
    for service in listeners.services():
        app.add_service(service)
    return app, listener


class TestRequests:
    async def test_a_page_is_read_by_get_and_head(self) -> None:
        async with listening() as listener:
            page = await fetch(f"{listener.url}/hello?of=me")
            head = await fetch(f"{listener.url}/hello", "HEAD")
        assert (page.status, page.body, page.headers["content-type"]) == (200, b"hello", "text/plain")
        assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "5")

    async def test_a_page_is_kept_by_no_cache_and_names_no_server(self) -> None:
        async with listening() as listener:
            page = await fetch(f"{listener.url}/hello")
        assert page.headers["cache-control"] == "no-store"
        assert "uvicorn" not in page.headers.get("server", "")

    @pytest.mark.parametrize("path", ["/", "/hello/", "/hello/there", "//hello", "/Hello"])
    async def test_other_paths_are_not_there(self, path: str) -> None:
        async with listening() as listener:
            page = await fetch(listener.url + path)
        assert (page.status, page.body) == (404, b"there is nothing here but /broken, /hello\n")

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
    async def test_other_methods_are_refused(self, method: str) -> None:
        async with listening() as listener:
            page = await fetch(f"{listener.url}/hello", method)
        assert (page.status, page.headers["allow"]) == (405, "GET, HEAD")

    async def test_a_body_is_refused(self) -> None:
        async with listening() as listener:
            page = await fetch(f"{listener.url}/hello", "GET", b"x")
        assert (page.status, page.headers["connection"]) == (413, "close")

    async def test_an_error_is_logged_and_not_shown(self, caplog: pytest.LogCaptureFixture) -> None:
        async with listening() as listener:
            page = await fetch(f"{listener.url}/broken")
            again = await fetch(f"{listener.url}/hello")
        assert (page.status, again.status) == (500, 200)
        assert b"a bug" not in page.body
        assert "the page /broken could not be made" in caplog.text

    async def test_long_headers_are_refused(self) -> None:
        async with listening() as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(b"GET /hello HTTP/1.1\r\n" + b"x-long: " + b"x" * (2 * serving.HEAD_MAX))
            answer = await reader.read()
            writer.close()
        assert answer.startswith(b"HTTP/1.1 400 ")

    @pytest.mark.parametrize("sent", [b"", b"GET /hello HTTP/1.1\r\nx-slow: "])
    async def test_a_connection_without_a_request_is_closed(self, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(serving, "HEAD_SECONDS", 0.05)
        async with listening() as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(sent)
            assert await read_to_end(reader) == b""
            writer.close()


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


class TestPorts:
    async def test_a_listener_is_reached_at_the_loopback_only(self) -> None:
        assert Config().host == "127.0.0.1"
        async with listening() as listener:
            assert listener.url == f"http://127.0.0.1:{listener.port}"

    @pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
    async def test_a_host_may_be_an_address_of_ipv6(self) -> None:
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("no IPv6 on this machine")
        async with listening("::1") as listener:
            assert listener.url.startswith("http://[::1]:")
            assert (await fetch(f"{listener.url}/hello")).status == 200

    def test_options_with_one_port_share_a_listener(self) -> None:
        listeners = Listeners(Config(health_port=8080, metrics_port=8080))
        assert listeners.at("health_port") is listeners.at("metrics_port")
        assert [service.name for service in listeners.services()] == ["the listener of health_port and metrics_port"]

    def test_options_with_two_ports_have_two(self) -> None:
        listeners = Listeners(Config())
        assert listeners.at("health_port") is not listeners.at("metrics_port")

    async def test_a_taken_port_is_told_by_the_name_of_its_option(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            app, _ = node_with_a_page(health_port=port)
            with pytest.raises(ConfigError, match=f"health_port: port {port} of 127.0.0.1 is taken already: give each"):
                await app.start()
        await app.start()  # it left nothing behind
        await app.shutdown()

    async def test_a_foreign_host_is_told_by_the_name_of_its_option(self) -> None:
        app, _ = node_with_a_page(health_port=0, host="192.0.2.1")
        with pytest.raises(ConfigError, match=r"host: '192.0.2.1' is no address of this machine"):
            await app.start()

    async def test_a_missing_server_is_told_with_its_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "tickwork.monitor.serving", raising=False)
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        app, _ = node_with_a_page(health_port=0)
        with pytest.raises(ConfigError, match=r'health_port needs a web server.*pip install "tickwork\[server\]"'):
            await app.start()

    def test_processes_of_one_command_have_ports_in_a_row(self) -> None:
        app = Scheduler("memory://", health_port=8080, metrics_port=0)
        app._be_one_of_several(3, 1)
        assert (app.config.health_port, app.config.metrics_port) == (8082, 0)


class TestLife:
    async def test_the_port_is_free_when_the_node_has_stopped(self) -> None:
        app, listener = node_with_a_page(health_port=0)
        async with app:
            page = await fetch(f"{listener.url}/hello")
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        assert page.status == 200
        assert await reader.read() == b""
        writer.close()
        socket.create_server(("127.0.0.1", listener.port)).close()

    async def test_nothing_is_imported_while_it_is_off(self) -> None:
        program = (
            "import asyncio, sys, tickwork\n"
            "UNWANTED = {'uvicorn', 'tickwork.monitor.listener', 'tickwork.monitor.health'}\n"
            "async def main():\n"
            "    async with tickwork.Scheduler('memory://'): pass\n"
            "asyncio.run(main())\n"
            "print(sorted(name for name in sys.modules if name in UNWANTED))"
        )
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        assert out.decode().strip() == "[]"
