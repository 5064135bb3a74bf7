"""Pages that a node serves by HTTP: a listener for each port, which answers GET and HEAD of the paths that parts of the
node have added to it, and nothing else."""

from __future__ import annotations

import errno
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tickwork.config import Config
from tickwork.errors import ConfigError
from tickwork.node.services import Service
from tickwork.observe.loggers import Log
from tickwork.remote.asgi import Receive, Scope, Send

if TYPE_CHECKING:
    from tickwork.monitor.serving import Server

PORT_MAX = 65_535
TEXT = "text/plain; charset=utf-8"
NEEDS_EXTRA = '{} needs a web server, which comes with: pip install "tickwork[server]"'


class Reply(NamedTuple):
    status: int
    content_type: str
    body: bytes


Handler = Callable[[], Awaitable[Reply]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Guest(NamedTuple):
    """An application that a listener serves. It is given the handlers of the paths that others have added, and decides
    itself who may see them. `path` is that of a Unix socket, instead of a port."""

    make_app: Callable[[Mapping[str, Handler]], Awaitable[App]]
    close: Callable[[], Awaitable[None]]
    connections: int
    tls: ssl.SSLContext | None = None
    path: str | None = None
    optional: bool = False  # a port that cannot be had is told, and is no error, if nobody else wants it


class Listeners:
    """One for each port that the options of a node name: options with the same port share a listener."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._listeners: dict[int, Listener] = {}

    def at(self, option: str) -> Listener:
        """The listener of an option such as `health_port`."""
        port: int = getattr(self._config, option)
        if port not in self._listeners:
            self._listeners[port] = Listener(self._config.host, port, Log.of(self._config.logger, "listener"))
        listener = self._listeners[port]
        listener.options.append(option)
        return listener

    def url(self, option: str) -> str:
        """Where the pages of an option are, once the node has started."""
        return next(each.url for each in self._listeners.values() if option in each.options)

    def url_of(self, option: str) -> str | None:
        """The same, or None if nothing is served there."""
        return next((each.url for each in self._listeners.values() if option in each.options and each.is_up), None)

    def services(self) -> list[Service]:
        return [
            Service(f"the listener of {each.option}", each.run, start=each.start, stop=each.stop)
            for each in self._listeners.values()
        ]


class Listener:
    """An ASGI application, and the server that it is served by while the node runs."""

    def __init__(self, host: str, port: int, log: Log) -> None:
        self.host = host
        self.port = port  # 0 is any that is free; the one that was taken, once it is started
        self.options: list[str] = []  # that have asked for it
        self._handlers: dict[str, Handler] = {}
        self._guest: Guest | None = None
        self._log = log
        self._server: Server | None = None

    @property
    def option(self) -> str:
        return " and ".join(self.options)

    @property
    def is_up(self) -> bool:
        return self._server is not None

    @property
    def url(self) -> str:
        guest = self._guest
        if guest is not None and guest.path is not None:
            return f"unix:{guest.path}"
        scheme = "http" if guest is None or guest.tls is None else "https"
        return f"{scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def add(self, path: str, handler: Handler) -> None:
        """Answer requests of a path by what the handler returns. Before the node starts."""
        assert path not in self._handlers, path
        self._handlers[path] = handler

    def hand_to(self, guest: Guest) -> None:
        """Let an application answer every request. Before the node starts."""
        self._guest = guest

    # --- the service

    async def start(self) -> None:
        """Take the port. Raises `ConfigError` if it cannot be had."""
        try:
            from tickwork.monitor.serving import Server
        except ModuleNotFoundError as error:
            raise ConfigError(NEEDS_EXTRA.format(self.option)) from error
        guest = self._guest
        try:
            opened = self._open()
        except ConfigError as error:
            if guest is None or not guest.optional or self._handlers:
                raise
            self._log.line(logging.INFO, "Not served", why=str(error))
            return
        if guest is not None:
            paths = "all"
            try:
                app = await guest.make_app(self._handlers)
            except BaseException:
                opened.close()
                raise
            self._server = Server(app, opened, guest.connections, guest.tls)
        else:
            paths = " ".join(sorted(self._handlers))
            self._server = Server(self, opened)
        await self._server.start()
        self._log.line(logging.INFO, "Listening", url=self.url, paths=paths)

    async def run(self) -> None:
        if self._server is not None:  # else there was no port
            await self._server.closed.wait()

    async def stop(self, grace: float) -> None:
        if self._server is not None:
            self._server.close_port()
        try:
            if self._guest is not None:
                await self._guest.close()
        finally:
            if self._server is not None:
                await self._server.stop(grace)

    def _open(self) -> socket.socket:
        if self._guest is not None and self._guest.path is not None:
            return _bind_path(self._guest.path)
        opened = self._bind()
        self.port = opened.getsockname()[1]
        return opened

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        if self.port > PORT_MAX:
            raise ConfigError(f"{self.option}: the port of this process would be {self.port}, above {PORT_MAX}")
        try:
            opened = socket.create_server((self.host, self.port), family=family)
            # asyncio leaves it off for such a socket, and the second half of an answer would wait for some 40 ms.
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return opened
        except socket.gaierror as error:
            raise ConfigError(f"host: {self.host!r} is no address of this machine: {error.strerror}") from None
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise ConfigError(f"host: {self.host!r} is no address of this machine") from None
            where = f"{self.option}: port {self.port} of {self.host}"
            if error.errno == errno.EADDRINUSE:
                hint = "give each process a port of its own; 0 takes any that is free"
                raise ConfigError(f"{where} is taken already: {hint}") from None
            raise ConfigError(f"{where} cannot be listened on: {error.strerror}") from None

    # --- the application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = await self._reply(scope)
        headers = {
            "content-type": reply.content_type,
            "content-length": str(len(reply.body)),
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
        }
        if reply.status == 405:
            headers["allow"] = "GET, HEAD"
        if 400 <= reply.status < 500:  # it may have a body, which nobody reads
            headers["connection"] = "close"
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": raw})
        await send({"type": "http.response.body", "body": reply.body})

    async def _reply(self, scope: Scope) -> Reply:
        handler = self._handlers.get(scope["path"])
        if handler is None:
            return _refusal(404, f"there is nothing here but {', '.join(sorted(self._handlers))}")
        if scope["method"] not in ("GET", "HEAD"):
            return _refusal(405, "this is read by GET")
        if any(name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
               for name, value in scope["headers"]):  # fmt: skip
            return _refusal(413, "a request here has no body")
        try:
            return await handler()
        except Exception as error:
            self._log.error("the page %s could not be made", scope["path"], exc_info=error)
            return _refusal(500, "the page could not be made; the log of this node says why")


def _bind_path(path: str) -> socket.socket:
    """A Unix socket that only this user may open. One that was left behind by a process that has ended is replaced."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        if probe.connect_ex(path) == 0:
            raise ConfigError(f"server_socket: {path} is in use by another process")
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        if os.path.exists(path):
            os.unlink(path)
        opened.bind(path)
        opened.listen(100)
    except OSError as error:
        raise ConfigError(f"server_socket: {path} cannot be used: {error.strerror}") from None
    finally:
        os.umask(before)
    return opened


def _refusal(status: int, text: str) -> Reply:
    return Reply(status, TEXT, f"{text}\n".encode())
