"""Which addresses may be called: the list of the administrator, and the lookup that gives only addresses it allows.

A URL is checked twice. `Allowed.check` compares it with the list and needs no network, so that a wrong address is
refused where it is configured or registered. `Allowed.resolve` looks the name up, once, and checks every address that
comes back; the caller connects to what it returns and looks nothing up again.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct

from tickwork.errors import ConfigError
from tickwork.outbound.networks import IPAddress, IPNetwork, kind_of, network_of
from tickwork.texts import shown

Lookup = Callable[[str, int], Awaitable[Iterable[str]]]

URL_MAX = 8192  # characters
DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?([/?][!-~]*)?")
_ENTRY = re.compile(r"(https?)://(\[[0-9A-Fa-f:./]+\]|[A-Za-z0-9._*-]+(?:/[0-9]{1,3})?)(?::([0-9]{1,5}))?/?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# Programs read such names as IPv4 addresses, in decimal, octal or hexadecimal, whole or in parts.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NEVER_IN_URL = frozenset('\\"<>^`{|}#')
_EXAMPLES = "https://api.example.com, http://10.0.0.7:8000, https://*.example.com or http://10.1.0.0/16:8000"


class Address(Struct, frozen=True):
    """Where a URL leads. `host` is a name in lower case, or an IP address in its usual form, without brackets."""

    scheme: str
    host: str
    port: int
    path: str = "/"  # with the query

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class _Entry(Struct, frozen=True):
    """One entry of the list: a name, the end of a name (`.example.com`), or a network (of one address perhaps)."""

    scheme: str
    port: int
    name: str = ""
    suffix: str = ""
    network: IPNetwork | None = None

    def covers(self, host: str, ip: IPAddress | None) -> bool:
        if ip is not None:
            return self.network is not None and ip.version == self.network.version and ip in self.network
        return host == self.name or bool(self.suffix and host.endswith(self.suffix))


async def system_lookup(host: str, port: int) -> list[str]:
    """The addresses of a name, as the operating system finds them. Raises `OSError` if it finds none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


class Allowed:
    """The addresses that nodes may call. The list is the administrator's; an empty one allows nothing."""

    def __init__(self, patterns: Iterable[str] = (), *, lookup: Lookup = system_lookup) -> None:
        """Raises `ConfigError` for an entry that cannot be read."""
        self.patterns = tuple(patterns)
        self._entries = tuple(map(_read_entry, self.patterns))
        self._lookup = lookup

    def check(self, url: str) -> Address:
        """Where the URL leads, if the list allows that. Raises `ConfigError` otherwise. Looks nothing up."""
        address = parse(url)
        ip = _as_ip(address.host)
        at = [entry for entry in self._entries if (entry.scheme, entry.port) == (address.scheme, address.port)]
        if not any(entry.covers(address.host, ip) for entry in at):
            raise ConfigError(f"address {address.origin} is not allowed: allow_addresses {self._told()}")
        return address

    async def resolve(self, host: str, port: int) -> list[str]:
        """The IP addresses to connect to. A name is looked up once, and all of its addresses must be allowed.

        Raises `ConfigError` if one is not, and `OSError` if the name cannot be looked up now.
        """
        if (ip := _as_ip(host)) is not None:
            if not self._lists(ip, port):
                raise ConfigError(f"address {host}, port {port}, is not allowed: allow_addresses {self._told()}")
            return [host]
        if not any(entry.port == port and entry.covers(host, None) for entry in self._entries):
            raise ConfigError(f"host {shown(host)}, port {port}, is not allowed: allow_addresses {self._told()}")
        found = list(dict.fromkeys(text.partition("%")[0] for text in await self._lookup(host, port)))
        if not found:
            raise OSError(f"host {host} has no address")
        for text in found:
            self._check_found(host, ip_address(text), port)
        return found

    def _check_found(self, host: str, ip: IPAddress, port: int) -> None:
        kind = kind_of(ip)
        if not kind or self._lists(ip, port) or (host == "localhost" and kind == "loopback"):
            return
        place = f"[{ip}]" if ip.version == 6 else str(ip)
        raise ConfigError(
            f"host {host} is not called: it has the address {ip} ({kind}); if that is meant, add an entry for the "
            f"address or its network to allow_addresses, such as http://{place}:{port}"
        )

    def _lists(self, ip: IPAddress, port: int) -> bool:
        return any(entry.port == port and entry.covers("", ip) for entry in self._entries)

    def _told(self) -> str:
        return f"lists {', '.join(map(shown, self.patterns[:10]))}" if self.patterns else "is empty"


