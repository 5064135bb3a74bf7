"""A TCP proxy that loses replies, swallows bytes, drops connections and takes its time."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self

HOST = "127.0.0.1"


class Proxy:
    """Stands on a port of its own in front of `target`. Faults apply to open and to coming connections."""

    host = HOST

    def __init__(self, target: int, target_host: str = HOST) -> None:
        self._target = (target_host, target)
        self._lock = threading.Lock()
        self._open: set[_Link] = set()
        self._cuts = 0
        self._cut_after = b""
        self._delay = 0.0
        self._flowing = threading.Event()
        self._flowing.set()
        self._closed = threading.Event()
        self._listener = socket.create_server((HOST, 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.accepted = 0
        self._acceptor = threading.Thread(target=self._accept, name=f"proxy-{self.port}", daemon=True)
        self._acceptor.start()

    @property
    def connections(self) -> int:
        """How many connections are open."""
        with self._lock:
            return len(self._open)

    @property
    def cuts_left(self) -> int:
        with self._lock:
            return self._cuts

    def cut_replies(self, count: int = 1, after: bytes = b"") -> None:
        """Let the server execute what it is sent, then close the connection instead of passing its reply on.

        With `after`, only on connections that send these bytes from now on: a reconnect's greetings go through.
        """
        with self._lock:
            self._cuts, self._cut_after = count, after
            for link in self._open:
                link.suspect = not after

    def black_hole(self) -> None:
        """Accept and keep connections, but pass nothing on, in neither direction; what arrives meanwhile is lost, and
        with it the connection: no network delivers what follows a gap."""
        self._flowing.clear()

    def heal(self) -> None:
        """End every fault: nothing is swallowed, cut or delayed any more."""
        with self._lock:
            self._cuts = 0
        self._delay = 0.0
        self._flowing.set()

    def drop_all(self) -> None:
        """Close every open connection, on both sides; new ones are welcome."""
        with self._lock:
            links = list(self._open)
            self._open.clear()
        for link in links:
            link.close()

    def delay(self, seconds: float) -> None:
        """Hold every chunk of a reply for so long; requests pass at once."""
        self._delay = seconds

    def close(self) -> None:
        self._closed.set()
        self._flowing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(5)
        self.drop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target, 5)
            except OSError:
                client.close()
                continue
            self._join(client, server)

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        server.settimeout(None)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = _Link(client, server)
        with self._lock:
            link.suspect = not self._cut_after
            self._open.add(link)
            self.accepted += 1
        for pump in (self._requests, self._replies):
            threading.Thread(target=self._run, args=(pump, link), name=f"proxy-{self.port}", daemon=True).start()

    def _run(self, pump: Callable[[_Link], None], link: _Link) -> None:
        with contextlib.suppress(OSError):
            pump(link)
        self._flowing.wait()  # a black hole does not tell either side that the other has gone
        link.close()
        with self._lock:
            self._open.discard(link)

    def _requests(self, link: _Link) -> None:
        while data := link.client.recv(65_536):
            if self._swallows(link):
                continue
            with self._lock:
                if self._cuts and self._cut_after and self._cut_after in data:
                    link.suspect = True
            link.server.sendall(data)

    def _replies(self, link: _Link) -> None:
        while data := link.server.recv(65_536):
            if self._delay:
                self._closed.wait(self._delay)
            if self._swallows(link):
                continue
            if self._cut(link):
                return
            link.client.sendall(data)

    def _swallows(self, link: _Link) -> bool:
        link.has_gap = link.has_gap or not self._flowing.is_set()
        return link.has_gap

    def _cut(self, link: _Link) -> bool:
        with self._lock:
            if not self._cuts or not link.suspect:
                return False
            self._cuts -= 1
            return True


class _Link:
    """One client's connection and the one to the server that belongs to it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.suspect = True
        self.has_gap = False  # something of it was swallowed
        self._lock = threading.Lock()
        self._closed = False

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for end in (self.client, self.server):
            # Without the shutdown the other pump would sleep on in its recv.
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
