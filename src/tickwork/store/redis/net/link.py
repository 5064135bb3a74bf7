"""One connection to a Redis server: commands go out in order, replies come back in order.

It is thin because it is on the hot path: a client library costs five times as much a call. Any number of coroutines may
have commands under way. A link that is silent while replies are due is cut off by its watchdog; everything that was
under way then fails with `LinkLost`, and whether it was executed is unknown. Nothing here ever sends a command twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import hiredis

from tickwork.errors import StoreError
from tickwork.forks import tell_of_forks
from tickwork.timeouts import DueCall, TimeLimit, of_late

Reply = Any
_MORE = object()
LARGE = 4096  # a command of more bytes is not held back to be sent with others
DIGITS_MAX = 8  # digits in the header of a reply: no command here asks for so many items
RECEIVE = 256 * 1024  # bytes that are read from a connection at once
STRANGE = 5.0  # seconds without data after which another server may have taken over, so it is greeted again
SUSPECT = 0.5  # seconds after which a missing reply makes the link test the server on a new connection


def pack(*command: Any) -> bytes:
    packed: bytes = hiredis.pack_command(command)
    return packed


class LinkLost(Exception):
    """The connection ended while replies were due, or could not be made."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Access(NamedTuple):
    """Credentials and settings for a connection."""

    username: str = ""
    password: str = ""
    db: int = 0
    tls: ssl.SSLContext | None = None
    connect_timeout: float = 3.0

    def __repr__(self) -> str:
        """Without the password, since tracebacks and logs may show the values of variables."""
        password = "'***'" if self.password else "''"
        return f"Access(username={self.username!r}, password={password}, db={self.db}, tls={self.tls is not None})"


class Link(asyncio.BufferedProtocol):
    def __init__(self, timeout: float, on_push: Callable[[list[Any]], None] | None = None) -> None:
        self.lost: LinkLost | None = None
        self.met = False  # whether `greet.lua` was run on this connection
        self._timeout = timeout
        self._on_push = on_push
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(notEnoughData=_MORE)
        # One buffer that is reused. With a plain Protocol, asyncio would allocate one of this size for each read, which
        # is often returned to the system and allocated anew.
        self._received = memoryview(bytearray(RECEIVE))  # a view, since asyncio writes into slices of it
        self._due: deque[asyncio.Future[Reply]] = deque()
        self._buffer: list[bytes] = []
        self._received_at = self._loop.time()
        self._has_received = False
        self._watchdog: asyncio.TimerHandle | DueCall | None = None
        self.probe: Callable[[], Awaitable[bool]] | None = None
        self._probing: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport
        tell_of_forks(self)

    # --- the protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._watch()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._received

    def buffer_updated(self, size: int) -> None:
        self._received_at = self._loop.time()
        self._has_received = True
        reader, data = self._reader, self._received
        if (
            size > DIGITS_MAX
            and data[0] in b"*%~>"
            and bytes(data[1 : DIGITS_MAX + 1]).isdigit()
            and not reader.has_data()
        ):
            # Allocating and freeing memory for them would take seconds.
            self.cut(f"the server announces a reply of more than {10 ** (DIGITS_MAX - 1):,} items")
            return
        reader.feed(data, 0, size)  # type: ignore[arg-type]
        try:
            while (reply := reader.gets()) is not _MORE:
                if self._on_push is not None:
                    self._on_push(reply)
                elif not self._due:
                    self.cut("the server sent a reply without a command")
                elif not (waiter := self._due.popleft()).done():  # done: its caller has given up
                    waiter.set_result(reply)
        except hiredis.ProtocolError as error:
            self.cut(f"the server's reply is not in the Redis protocol: {error}")

    def connection_lost(self, error: Exception | None) -> None:
        why = str(error) if error else "the server closed the connection"
        if not self._has_received:
            encrypted = self._transport.get_extra_info("ssl_object") is not None
            wanted = "a certificate of yours (ssl_certfile)" if encrypted else "TLS (rediss://)"
            why += f" before it sent anything: does it require {wanted}?"
        self._end(LinkLost(why))

    # --- commands

    def send(self, command: bytes) -> asyncio.Future[Reply]:
        """Send a packed command. It is sent at once if no reply is due, or if it is large; otherwise together with
        other commands of this iteration of the event loop."""
        if self.lost is not None:
            raise self.lost
        waiter: asyncio.Future[Reply] = self._loop.create_future()
        if self._due:
            self._due.append(waiter)
            if not self._buffer:
                self._loop.call_soon(self._flush)
            self._buffer.append(command)
            if len(command) > LARGE:
                self._flush()
        else:
            self._due.append(waiter)
            self._received_at = self._loop.time()
            self.write(command)
        return waiter

    def send_together(self, first: bytes, second: bytes) -> tuple[asyncio.Future[Reply], asyncio.Future[Reply]]:
        """Send two packed commands in one piece, so that the server has the second when it has answered the first."""
        waiter = self.send(first + second)
        waiters = waiter, self._loop.create_future()
        self._due.append(waiters[1])
        return waiters

    def write(self, command: bytes) -> None:
        self._transport.write(command)

    async def call(self, *command: Any) -> Reply:
        return await self.send(pack(*command))

    def _flush(self) -> None:
        buffer, self._buffer = self._buffer, []
        if buffer and self.lost is None:
            self._transport.write(b"".join(buffer))

    @property
    def peer(self) -> tuple[Any, ...] | None:
        """The address of the server's socket, if that is still known."""
        found: tuple[Any, ...] | None = self._transport.get_extra_info("peername")
        return found

    @property
    def under_way(self) -> int:
        return len(self._due)

    # --- the end

    def _watch(self, again: bool = False) -> None:
        silent = self._loop.time() - self._received_at
        if (self._due or self._on_push is not None) and silent >= self._timeout:
            if again:
                self.cut(f"no answer for {silent:.1f} s")
            else:  # if the loop was held up in this pass, an answer is read in one of the next
                self._watchdog = DueCall(0, functools.partial(self._watch, True))
            return
        if silent >= STRANGE:
            self.met = False
        if self._due and silent >= SUSPECT and self.probe is not None and self._probing is None:
            self._probing = self._loop.create_task(self._doubt(self.probe))
        self._watchdog = self._loop.call_later(min(self._timeout / 4, SUSPECT / 2), self._watch)

    async def _doubt(self, probe: Callable[[], Awaitable[bool]]) -> None:
        """Replies are late. If the server answers a new connection meanwhile, this connection is dead, and it is
        cut."""
        received_at = self._received_at
        try:
            if await probe() and self._received_at == received_at and self._due and self.lost is None:
                self.cut("no answer, though the server answers others")
        finally:
            self._probing = None

    def cut(self, why: str) -> None:
        self._end(LinkLost(why))
        self._transport.abort()

    def _end(self, error: LinkLost) -> None:
        if self.lost is None:
            self.lost = error
        if self._watchdog is not None:
            self._watchdog.cancel()
        while self._due:
            waiter = self._due.popleft()
            if not waiter.done():
                waiter.set_exception(LinkLost(*error.args))
        if self._on_push is not None:
            self._on_push([])

    def after_fork(self) -> None:
        """In the child of a fork: close its copy of the socket, or the server would not notice when the parent closes
        it. The transport and the event loop are not used for that: the loop's epoll file is shared with the parent, and
        removing the socket there would remove it for the parent."""
        shared = self._transport.get_extra_info("socket") if hasattr(self, "_transport") else None
        if shared is not None and shared.fileno() >= 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, shared.fileno(), inheritable=False)
            os.close(nothing)

    def abandon(self) -> None:
        """Shut the socket down, so that the server notices, when the event loop was closed without closing the link."""
        connected = self._transport.get_extra_info("socket") if hasattr(self, "_transport") else None
        if connected is not None and connected.fileno() >= 0:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    async def close(self) -> None:
        self.lost = self.lost or LinkLost("the store was closed")
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._probing is not None:
            self._probing.cancel()
        self._transport.abort()
        await asyncio.sleep(0)


