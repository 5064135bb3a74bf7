"""uvicorn inside a node: its HTTP protocol on the event loop of the node, without its process, signals and log."""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio import TimerHandle
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

HEAD_MAX = 16_384  # bytes of a request before its body
HEAD_SECONDS = 10.0  # for them to arrive
CONNECTIONS_MAX = 100  # beyond which requests are answered with 503
LAST_REPLIES = 1.0  # seconds that a stop waits for replies that are being made


class Server:
    """Serves an ASGI application on a socket that listens."""

    def __init__(
        self, app: Any, opened: socket.socket, connections: int = CONNECTIONS_MAX, tls: ssl.SSLContext | None = None
    ) -> None:
        self._socket = opened
        self._tls = tls
        self._config = uvicorn.Config(
            app, interface="asgi3", http=_Protocol, ws="none", lifespan="off", log_config=None, proxy_headers=False,
            limit_concurrency=connections,
        )  # fmt: skip
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self.closed = asyncio.Event()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._config.load()
        self._server = await self._listen(loop)

    async def _listen(self, loop: asyncio.AbstractEventLoop) -> asyncio.Server:
        if self._socket.family == getattr(socket, "AF_UNIX", None):
            return await loop.create_unix_server(self._connect, sock=self._socket, ssl=self._tls)
        return await loop.create_server(self._connect, sock=self._socket, ssl=self._tls)

    def _connect(self) -> asyncio.Protocol:
        return _Protocol(self._config, self._state, {})

    def close_port(self) -> None:
        """Take no more connections."""
        if self._server is not None:
            self._server.close()

    async def stop(self, grace: float) -> None:
        """Take no more requests, and wait a moment for the replies to those that came."""
        self.close_port()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=min(grace, LAST_REPLIES))
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        self.closed.set()


class _Protocol(HttpToolsProtocol):
    """A connection. One that does not get to the end of its headers is closed, and no access is logged."""

    _until_head: TimerHandle | None = None
    _is_in_head = False
    _head_bytes = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX:
                self.send_400_response("The headers are too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._forget_head()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if self._until_head is None:
            self._until_head = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _forget_head(self) -> None:
        if self._until_head is not None:
            self._until_head.cancel()
            self._until_head = None

    def _give_up(self) -> None:
        self.transport.abort()
