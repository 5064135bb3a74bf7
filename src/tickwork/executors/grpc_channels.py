"""Connections to the targets of the gRPC executor: only to addresses that were checked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from tickwork.config.grpc import GrpcTarget
from tickwork.executors.grpc_gen.executor_pb2_grpc import ExecutorStub
from tickwork.outbound.addresses import Address, Allowed
from tickwork.outbound.tls import Tls, context_of

if TYPE_CHECKING:
    from tickwork.executors.grpc_gen.executor_pb2_grpc import ExecutorAsyncStub

REFRESH = 300.0  # seconds after which a name is looked up again
REFRESH_FAILED = 1.0  # the same after a call that found nobody there
METADATA_MAX = 16_384  # bytes
OPTIONS: list[tuple[str, int]] = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.enable_retries", 0),  # an attempt is one call
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5_000),  # a service that is back is found soon
    ("grpc.use_local_subchannel_pool", 1),  # or targets of other credentials share connections
    ("grpc.compression_enabled_algorithms_bitset", 1),  # none: what is decompressed has no bound
    ("grpc.max_metadata_size", METADATA_MAX),
    ("grpc.absolute_max_metadata_size", METADATA_MAX),
]


class Connection:
    """A channel to the addresses that a name had, as long as calls use it."""

    def __init__(self, channel: grpc.aio.Channel, addresses: list[str]) -> None:
        self.channel = channel
        self.stub: ExecutorAsyncStub = ExecutorStub(channel)
        self.addresses = addresses
        self.calls = 0
        self.retired = False

    async def close_if_idle(self) -> None:
        if self.retired and not self.calls:
            await self.channel.close()


class Line:
    """The way to one target. Made and used on one event loop."""

    def __init__(self, target: GrpcTarget, address: Address, allowed: Allowed) -> None:
        """Raises `ConfigError` if the files of its certificates cannot be used."""
        self._target = target
        self._address = address
        self._allowed = allowed
        self._looking_up = asyncio.Lock()
        self._look_again_at = 0.0
        self._connection: Connection | None = None
        self.has_cancel = True  # until the service says that it does not implement it
        self._check_files()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Raises `ConfigError` if the host has an address that is not allowed, `OSError` if it has none."""
        connection = await self._current()
        connection.calls += 1
        try:
            yield connection
        finally:
            connection.calls -= 1
            await connection.close_if_idle()

    def not_reached(self) -> None:
        """Look the name up again for the next call: the service may have moved."""
        self._look_again_at = min(self._look_again_at, time.monotonic() + REFRESH_FAILED)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.channel.close()

    async def _current(self) -> Connection:
        async with self._looking_up:
            connection = self._connection
            if connection is not None and time.monotonic() < self._look_again_at:
                return connection
            addresses = await self._allowed.resolve(self._address.host, self._address.port)
            self._look_again_at = time.monotonic() + REFRESH
            if connection is None or connection.addresses != addresses:
                self._connection = Connection(self._open(addresses), addresses)
                if connection is not None:
                    connection.retired = True
                    await connection.close_if_idle()
            assert self._connection is not None
            return self._connection

    def _open(self, addresses: list[str]) -> grpc.aio.Channel:
        target, address = self._target, self._address
        options: list[tuple[str, int | str]] = [
            *OPTIONS,
            ("grpc.max_send_message_length", target.request_limit),
            ("grpc.max_receive_message_length", target.response_limit),
            ("grpc.default_authority", address.origin.partition("://")[2]),
        ]
        where = goal_of(addresses, address.port)
        if address.scheme == "http":
            return grpc.aio.insecure_channel(where, options)
        if target.tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", target.tls.server_name))
        return grpc.aio.secure_channel(where, self._credentials(), options)

    def _credentials(self) -> grpc.ChannelCredentials:
        """From the files as they are now, as certificates are replaced from time to time."""
        self._check_files()
        tls = self._target.tls
        ca, cert, key = (Path(path).read_bytes() if path else None for path in (tls.ca, tls.cert, tls.key or tls.cert))
        return grpc.ssl_channel_credentials(ca, key, cert)

    def _check_files(self) -> None:
        tls = self._target.tls
        if self._address.scheme == "https":
            context_of(Tls(tls.ca, tls.cert, tls.key))


def goal_of(addresses: list[str], port: int) -> str:
    """Addresses as gRPC takes them, so that it looks nothing up itself. It takes those of one family."""
    family = "ipv6" if ":" in addresses[0] else "ipv4"
    alike = [address for address in addresses if (":" in address) is (family == "ipv6")]
    return f"{family}:" + ",".join(
        f"[{address}]:{port}" if family == "ipv6" else f"{address}:{port}" for address in alike
    )
