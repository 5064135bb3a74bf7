"""The few parts of ASGI that a remote worker, and the reports to a scheduler, need."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from tickwork.remote.protocol import Refusal
from tickwork.remote.replays import Reply

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY_SECONDS = 30.0  # for the whole body of a request to arrive


class Disconnected(Exception):
    """The other side is gone before its request was complete."""


class Request:
    """One request, its body read within a bound."""

    def __init__(self, scope: Scope) -> None:
        path, root = scope["path"], scope.get("root_path", "")
        whole = path if path.startswith(root) else root + path  # servers differ in whether the path has its root
        query = scope.get("query_string", b"").decode("latin-1")
        self.method: str = scope["method"]
        self.route: str = whole[len(root) :]
        self.target = f"{whole}?{query}" if query else whole
        self.headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope.get("headers", ())
        }
        self.body = b""

    async def read(self, receive: Receive, limit: int) -> Reply | None:
        """Read the body; the refusal if it is too large or too slow."""
        too_large = refusal(413, f"the body is larger than {limit:,} bytes")
        length = self.headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > limit:
            return too_large
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Disconnected
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limit:
                        return too_large
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            return refusal(408, f"the body did not arrive within {BODY_SECONDS:g} seconds")
        self.body = b"".join(parts)
        return None


def json_reply(status: int, value: Any, **headers: str) -> Reply:
    return Reply(status, msgspec.json.encode(value), {name.replace("_", "-"): text for name, text in headers.items()})


def refusal(status: int, error: str, **headers: str) -> Reply:
    return json_reply(status, Refusal(error), **headers)


async def send_reply(send: Send, reply: Reply) -> None:
    headers = {
        "content-type": "application/json",
        "content-length": str(len(reply.body)),
        "cache-control": "no-store",
        **reply.headers,
    }
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    await send({"type": "http.response.body", "body": reply.body})


async def serve_lifespan(receive: Receive, send: Send, shutdown: Callable[[], Awaitable[None]]) -> None:
    """Take part in the start and the end of the server."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await shutdown()
            await send({"type": "lifespan.shutdown.complete"})
            return
