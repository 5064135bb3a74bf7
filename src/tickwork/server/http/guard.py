"""What stands before the API: which host names it answers to, from which pages it may be called, how much may be sent,
and the headers of every answer. An ASGI application around another one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from litestar.connection import ASGIConnection

from tickwork.errors import TickworkError
from tickwork.payload.depth import is_deep_json
from tickwork.remote.asgi import Message, Receive, Scope, Send, serve_lifespan
from tickwork.server.plane import ControlPlane, Knock
from tickwork.server.problems import TITLES, Problem, Refused, problem_of
from tickwork.server.sessions import cookie_name
from tickwork.server.settings import LOOPBACK_NAMES
from tickwork.texts import shown

if TYPE_CHECKING:
    from tickwork.server.http.pages import Pages

App = Callable[[Scope, Receive, Send], Awaitable[None]]

API = "/api/v1"
BODY_MAX = 1_048_576  # bytes
BATCH_MAX = 33_554_432  # of a batch of tasks
BODY_SECONDS = 30.0
STRANGER_SECONDS = 10.0  # for those who are not known: they have only a token to send
LARGE = 262_144  # bytes, beyond which a body is looked at in a thread: it takes up to a second
VALUES_MAX = 1_000_000  # of a JSON text; each takes far more memory than it has bytes
DEPTH_MAX = 68  # a payload of 64 levels, inside a task, inside a batch
HEADERS_MAX = 100
HEAD_MAX = 16_384  # bytes of an address and all headers
SAFE = ("GET", "HEAD", "OPTIONS")
CSRF = "x-tickwork-csrf"
FORWARDED = ("forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip")
DECIDING = (
    "host", "content-length", "transfer-encoding", "content-type", "authorization", "origin", "sec-fetch-site", CSRF,
)  # fmt: skip

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; manifest-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SECURITY = {
    "content-security-policy": CSP,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    def __init__(self, app: App, plane: ControlPlane, pages: Pages) -> None:
        self._app = app
        self._plane = plane
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":  # that of this server: the application behind is one for all of the process
            await serve_lifespan(receive, send, _nothing)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _unmounted(scope)
        reply = _Reply(send, is_https=scope.get("scheme") == "https")
        try:
            _check_size(scope)
            headers = read_headers(scope["headers"], self._plane.settings.user_header)
            self._check_host(headers)
            _check_path(scope["path"])
            self._check_origin(scope, headers)
            if self._is_https_by_proxy(scope, headers):
                scope["scheme"], reply.is_https = "https", True
            knock = self._knock(scope, headers)
            scope["state"] = {**scope.get("state", {}), "plane": self._plane, "pages": self._pages, "knock": knock}
            if scope["path"].startswith(f"{API}/"):
                await self._let_in(scope, headers)
            elif scope["method"] == "HEAD":  # probes ask so; a page is made as for GET, and its body is left out
                scope["method"], reply.is_head = "GET", True
            if scope["method"] not in SAFE:
                receive = await _bounded_body(scope, headers, receive)
        except TickworkError as error:  # the store may be out of reach when somebody is looked up
            await reply.refuse(problem_of(error))
            return
        except Exception as error:
            self._plane.log.error("a request of %s %s failed", scope["method"], shown(scope["path"]), exc_info=error)
            await reply.refuse(INTERNAL)
            return
        await self._app(scope, receive, reply)

    def _check_host(self, headers: dict[str, str]) -> None:
        """Without this, a page that makes its own name point here could call it as if it were ours."""
        host = headers.get("host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() and not host.endswith("]") else host
        allowed = self._plane.settings.hosts
        if name.lower() not in (*LOOPBACK_NAMES, *(each.lower() for each in allowed)) and "*" not in allowed:
            raise Refused(
                421, "wrong_host", f"this server does not answer to the name {shown(name)}; server_hosts names others"
            )

    def _check_origin(self, scope: Scope, headers: dict[str, str]) -> None:
        """A browser says from which page a request comes; only our own may change anything."""
        if scope["method"] in SAFE:
            return
        origin, host = headers.get("origin"), headers.get("host", "")
        site = headers.get("sec-fetch-site", "same-origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise Refused(403, "wrong_origin", "this request comes from a page of another origin")
        if site not in ("same-origin", "none"):
            raise Refused(403, "wrong_origin", "this request comes from a page of another site")

    def _address(self, scope: Scope) -> str:
        client = scope.get("client")
        return str(client[0]) if client else "127.0.0.1" if self._plane.settings.socket else ""

    def _is_https_by_proxy(self, scope: Scope, headers: dict[str, str]) -> bool:
        """Whether a browser speaks TLS to a listed proxy, which then says so."""
        return headers.get("x-forwarded-proto", "").lower() == "https" and self._plane.is_proxy(self._address(scope))

    def _knock(self, scope: Scope, headers: dict[str, str]) -> Knock:
        address = self._address(scope)
        if is_forwarded(headers) and not self._plane.is_proxy(address):
            address = f"via {address}"  # whoever it is, it is not somebody at this machine
        kind, _, token = headers.get("authorization", "").partition(" ")
        cookie = cookie_name(scope.get("scheme") == "https", scope["tickwork_root"])
        return Knock(
            address=address,
            bearer=token.strip() if kind.lower() == "bearer" else None,
            cookie=_cookie(headers.get("cookie", ""), cookie),
            headers=headers,
        )

    async def _let_in(self, scope: Scope, headers: dict[str, str]) -> None:
        """Who calls is known before a byte of the body is read."""
        if scope["path"] in OPEN:
            return
        state = scope["state"]
        caller = await self._plane.let_in(state["knock"])
        if caller.via in ("session", "proxy") and scope["method"] not in SAFE and CSRF not in headers:
            raise Refused(403, "no_csrf", f"a change by a session needs the header {CSRF}")
        state["caller"] = caller


def plane_of(connection: ASGIConnection[Any, Any, Any, Any]) -> ControlPlane:
    """The control plane that a request is for."""
    plane: ControlPlane = connection.state.plane
    return plane


OPEN = (f"{API}/session",)  # it decides itself
INTERNAL = Problem(500, "internal", TITLES[500], "this is a mistake in the server; its log says more")


async def _nothing() -> None:
    """What ends with the server that serves an application: the scheduler itself ends with the program."""


def _unmounted(scope: Scope) -> Scope:
    """The path below where the application is mounted."""
    root = scope.get("root_path", "").rstrip("/")
    path = scope["path"]
    if root and path.startswith(f"{root}/"):
        path = path[len(root) :]
    return {**scope, "path": path or "/", "root_path": "", "raw_path": path.encode(), "tickwork_root": root}


def _check_size(scope: Scope) -> None:
    """A server may take more than it says, if it comes in one piece."""
    size = len(scope["path"]) + len(scope.get("query_string", b"")) + sum(len(a) + len(b) for a, b in scope["headers"])
    if size > HEAD_MAX:
        raise Refused(431, "too_large_head", f"the address and the headers have at most {HEAD_MAX:,} bytes together")


def _check_path(path: str) -> None:
    """Routing takes several slashes for one; what is decided here by the path must be decided of the same path."""
    if "//" in path:
        raise Refused(404, "not_found", "there is nothing at this address")


def read_headers(raw: Iterable[tuple[bytes, bytes]], user_header: str | None) -> dict[str, str]:
    """By names in lower case. Those that decide something must come once; of others several are one list."""
    deciding = {*DECIDING, (user_header or "host").lower()}
    found: dict[str, str] = {}
    for count, (name, value) in enumerate(raw):
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        if count >= HEADERS_MAX:
            raise Refused(431, "too_many_headers", f"a request has at most {HEADERS_MAX} headers")
        if key in found and key in deciding:
            raise Refused(400, "repeated_header", f"the header {shown(key)} comes twice")
        comma = "; " if key == "cookie" else ", "
        found[key] = f"{found[key]}{comma}{text}" if key in found else text
    if "transfer-encoding" in found and "content-length" in found:
        raise Refused(400, "two_lengths", "a request says its length once, not by two headers")
    return found


def is_forwarded(headers: Iterable[str]) -> bool:
    """Whether one of these names says that a request came through a proxy."""
    return any(name in FORWARDED or name.startswith("x-forwarded-") for name in headers)


def _cookie(header: str, wanted: str) -> str | None:
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted:
            return value
    return None


async def _bounded_body(scope: Scope, headers: dict[str, str], receive: Receive) -> Receive:
    """Read it whole within bounds, and look at its form before anything is decoded."""
    most = BATCH_MAX if scope["path"] == f"{API}/tasks/batch" else BODY_MAX
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 15 or int(length) > most:
        raise Refused(413, "too_large", f"a request has at most {most:,} bytes here")
    body = await _read(receive, most, BODY_SECONDS if "caller" in scope["state"] else STRANGER_SECONDS)
    if body:
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "not_json", "what is sent must be JSON, with the header Content-Type: application/json")
        if len(body) > LARGE:
            await asyncio.to_thread(check_json, body)
        else:
            check_json(body)

    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _read(receive: Receive, most: int, seconds: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refused(400, "cut_short", "the request was cut short")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise Refused(413, "too_large", f"a request has at most {most:,} bytes here")
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refused(408, "too_slow", f"a request must arrive within {seconds:g} s") from None


def check_json(body: bytes) -> None:
    if is_deep_json(body, DEPTH_MAX):
        raise Refused(400, "too_deep", f"it is nested more than {DEPTH_MAX} levels deep")
    if _has_many_values(body):
        raise Refused(400, "too_many_values", f"a request has at most {VALUES_MAX:,} values; send several")
    try:
        json.loads(body.decode(), object_pairs_hook=_refuse_twins)  # of bytes it would take surrogates, and UTF-16
    except _Twin as error:
        raise Refused(400, "repeated_name", f"an object has the name {shown(error.args[0])} twice") from None
    except (ValueError, RecursionError):
        raise Refused(400, "not_json", "what was sent is no JSON text in UTF-8") from None


def _has_many_values(body: bytes) -> bool:
    """By the marks that stand before a value, counted on bytes, as decoding is what costs time and memory."""
    if len(body) <= VALUES_MAX or _marks(body) <= VALUES_MAX:
        return False
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    body = body.translate(None, _NEITHER_MARK_NOR_QUOTE).replace(b'""', b"")
    return sum(_marks(part) for part in body.split(b'"')[::2]) > VALUES_MAX  # the others are inside of texts


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


_NEITHER_MARK_NOR_QUOTE = bytes(byte for byte in range(256) if byte not in b',[{"')


class _Twin(Exception):
    pass


def _refuse_twins(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1:
        names = {name for name, _ in pairs}
        if len(names) != len(pairs):
            seen: set[str] = set()
            for name, _ in pairs:
                if name in seen:
                    raise _Twin(name)
                seen.add(name)


class _Reply:
    """Adds the headers of every answer."""

    def __init__(self, send: Send, is_https: bool) -> None:
        self._send = send
        self.is_https = is_https
        self.is_head = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            names = {name.lower() for name, _ in given}
            more = {**SECURITY, "cache-control": "no-store"}
            if self.is_https:
                more["strict-transport-security"] = "max-age=31536000"
            given += [(name.encode(), value.encode()) for name, value in more.items() if name.encode() not in names]
            message = {**message, "headers": given}
        elif self.is_head:
            message = {**message, "body": b""}
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        body = msgspec.json.encode(problem)
        headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
        headers.append((b"connection", b"close"))  # there may be a body, which nobody reads
        if problem.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if problem.retry_after is not None:
            headers.append((b"retry-after", str(max(round(problem.retry_after), 1)).encode()))
        await self({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self({"type": "http.response.body", "body": body})
