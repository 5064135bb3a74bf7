"""A blocking Redis client of a few lines: tests look at the server without the code that they test."""

from __future__ import annotations

import socket
import ssl
from typing import Any, Self, cast

import hiredis

_NOTHING = object()


class Client:
    """One connection. Replies are bytes, ints, None and lists of these; an error reply is raised."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        password: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = 10,
    ) -> None:
        self._reader = hiredis.Reader(notEnoughData=_NOTHING)
        self._socket = socket.create_connection((host, port), timeout)
        try:
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
            if password is not None:
                self.call("AUTH", password)
        except BaseException:
            self._socket.close()
            raise

    def call(self, *args: str | bytes | int | float) -> Any:
        self.send(*args)
        return self.receive()

    def send(self, *args: str | bytes | int | float) -> None:
        packed: bytes = hiredis.pack_command(cast(Any, args))
        self._socket.sendall(packed)

    def receive(self) -> Any:
        while (reply := self._reader.gets()) is _NOTHING:
            data = self._socket.recv(65_536)
            if not data:
                raise ConnectionResetError("the server closed the connection before it had answered")
            self._reader.feed(data)
        if isinstance(reply, hiredis.ReplyError):
            raise reply
        return reply

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
