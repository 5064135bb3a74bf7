"""Listens for gRPC calls, beside the HTTP server and for the same control plane.

With certificates both speak TLS and nothing else, and both are on the same host. All bounds are here: what core counts
(the size of messages and metadata, streams of a connection, pings), and how many calls there are at a time.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from pathlib import Path

import grpc
import grpc.aio

from tickwork.errors import ConfigError
from tickwork.server.grpc.service import Service
from tickwork.server.grpc.shapes import SERVICE, read_protocol
from tickwork.server.http.guard import BATCH_MAX
from tickwork.server.plane import ControlPlane

CALLS_MAX = 3000  # at a time, of all connections; streams among them
STREAMS_OF_CONNECTION = 100  # calls at a time
METADATA_MAX = 16_384  # bytes
PING_MIN = 10_000  # milliseconds between two pings of a client, while it has calls
PING_STRIKES = 2  # that come sooner; then it is disconnected
ALIVE_EVERY = 60_000  # milliseconds after which a silent client is asked whether it is there
ALIVE_WITHIN = 20_000
IDLE_MAX = 600_000  # milliseconds that a connection may be open without calls
HANDSHAKE_MAX = 10_000
ROOM = 65_536  # bytes that the frame of a batch may have beside its tasks
LAST_REPLIES = 1.0  # seconds that a stop waits for answers that are being made
LAST_CHANGES = 5.0

OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", BATCH_MAX + ROOM),
    ("grpc.max_concurrent_streams", STREAMS_OF_CONNECTION),
    ("grpc.max_metadata_size", METADATA_MAX),
    ("grpc.absolute_max_metadata_size", METADATA_MAX),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", PING_MIN),
    ("grpc.http2.max_ping_strikes", PING_STRIKES),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.keepalive_time_ms", ALIVE_EVERY),
    ("grpc.keepalive_timeout_ms", ALIVE_WITHIN),
    ("grpc.max_connection_idle_ms", IDLE_MAX),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MAX),
    ("grpc.compression_enabled_algorithms_bitset", 1),  # none: what is decompressed has no bound
    ("grpc.so_reuseport", 0),  # a second process on the same port is an error, not half of the calls
]


class GrpcServer:
    def __init__(self, plane: ControlPlane) -> None:
        """Raises `ConfigError` for options that do not go together."""
        settings = plane.settings
        if settings.socket is not None:
            raise ConfigError(
                "server_grpc_port and server_socket do not go together: a Unix socket is for one user alone, a port "
                "would be for all of this machine. Leave one of them out"
            )
        self._plane = plane
        self._server: grpc.aio.Server | None = None
        self._service: Service | None = None
        self.port = settings.grpc_port or 0  # the one that was taken, once it is started

    @property
    def address(self) -> str:
        """As clients name it."""
        return _address(self._plane.settings.host, self.port)

    async def start(self) -> None:
        """Raises `ConfigError` if the port cannot be had or the certificate cannot be used."""
        await self.stop()
        settings = self._plane.settings
        _probe(settings.host, self.port)
        service = Service(self._plane, await asyncio.to_thread(read_protocol))  # which takes a moment
        server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=CALLS_MAX)
        server.add_generic_rpc_handlers((service,))
        try:
            if settings.tls is None:
                self.port = server.add_insecure_port(self.address)
            else:
                self.port = server.add_secure_port(self.address, _credentials(*settings.tls))
        except RuntimeError as error:
            raise ConfigError(f"server_grpc_port: {self.address} cannot be listened on: {error}") from None
        await server.start()
        self._server, self._service = server, service
        scheme = "grpc" if settings.tls is None else "grpcs"
        self._plane.log.line(logging.INFO, "Listening", url=f"{scheme}://{self.address}", service=SERVICE)

    async def stop(self) -> None:
        """Streams end, answers that are being made are waited for a moment, changes to their end."""
        server, service = self._server, self._service
        self._server = self._service = None
        if server is None or service is None:
            return
        stopping = asyncio.ensure_future(server.stop(LAST_REPLIES))  # from now on there are no new calls
        await service.stop(LAST_CHANGES)
        await stopping


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _probe(host: str, port: int) -> None:
    """Core says only that it could not bind; the system says why."""
    where = f"server_grpc_port: port {port} of {host}"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except socket.gaierror as error:
        raise ConfigError(f"host: {host!r} is no address of this machine: {error.strerror}") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(f"{where} is taken already; 0 takes any that is free") from None
        raise ConfigError(f"{where} cannot be listened on: {error.strerror}") from None


def _credentials(cert: str, key: str) -> grpc.ServerCredentials:
    try:
        return grpc.ssl_server_credentials([(Path(key).read_bytes(), Path(cert).read_bytes())])
    except (OSError, ValueError) as error:
        raise ConfigError(f"server_tls_cert and server_tls_key cannot be used: {error}") from None
