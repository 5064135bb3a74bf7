"""Blocking connections to Redis, on a socket whose pieces the test hands out."""

from __future__ import annotations

from typing import cast

import pytest

from tickwork.store.redis.net.link import Address, pack
from tickwork.store.redis.net.sockets import CannotSay, Server, Socket

PATIENCE = 5.0


class Pieces:
    """A socket that has received these pieces, one for each look; then it was closed."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)
        self.sent = b""

    def gettimeout(self) -> float:
        return PATIENCE

    def settimeout(self, seconds: float) -> None: ...

    def sendall(self, data: bytes) -> None:
        self.sent += data

    def recv(self, size: int) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    def close(self) -> None: ...


def replies_of(commands: int, *pieces: bytes, patience: float = PATIENCE) -> list[object]:
    connection = Socket(Server(Address("localhost", 6379), ()))
    received = Pieces(*pieces)
    connection._socket = cast("Socket", received)  # type: ignore[assignment]
    replies = connection.call([pack("PING")] * commands, patience)
    assert received.sent == pack("PING") * commands
    return list(replies)


@pytest.mark.parametrize(
    "pieces",
    [
        [b"$5\r\nhello\r\n:7\r\n"],
        [b"$5\r\nhe", b"llo\r\n:7\r\n"],
        [b"$5\r\nhello\r\n", b":7\r\n"],
        [b"$5\r\nhello\r\n:7", b"\r\n"],
        [bytes([byte]) for byte in b"$5\r\nhello\r\n:7\r\n"],
    ],
)
def test_replies_that_come_in_pieces(pieces: list[bytes]) -> None:
    assert replies_of(2, *pieces) == [b"hello", 7]


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        ([b"+a\r\n+b\r\n"], "something else"),
        ([b"$5\r\nhe"], "closed"),
        ([], "closed"),
        ([b"*1\r\n"], "a list"),
    ],
)
def test_what_is_no_reply(pieces: list[bytes], why: str) -> None:
    with pytest.raises(CannotSay, match=why):
        replies_of(1, *pieces)


def test_a_reply_that_takes_too_long_is_given_up_though_pieces_come() -> None:
    with pytest.raises(CannotSay, match="took too long"):
        replies_of(1, *[b"$5\r\n", b"h", b"e"] * 1000, patience=-1)