async def connect(
    address: Address, access: Access, timeout: float, on_push: Callable[[list[Any]], None] | None = None
) -> Link:
    """A link that is ready for commands (in push mode: for SUBSCRIBE)."""
    link = Link(timeout)
    try:
        with TimeLimit(access.connect_timeout, makes_up=True) as limit:
            await asyncio.get_running_loop().create_connection(
                lambda: link, address.host, address.port, ssl=access.tls, server_hostname=None
            )
            await _introduce(link, access)
    except TimeoutError:
        _abort(link)
        plain = access.tls is not None and not hasattr(link, "_transport")
        hint = ": is it a port without TLS (redis://)?" if plain else ""
        late = of_late(limit.late)
        raise LinkLost(f"{address} did not answer within {access.connect_timeout:g} s{late}{hint}") from None
    except ssl.SSLError as error:
        raise StoreError(f"TLS to {address} failed: {error}") from error
    except (OSError, LinkLost) as error:
        _abort(link)
        raise LinkLost(f"{address}: {error}") from error
    except BaseException:
        _abort(link)
        raise
    link._on_push = on_push
    return link


async def answers(address: Address, access: Access) -> bool:
    """Whether the server answers a new connection at once."""
    try:
        async with asyncio.timeout(SUSPECT):
            link = await connect(address, access, SUSPECT)
            try:
                await link.call("PING")
            finally:
                await link.close()
    except (TimeoutError, LinkLost, StoreError):
        return False
    return True


def unread(reply: asyncio.Future[Reply]) -> None:
    """For a reply that nobody waits for: asyncio would log that its error, such as a lost connection, was not looked
    at, though whoever sent the next command is told of it."""
    if not reply.cancelled():
        reply.exception()


def _abort(link: Link) -> None:
    if hasattr(link, "_transport"):
        link.cut("given up")


def login(access: Access) -> list[tuple[Any, ...]]:
    """The commands that come first on a connection."""
    commands: list[tuple[Any, ...]] = []
    if access.password or access.username:
        commands.append(("AUTH", *([access.username] if access.username else []), access.password))
    if access.db:
        commands.append(("SELECT", access.db))
    return commands


async def _introduce(link: Link, access: Access) -> None:
    for command in login(access):
        reply = await link.call(*command)
        if isinstance(reply, hiredis.ReplyError):
            if str(reply).startswith(("LOADING", "MASTERDOWN", "ERR max number of clients")):
                raise LinkLost(str(reply))
            raise StoreError(f"Redis refused {command[0]} on a new connection: {reply}")
