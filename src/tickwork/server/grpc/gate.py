"""What stands before the gRPC API: what may come along with a call, and who calls.

HTTP goes by the name of the host that a request is for, so that a page whose name was made to point here cannot call
the API through the browser of somebody who may. In gRPC that name is `:authority`, which grpc.aio keeps to itself: it
is neither in the metadata nor in the context (grpcio 1.85; grpc/grpc#38906; a test looks again with each release). What
is guarded against is a browser, so a call that shows the headers of one is refused. That is the second bar: a browser
cannot speak HTTP/2 without TLS, with TLS the certificate is for another name than that of the page, and a call needs
the content type `application/grpc`, for which a browser asks first, and nobody answers.

Cookies are not taken here, so the only credentials are tokens and what a proxy says that is listed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import unquote

from tickwork.server.http.guard import HEADERS_MAX, is_forwarded
from tickwork.server.plane import Knock
from tickwork.server.problems import Refused
from tickwork.server.settings import Settings
from tickwork.texts import shown

NAMESPACE = "tickwork-namespace"
AUTHORIZATION = "authorization"
NAMESPACE_MAX = 64
_OF_BROWSERS = ("origin", "referer", "cookie", "x-grpc-web")
_BEGIN_OF_BROWSERS = ("sec-", "access-control-")


def read_metadata(metadata: Iterable[tuple[str, str | bytes]], settings: Settings) -> dict[str, str]:
    """By names. Those that decide something must come once; of others several are one list."""
    deciding = {AUTHORIZATION, NAMESPACE}
    if settings.user_header is not None:
        deciding.add(settings.user_header.lower())
    found: dict[str, str] = {}
    for count, (name, value) in enumerate(metadata):
        if count >= HEADERS_MAX:
            raise Refused(431, "too_many_headers", f"a call has at most {HEADERS_MAX} entries of metadata")
        if name in _OF_BROWSERS or name.startswith(_BEGIN_OF_BROWSERS):
            raise Refused(403, "wrong_origin", "this call comes from a page in a browser, which may not call gRPC here")
        if name in found and name in deciding:
            raise Refused(400, "repeated_header", f"the metadata {shown(name)} comes twice")
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def namespace_of(metadata: dict[str, str]) -> str | None:
    namespace = metadata.get(NAMESPACE)
    if namespace is not None and len(namespace) > NAMESPACE_MAX:
        raise Refused(400, "bad_request", f"{NAMESPACE}: a name has at most {NAMESPACE_MAX} characters")
    return namespace


def knock_of(peer: str, metadata: dict[str, str], is_proxy: bool) -> Knock:
    address = address_of(peer)
    if is_forwarded(metadata) and not is_proxy:
        address = f"via {address}"  # whoever it is, it is not somebody at this machine
    kind, _, token = metadata.get(AUTHORIZATION, "").partition(" ")
    return Knock(address=address, bearer=token.strip() if kind.lower() == "bearer" else None, headers=metadata)


def address_of(peer: str) -> str:
    """The address of the other end, from how gRPC writes it: `ipv4:127.0.0.1:1234` or `ipv6:%5B::1%5D:1234`."""
    family, _, rest = unquote(peer).partition(":")
    if family not in ("ipv4", "ipv6"):
        return ""
    text = rest.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
