"""ASGI applications in tests: called directly, or served on a free port of this host."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import msgspec
import uvicorn

from tests.support.waiting import wait_until
from tickwork.remote.protocol import ExecuteCall, request_id_of
from tickwork.remote.signing import Keys, request_headers

SECRET = bytes(range(32)).hex()


class Answered(msgspec.Struct, frozen=True):
    """What an application has answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


async def ask(
    app: Any, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = {}, root: str = ""
) -> Answered:
    """One request to an application, without a server."""
    sent: list[Any] = []
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return parts.pop() if parts else await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    target, _, query = path.partition("?")
    scope = {
        "type": "http", "method": method, "path": target, "root_path": root, "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    await app(scope, receive, send)
    start, end = sent
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answered(start["status"], found, end["body"])


def signed(
    method: str,
    path: str,
    body: bytes = b"",
    *,
    secret: str = SECRET,
    worker_id: str = "w1",
    request_id: str = "r1",
    at: float | None = None,
) -> dict[str, str]:
    """The headers of a request to a worker."""
    moment = int(time.time() if at is None else at)
    return request_headers(Keys.of(secret), method, path, body, worker_id=worker_id, request_id=request_id, time=moment)


def a_call(type: str = "echo", payload: Any = None, token: str = "t1", **more: Any) -> ExecuteCall:
    raw = msgspec.Raw(msgspec.json.encode(payload))
    return ExecuteCall(
        id="task1", type=type, token=token, attempt=1, namespace="default", worker_id="w1", payload=raw, **more
    )


async def execute(app: Any, call: ExecuteCall, **how: Any) -> Answered:
    """A signed call to a worker, without a server."""
    body = msgspec.json.encode(call)
    headers = signed("POST", "/execute", body, request_id=request_id_of(call.token), **how)
    return await ask(app, "POST", "/execute", body, headers)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are for the test program


@contextlib.asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """The address of an application that is served on this event loop."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        server = _Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1, lifespan="auto"))
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            await wait_until(lambda: server.started or serving.done(), what="the server is up")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await serving
