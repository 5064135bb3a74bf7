"""The services that the executor `grpc` calls: `grpc_targets` of a configuration."""

from __future__ import annotations

from msgspec import Struct

from tickwork.backoff import Seconds


class SecretText(Struct, frozen=True):
    """A text that ends in a secret, which is in a file: `file:/path`."""

    secret: str
    prefix: str = ""


class GrpcTls(Struct, frozen=True):
    """PEM files, and the name that the certificate of the server has to be for, if it is not that of the host."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None


class GrpcTarget(Struct, frozen=True, kw_only=True):
    address: str  # https://host:port, or http:// without TLS
    tls: GrpcTls = GrpcTls()
    metadata: dict[str, str | SecretText] = {}
    timeout: Seconds = 60.0  # of one call; a task that has less time left has that
    request_limit: int = 1_048_576  # bytes
    response_limit: int = 1_048_576
    types: tuple[str, ...] = ()  # task types that run there without a handler here
