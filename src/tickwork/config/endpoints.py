"""The services that the executor `http` calls: `endpoints` of a configuration."""

from __future__ import annotations

from msgspec import Struct

from tickwork.backoff import Seconds
from tickwork.config.grpc import SecretText


class Tls(Struct, frozen=True):
    """Paths of PEM files. `ca` has the authorities to trust instead of the system's; `cert` and `key` are what this
    side shows, `key` being left out when it stands in the same file."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None


class Endpoint(Struct, frozen=True, kw_only=True):
    url: str  # may have placeholders behind the host
    method: str = "POST"
    headers: dict[str, str | SecretText] = {}
    body: str | None = None  # "payload" or "none"; None is what the method usually has
    timeout: Seconds = 60.0  # of one call; a task that has less time left has that
    success: tuple[int, ...] = ()  # all from 200 to 299
    retry_on: tuple[int, ...] = ()  # beside those from 500 on
    result: str = "json"  # "json", "json.path.in.it", "text" or "none"
    idempotency_header: str = "Idempotency-Key"  # "" is none
    request_limit: int = 1_048_576  # bytes of a body
    response_limit: int = 1_048_576
    tls: Tls = Tls()
    types: tuple[str, ...] = ()  # task types that run there without a handler here
