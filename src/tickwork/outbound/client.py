"""One HTTP client for all that leaves: bounded in time and size, and connected only to addresses that were checked.

It keeps no cookies, reads no netrc and no proxies from the environment, follows no redirect, and asks for answers that
are not compressed. aiohttp does the work; it comes with `pip install "tickwork[http]"`.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tickwork.errors import ConfigError, ExecutorError
from tickwork.forks import keep, tell_of_forks
from tickwork.outbound.addresses import Address, Allowed
from tickwork.outbound.tls import Tls, context_of
from tickwork.texts import shown
from tickwork.timeouts import TimeLimit, of_late

if TYPE_CHECKING:
    import aiohttp

CONNECT_TIMEOUT = 10.0  # seconds to look a name up, connect and shake hands
ANSWER_MAX = 1_048_576  # bytes of a body
HEADER_MAX = 8_190  # bytes of one line of the header
HEADERS_MAX = 100  # lines
# Shorter than the five seconds after which common servers close, so that a request rarely meets a closed connection.
KEEP_ALIVE = 4.0
USER_AGENT = "tickwork"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NEVER_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
# Those that say where a message ends, to whom it goes, or what becomes of the connection.
RESERVED_HEADERS = frozenset(
    ("accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization")
    + ("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)


class CallFailed(ExecutorError):
    """There is no answer: no connection, a reset, a wrong certificate, too late. Another try may help."""


class AnswerRefused(ExecutorError):
    """There is an answer which is not taken: too large, compressed, or no HTTP."""


class Answer(Struct, frozen=True):
    """What the other side has answered. All of it is text of a stranger."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


def check_header(name: str, value: str) -> None:
    """Raises `ConfigError` if a header cannot be sent. The value is not repeated, as it may be a secret."""
    if not _TOKEN.fullmatch(name):
        raise ConfigError(f"{shown(name)} is not the name of a header")
    if name.lower() in RESERVED_HEADERS:
        raise ConfigError(f"the header {name} cannot be set; it follows from the request")
    if _NEVER_IN_VALUE.search(value):
        raise ConfigError(f"the header {name} has a line break or another character that cannot be sent in its value")


class Outbound:
    """A client with connections of its own.

    Make one for each set of credentials and TLS settings, so that no connection serves two of them. It belongs to the
    event loop on which it is used first; `close` it there.
    """

    def __init__(self, allowed: Allowed, *, tls: Tls | None = None, connect_timeout: float = CONNECT_TIMEOUT) -> None:
        """Raises `ConfigError` if aiohttp is missing, or if the TLS files cannot be used."""
        _aiohttp()
        self._allowed = allowed
        self._context = context_of(tls)
        self._connect_timeout = connect_timeout
        self._session: aiohttp.ClientSession | None = None
        tell_of_forks(self)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float,
        limit: int = ANSWER_MAX,
    ) -> Answer:
        """Send one request and read the whole answer, of `limit` bytes at most, within `timeout` seconds.

        Raises `ConfigError` if the address is not allowed or a header cannot be sent, `CallFailed` if there is no
        answer, and `AnswerRefused` if there is one that is not taken. When it is cancelled, the connection is closed.
        """
        address = self._allowed.check(url)
        for name, value in (headers or {}).items():
            check_header(name, value)
        try:
            with TimeLimit(timeout) as time_limit:
                return await self._exchange(method, address, dict(headers or {}), body, limit)
        except TimeoutError:
            late = of_late(time_limit.late)
            raise CallFailed(f"{address.origin} has not answered within {timeout:g} seconds{late}") from None

    async def _exchange(
        self, method: str, address: Address, headers: dict[str, str], body: bytes | None, limit: int
    ) -> Answer:
        aiohttp = _aiohttp()
        try:
            response = await self._opened().request(
                method, _checked_url(address), headers={"Accept-Encoding": "identity"} | headers, data=body,
                allow_redirects=False, skip_auto_headers=("Content-Type",),
            )  # fmt: skip
            try:
                return await _read(response, address, limit)
            except BaseException:
                response.close()  # what is still to come is not read
                raise
        except aiohttp.ConnectionTimeoutError:
            text = f"cannot connect to {address.origin} within {self._connect_timeout:g} seconds"
            raise CallFailed(text) from None
        except aiohttp.ClientResponseError as error:
            raise AnswerRefused(f"{address.origin} has not answered in HTTP: {shown(error.message)}") from None
        except (aiohttp.ClientPayloadError, aiohttp.http_exceptions.HttpProcessingError):
            raise CallFailed(f"{address.origin} has broken off its answer") from None
        except (aiohttp.ClientError, OSError) as error:
            raise CallFailed(f"cannot call {address.origin}: {_reason(error)}") from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            aiohttp = _aiohttp()
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    resolver=_resolver(self._allowed), ssl=self._context, limit=0, keepalive_timeout=KEEP_ALIVE
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": USER_AGENT},
                timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_timeout, ceil_threshold=1e9),
                trust_env=False,
                auto_decompress=False,
                max_line_size=HEADER_MAX,
                max_field_size=HEADER_MAX,
                max_headers=HEADERS_MAX,
            )
        return self._session

    def after_fork(self) -> None:
        """The connections are the parent's, who still uses them; closing them here would tell its event loop."""
        if self._session is not None:
            keep(self._session)
            self._session = None

    async def close(self) -> None:
        """Close the connections. It may be used again afterwards."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


async def _read(response: aiohttp.ClientResponse, address: Address, limit: int) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", ""):
        raise AnswerRefused(f"{address.origin} has answered in the coding {shown(coding)}, which was not asked for")
    body = bytearray()
    # The length that answers a HEAD is that of a body which does not follow.
    if response.method == "HEAD" or (response.content_length or 0) <= limit:
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > limit:
                break
        else:
            return Answer(response.status, headers, bytes(body))
    raise AnswerRefused(f"{address.origin} has answered with more than {limit} bytes")


def _checked_url(address: Address) -> Any:
    """The URL for aiohttp. It must read the same host out of it as was checked."""
    from yarl import URL

    url = URL(address.origin + address.path, encoded=True)
    if (url.scheme, url.raw_host, url.port) != (address.scheme, address.host, address.port):
        raise ConfigError(f"address {address.origin} cannot be used: it can be read in two ways")
    return url


def _reason(error: Exception) -> str:
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if wrong := getattr(inner, "verify_message", ""):
        return f"its certificate is not accepted: {shown(wrong)}"
    return shown(str(inner) or type(inner).__name__)


def _resolver(allowed: Allowed) -> Any:
    from aiohttp.abc import AbstractResolver, ResolveResult

    class CheckedResolver(AbstractResolver):
        """Gives only addresses that were checked; aiohttp connects to these and looks nothing up itself."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            return [
                ResolveResult(
                    hostname=host, host=ip, port=port, proto=0, flags=socket.AI_NUMERICHOST,
                    family=socket.AF_INET6 if ":" in ip else socket.AF_INET,
                )
                for ip in await allowed.resolve(host, port)
            ]  # fmt: skip

        async def close(self) -> None:
            pass

    return CheckedResolver()


def _aiohttp() -> Any:
    try:
        import aiohttp
    except ImportError:
        raise ConfigError('HTTP calls need aiohttp, which comes with: pip install "tickwork[http]"') from None
    return aiohttp
