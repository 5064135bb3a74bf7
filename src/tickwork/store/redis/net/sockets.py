"""Blocking connections, for threads without an event loop: each is used by one thread at a time.

They serve calls that may be made again over the connections of an event loop, which know how to find servers and what
an error means. So nothing is repeated or waited for here: whatever goes wrong is `CannotSay`, and for a while no other
call is tried. The servers are those from which the connections of event loops got their last replies, by the address
of their sockets: no name is looked up here, which may take long and must not be interrupted by a fork.
"""

from __future__ import annotations

import codecs
import socket
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import hiredis

from tickwork.forks import tell_of_forks
from tickwork.store.redis.net.link import STRANGE, Access, Address, Reply, login, pack

ANSWER_TIME = 1.0  # seconds for a reply; the connections of an event loop are more patient
PAUSE = 1.0  # seconds without another try, after one has failed
CONFIRMED = 2.0  # seconds for which a master that sentinels have named is taken for the master
RECEIVE = 4096  # bytes at once: replies are short
_MORE = object()

codecs.lookup("idna")  # TLS needs it: if a thread imported it at a fork, the child would wait for that thread for ever


class CannotSay(Exception):
    """There was no reply, or none that can be used: nobody knows whether the commands were executed."""


class Server(NamedTuple):
    address: Address
    peer: tuple[Any, ...]  # to which its name led


class KnownServers:
    """The servers from which replies came, by key. The connections of all event loops write here."""

    def __init__(self, by_sentinels: bool = False) -> None:
        self._by_sentinels = by_sentinels
        self._servers: dict[str, Server] = {}
        self._confirmed: tuple[Address, float] | None = None

    def answered(self, key: str, address: Address, peer: tuple[Any, ...] | None) -> None:
        if peer is not None:
            self._servers[key] = Server(address, peer)

    def confirm(self, master: Address) -> None:
        """The sentinels have named it just now."""
        self._confirmed = master, time.monotonic()

    def forget(self) -> None:
        self._servers.clear()
        self._confirmed = None

    def find(self, key: str) -> Server | None:
        server = self._servers.get(key)
        return server if server is None or not self._by_sentinels or self._is_confirmed(server) else None

    def _is_confirmed(self, server: Server) -> bool:
        if self._confirmed is None:
            return False
        master, at = self._confirmed
        return master == server.address and time.monotonic() - at <= CONFIRMED


class Socket:
    """One connection, which has no reply to deliver while nobody uses it."""

    _socket: socket.socket

    def __init__(self, server: Server) -> None:
        self.server = server
        self.greeted = ""  # the key for which `greet.lua` was run
        self.used_at = 0.0
        self._reader = hiredis.Reader(notEnoughData=_MORE)

    def connect(self, access: Access, seconds: float) -> None:
        address, peer = self.server
        self._socket = socket.socket(socket.AF_INET if len(peer) == 2 else socket.AF_INET6)
        self._socket.settimeout(min(access.connect_timeout, seconds))
        self._socket.connect(peer)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if access.tls is not None:
            self._socket = access.tls.wrap_socket(self._socket, server_hostname=address.host)
        for command in login(access):
            (reply,) = self.call([pack(*command)], seconds)
            if isinstance(reply, hiredis.ReplyError):
                raise CannotSay(str(reply))

    def call(self, commands: list[bytes], seconds: float) -> list[Reply]:
        """Send commands and read a reply for each."""
        if self._socket.gettimeout() != seconds:
            self._socket.settimeout(seconds)
        give_up_at = time.monotonic() + seconds
        self._socket.sendall(commands[0] if len(commands) == 1 else b"".join(commands))
        replies: list[Reply] = []
        while True:
            data = self._socket.recv(RECEIVE)
            if not data:
                raise CannotSay("the server closed the connection")
            if data[:1] == b"*" and not self._reader.has_data():
                raise CannotSay("the server sent a list, for which no command asks here")
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not _MORE:
                replies.append(reply)
            if len(replies) == len(commands) and not self._reader.has_data():
                self.used_at = time.monotonic()
                return replies
            if len(replies) > len(commands) or time.monotonic() > give_up_at:
                raise CannotSay("the server sent something else, or took too long")

    def close(self) -> None:
        if hasattr(self, "_socket"):  # else it was never connected
            self._socket.close()

    __del__ = close


class SocketPool:
    """The blocking connections of one store in this process. At most `size` are open."""

    answer_time = ANSWER_TIME

    def __init__(
        self, servers: KnownServers, access: Access, size: int, greeting: Callable[[str], bytes | None]
    ) -> None:
        self._servers = servers
        self._access = access
        self._size = size
        self._greeting = greeting
        self._begin()
        tell_of_forks(self)

    def _begin(self) -> None:
        self._idle: deque[Socket] = deque()
        self._all: weakref.WeakSet[Socket] = weakref.WeakSet()
        self._pause_until = 0.0

    def after_fork(self) -> None:
        """The child closes its copies, so that the server notices when the parent closes its own."""
        for each in list(self._all):
            each.close()
        self._begin()

    def close(self) -> None:
        """Close what nobody uses. A call that is under way closes its connection when it is over."""
        idle, self._idle = self._idle, deque()
        for connection in idle:
            self._drop(connection)

    def call(self, key: str, commands: list[bytes], most: float | None = None) -> list[Reply]:
        """The replies to commands for the server of `key`, if they come within `answer_time`, and within `most`
        seconds. Raises `CannotSay`."""
        seconds = self.answer_time if most is None else min(most, self.answer_time)
        server = self._servers.find(key)
        if server is None or time.monotonic() < self._pause_until:
            raise CannotSay("no server is known, or it has not answered lately")
        idle = self._idle
        connection = self._take(idle, server)
        try:
            if not connection.used_at:
                connection.connect(self._access, seconds)
            self._greet(connection, key, seconds)
            replies = connection.call(commands, seconds)
        except (OSError, ValueError, hiredis.HiredisError, CannotSay) as error:
            self._drop(connection)
            self.doubt()
            raise CannotSay(str(error)) from error
        except BaseException:  # this thread is to stop: a reply may still come
            self._drop(connection)
            raise
        if idle is self._idle:
            idle.append(connection)
        else:  # the pool was closed meanwhile
            self._drop(connection)
        return replies

    def _take(self, idle: deque[Socket], server: Server) -> Socket:
        """One that nobody uses, or a new one that is not connected yet."""
        while True:
            try:
                connection = idle.pop()
            except IndexError:
                break
            if connection.server == server:
                return connection
            self._drop(connection)
        connection = Socket(server)
        self._all.add(connection)
        if len(self._all) > self._size:
            self._all.discard(connection)
            raise CannotSay("all connections are in use")
        return connection

    def _greet(self, connection: Socket, key: str, seconds: float) -> None:
        if connection.greeted == key and time.monotonic() - connection.used_at < STRANGE:
            return
        greeting = self._greeting(key)
        if greeting is not None:
            (reply,) = connection.call([greeting], seconds)
            if isinstance(reply, hiredis.ReplyError):
                raise CannotSay(str(reply))
        connection.greeted = key

    def doubt(self) -> None:
        """A call has failed, so the next ones would probably fail too: all connections are given up for a while."""
        self._pause_until = time.monotonic() + PAUSE
        self.close()

    def _drop(self, connection: Socket) -> None:
        self._all.discard(connection)
        connection.close()
