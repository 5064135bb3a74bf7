"""Store URLs as they may be shown: without their passwords."""

from __future__ import annotations

import re
from urllib.parse import unquote

NAME_FILES = ("password_file", "sentinel_password_file", "ssl_keyfile")  # where a secret is, which is none itself

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_QUERY = re.compile("[?&]")
_SECRET = re.compile("pass|pwd|secret|token|key|auth", re.IGNORECASE)


def mask_url(url: str) -> str:
    """The URL without its passwords; what cannot be told from one is hidden too."""
    scheme = found[0] if (found := _SCHEME.match(url)) else ""
    if scheme in ("sqlite://", "memory://"):
        return url
    rest = url.removeprefix(scheme)
    userinfo, at, host = rest.rpartition("@")  # the last one: a password may hold a bare @ or /
    if at:
        user, colon, _ = userinfo.partition(":")
        # Alone it may be a password in the wrong place, unless the password is known to be elsewhere.
        alone = userinfo if _names_file(host) else "***"
        rest = f"{user}:***@{host}" if colon else f"{alone}@{host}"
    if (query := _QUERY.search(rest)) is None:
        return scheme + rest
    return scheme + rest[: query.end()] + "&".join(map(_mask_parameter, rest[query.end() :].split("&")))


def _names_file(host_and_query: str) -> bool:
    query = host_and_query.partition("?")[2]
    return any(part.startswith("password_file=") for part in query.split("&"))


def _mask_parameter(text: str) -> str:
    name, equals, _ = text.partition("=")
    secret = equals and unquote(name) not in NAME_FILES and _SECRET.search(unquote(name))
    return f"{name}=***" if secret else text


def has_password(url: str) -> bool:
    return mask_url(url) != url
