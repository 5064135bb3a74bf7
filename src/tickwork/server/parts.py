"""How the control plane joins a node, a user's own web application, or stands alone."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from tickwork.client.client import Client
from tickwork.config import Config
from tickwork.errors import ConfigError
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.remote.asgi import Receive, Scope, Send
from tickwork.server.settings import Settings, check_reach, check_socket, settings_of

if TYPE_CHECKING:
    from tickwork.monitor.listener import App, Handler, Listeners, Reply
    from tickwork.monitor.metrics import Metrics
    from tickwork.server.grpc.server import GrpcServer
    from tickwork.server.plane import ControlPlane

MetricsPage = Callable[[], Awaitable["Reply | None"]]  # None while nothing is counted in this process

CONNECTIONS_MAX = 3000
EXTRA = 'the server needs {}, which is not installed: pip install "tickwork[server]"'
GRPC_EXTRA = 'server_grpc_port needs {}, which is not installed: pip install "tickwork[server,grpc]"'


def make_plane(settings: Settings, client: Client, open_space: Callable[[str], Client]) -> ControlPlane:
    try:
        from tickwork.server.plane import ControlPlane
    except ModuleNotFoundError as error:
        raise ConfigError(EXTRA.format(error.name)) from error
    return ControlPlane(settings, client, open_space)


def _app_of(plane: ControlPlane, pages: Mapping[str, Handler]) -> App:
    try:
        from tickwork.server.http.app import http_app
    except ModuleNotFoundError as error:
        raise ConfigError(EXTRA.format(error.name)) from error
    return http_app(plane, pages)


def _grpc_of(plane: ControlPlane) -> GrpcServer | None:
    if plane.settings.grpc_port is None:
        return None
    try:
        from tickwork.server.grpc.server import GrpcServer
    except ImportError as error:
        raise ConfigError(GRPC_EXTRA.format(error.name or error)) from error
    return GrpcServer(plane)


class _StoreMetrics:
    """The page of metrics. Where no node counts in this process, it has the numbers of the store."""

    def __init__(self, client: Client, of_node: MetricsPage | None) -> None:
        self._client = client
        self._of_node = of_node
        self._metrics: Metrics | None = None

    async def __call__(self) -> Reply:
        found = None if self._of_node is None else await self._of_node()
        return found or await self._of_store()

    async def _of_store(self) -> Reply:
        store = await self._client._access.open_store()
        if self._metrics is None:
            from tickwork.monitor.metrics import Metrics

            config = self._client.config
            self._metrics = Metrics(config, config.scheduler_id or "server", store.url, Bus(), lambda: None)
            self._metrics.read_from(store)
        return await self._metrics.reply()


def _pages(pages: Mapping[str, Handler], client: Client, metrics: MetricsPage | None) -> Mapping[str, Handler]:
    """Those that the listener has, and that of metrics in any case."""
    return {"/metrics": _StoreMetrics(client, metrics), **pages}


def serve(
    client: Client,
    config: Config,
    listeners: Listeners,
    open_space: Callable[[str], Client],
    metrics: MetricsPage | None = None,
    later: bool = False,
    optional: bool = False,
    grpc_at: Callable[[str], None] | None = None,
) -> ControlPlane:
    """Serve it on `server_port`, beside what else is served there. `metrics` is the page of the node. `later`: make it
    when it is first asked for. `optional`: do without if the port is taken. `grpc_at` is told where gRPC is served,
    once it is."""
    from tickwork.monitor.listener import Guest

    settings = settings_of(config)
    check_socket(settings)
    plane = make_plane(settings, client, open_space)
    grpc = _grpc_of(plane)

    async def make_app(pages: Mapping[str, Handler]) -> App:
        for warning in check_reach(settings, settings.is_loopback or await plane.tokens.any()):
            Log.of(config.logger, "server").warning("%s", warning)
        shown = _pages(pages, client, metrics)
        app = _Later(lambda: _app_of(plane, shown)) if later else _app_of(plane, shown)
        if grpc is not None:
            await grpc.start()
            if grpc_at is not None:
                grpc_at(grpc.address)
        return app

    async def close() -> None:
        if grpc is not None:
            await grpc.stop()
        await plane.close()

    tls = None if settings.tls is None else _tls(*settings.tls)
    listeners.at("server_port").hand_to(Guest(make_app, close, CONNECTIONS_MAX, tls, settings.socket, optional))
    return plane


def mounted(
    client: Client, config: Config, open_space: Callable[[str], Client], metrics: MetricsPage | None = None
) -> tuple[ControlPlane, App]:
    """An application for another one, and what is to be closed with the client."""
    plane = make_plane(settings_of(config), client, open_space)
    return plane, _app_of(plane, _pages({}, client, metrics))


class _Later:
    """An application that is made, in a thread, with the first request: a node whose dashboard nobody opens has neither
    the work of it nor its memory."""

    def __init__(self, make: Callable[[], App]) -> None:
        self._make = make
        self._making: asyncio.Future[App] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._making is None:
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
        app = await asyncio.shield(self._making)
        await app(scope, receive, send)


def _tls(cert: str, key: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"server_tls_cert and server_tls_key cannot be used: {error}") from None
    return context
