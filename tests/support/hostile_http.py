"""Servers on loopback that answer exactly what a test says, byte by byte."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from msgspec import Struct, field


class Request(Struct):
    """What a client has sent."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for each, value in self.headers if each.lower() == name.lower()), None)


class Server(Struct):
    """A server and what has come in."""

    port: int
    scheme: str = "http"
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)  # set when a client has gone

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


Respond = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes = b"", status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    """A whole answer in bytes."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def always(data: bytes) -> Respond:
    async def respond(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return respond


async def hang(_request: Request, _writer: asyncio.StreamWriter) -> None:
    """Never answers; ends when the client goes, or with the server."""
    await asyncio.Event().wait()


async def reset(_request: Request, writer: asyncio.StreamWriter) -> None:
    """Ends the connection in the middle of an answer."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()
    writer.transport.abort()


async def vanish(_request: Request, writer: asyncio.StreamWriter) -> None:
    """Ends the connection without an answer."""
    writer.transport.abort()


async def drip(_request: Request, writer: asyncio.StreamWriter) -> None:
    """Sends one byte after the other, without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"1\r\nx\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


def flood(head: bytes, block: bytes) -> Respond:
    """Sends the same block without end."""

    async def respond(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(block)
            await writer.drain()

    return respond


ENDLESS_BODY = flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65_536 + b"\r\n")
ENDLESS_HEADERS = flood(b"HTTP/1.1 200 OK\r\n", b"".join(b"X-%d: y\r\n" % number for number in range(1000)))


Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(converse: Converse, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server on the port that is returned. A connection ends with its conversation, at the latest with the server."""
    tasks: set[asyncio.Task[None]] = set()

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await converse(reader, writer)
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(attend(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # a transport closes its socket in the next turn of the loop


@asynccontextmanager
async def serving(respond: Respond, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server that reads each request whole and lets `respond` write the answer."""
    server = Server(0, "http" if context is None else "https")

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            while True:
                request = await _read(reader)
                server.requests.append(request)
                await _respond_until_gone(respond, request, reader, writer)
        finally:
            server.closed.set()

    async with listening(converse, context) as server.port:
        yield server


async def _respond_until_gone(
    respond: Respond, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """A client that closes the connection ends the answer."""
    answering = asyncio.ensure_future(respond(request, writer))
    try:
        while not answering.done() and not reader.at_eof() and not writer.is_closing():
            await asyncio.wait([answering], timeout=0.01)
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
    await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.rstrip("\r\n").split("\r\n")
    request = Request(line, [(name, value.strip()) for name, _, value in (each.partition(":") for each in rest)], b"")
    if length := request.header("content-length"):
        request.body = await reader.readexactly(int(length))
    return request