def parse(url: str) -> Address:
    """The parts of a URL that can be read in one way only. Raises `ConfigError` for all others."""
    if not isinstance(url, str) or len(url) > URL_MAX:
        raise ConfigError(f"a URL is a text of at most {URL_MAX} characters, not {shown(url)}")
    found = _URL.fullmatch(url)
    if found is None or _NEVER_IN_URL & set(url):
        raise ConfigError(f"URL {shown(_without_login(url))} cannot be used: {_what_is_wrong(url)}")
    scheme, host, port, path = found.groups()
    try:
        return Address(scheme, _read_host(host), _read_port(scheme, port), _whole_path(path))
    except ValueError as error:
        raise ConfigError(f"URL {shown(url)} cannot be used: {error}") from None


def _whole_path(path: str | None) -> str:
    if not path:
        return "/"
    return path if path[0] == "/" else f"/{path}"


def _without_login(url: str) -> str:
    """The text before an @ may be a password."""
    return re.sub(r"//[^/?#]*@", "//***@", url)


def _what_is_wrong(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if not mark or scheme not in DEFAULT_PORTS:
        return "it must begin with http:// or https://"
    if "@" in place:
        return "it has a user name or a password before its host; give those as headers, by reference"
    if not place or place.startswith(":"):
        return "it has no host"
    if not place.isascii():
        return "its host must be written in ASCII; a name of other letters is written as xn--..."
    if "#" in url:
        return "it has a fragment (#), which is never sent"
    if _URL.match(url) is None or "\\" in place or "%" in place:
        return "its host or its port cannot be read"
    return "its path has characters that must be percent-encoded"


def _read_entry(text: str) -> _Entry:
    found = _ENTRY.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ConfigError(
            f"allow_addresses: {shown(text)} is not scheme, host and port, such as {_EXAMPLES}; "
            "a path is not part of it"
        )
    scheme, host, port_text = found.groups()
    try:
        port = _read_port(scheme, port_text)
        if "/" in host:
            return _Entry(scheme, port, network=network_of(host.strip("[]")))
        if "*" in host:
            return _Entry(scheme, port, suffix=_read_suffix(host))
        name = _read_host(host)
        ip = _as_ip(name)
        return _Entry(scheme, port, name=name) if ip is None else _Entry(scheme, port, network=network_of(str(ip)))
    except ValueError as error:
        raise ConfigError(f"allow_addresses: {shown(text)} cannot be used: {error}") from None


def _read_port(scheme: str, text: str | None) -> int:
    if text is None:
        return DEFAULT_PORTS[scheme]
    if not 1 <= int(text) <= 65_535:
        raise ValueError(f"the port {text} is not from 1 to 65535")
    return int(text)


def _read_suffix(host: str) -> str:
    if not host.startswith("*.") or "*" in host[1:] or host.count(".") < 2:
        raise ValueError("a * stands for the first labels of a name, with two or more after it: *.example.com")
    return "." + _read_host(host[2:])


def _read_host(text: str) -> str:
    """The host in the form in which hosts are compared. Raises `ValueError`."""
    if text.startswith("["):
        return str(IPv6Address(text[1:-1]))
    host = text.lower()
    labels = host.split(".")
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError(f"{shown(text)} is not the name of a host")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise ValueError(f"{shown(text)} is not an IPv4 address of four decimal numbers") from None
    return host


def _as_ip(host: str) -> IPAddress | None:
    """The address if the host is one; it was read before, so that it has its usual form."""
    if ":" in host:
        return IPv6Address(host)
    return IPv4Address(host) if host.rpartition(".")[2].isdigit() else None
