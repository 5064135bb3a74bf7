"""From a URL, or a client object, to what is to be connected to."""

from __future__ import annotations

import ssl
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from tickwork.config import mask_url
from tickwork.errors import ConfigError
from tickwork.store.redis.link import Access, Address

SCHEMES = ("redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
SENTINEL_PORT, PORT = 26379, 6379
OPTIONS = (
    "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "insecure_skip_verify", "sentinel_username", "sentinel_password",
    "allow_eviction",
)  # fmt: skip


class Target(NamedTuple):
    kind: Literal["standalone", "sentinel", "cluster"]
    addresses: tuple[Address, ...]
    access: Access
    url: str  # without its password
    service: str = ""
    sentinel_access: Access = Access()
    allow_eviction: bool = False


def parse(url: str) -> Target:
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ConfigError(f"store URL {mask_url(url)!r}: a Redis URL begins with one of {', '.join(SCHEMES)}")
    if parts.fragment or "@" in parts.path + parts.query:  # pieces of it would be shown as something else
        raise ConfigError(f"store URL {mask_url(url)!r}: special characters of a password must be percent-encoded")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(options) - set(OPTIONS)):
        raise ConfigError(f"store URL {mask_url(url)!r}: unknown option {unknown[0]!r}; known are {', '.join(OPTIONS)}")
    kind: Any = parts.scheme.partition("+")[2] or "standalone"
    login, _, hosts = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    tls = _tls(options) if parts.scheme.startswith("rediss") else None
    addresses = tuple(_address(host, SENTINEL_PORT if kind == "sentinel" else PORT, url) for host in hosts.split(","))
    path = [unquote(piece) for piece in parts.path.split("/") if piece]
    service = ""
    if kind == "sentinel":
        if not path:
            raise ConfigError(f"store URL {mask_url(url)!r}: name the service: redis+sentinel://host,host/service/db")
        service = path.pop(0)
    if kind == "standalone" and len(addresses) > 1:
        raise ConfigError(f"store URL {mask_url(url)!r}: several hosts are for redis+sentinel:// and redis+cluster://")
    access = Access(unquote(username), unquote(password), _db(path, kind, url), tls)
    watch = Access(options.get("sentinel_username", ""), options.get("sentinel_password", ""), 0, tls)
    return Target(kind, addresses, access, mask_url(url), service, watch, _yes(options.get("allow_eviction")))


def _address(text: str, port: int, url: str) -> Address:
    host, _, number = text.rpartition(":") if "]" not in text or text.rfind(":") > text.rfind("]") else (text, "", "")
    if not host:
        host, number = number, ""
    if number and not (number.isdecimal() and 0 < int(number) < 65536):
        raise ConfigError(f"store URL {mask_url(url)!r}: {number!r} is no port")
    return Address(host.strip("[]") or "localhost", int(number) if number else port)


def _db(path: list[str], kind: str, url: str) -> int:
    if not path:
        return 0
    if len(path) > 1 or not path[0].isdecimal():
        raise ConfigError(f"store URL {mask_url(url)!r}: {'/'.join(path)!r} is no database number")
    if kind == "cluster" and int(path[0]) != 0:
        raise ConfigError(f"store URL {mask_url(url)!r}: a Redis Cluster has database 0 only")
    return int(path[0])


def _tls(options: dict[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
        if "ssl_certfile" in options:
            context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"store URL: its TLS files cannot be read: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if _yes(options.get("insecure_skip_verify")):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _yes(text: str | None) -> bool:
    return (text or "").lower() in ("1", "true", "yes")


def of_client(client: Any) -> Target:
    """The target of a redis-py client (sync or asyncio; standalone, Sentinel or Cluster). Only its settings are used:
    the store makes connections of its own."""
    if hasattr(client, "nodes_manager"):
        nodes = client.nodes_manager.startup_nodes.values()
        addresses = tuple(Address(node.host, int(node.port)) for node in nodes)
        return Target(
            "cluster", addresses, _access(client.nodes_manager.connection_kwargs), _shown("cluster", addresses)
        )
    pool = client.connection_pool
    settings = pool.connection_kwargs
    if hasattr(pool, "sentinel_manager"):
        sentinels = [sentinel.connection_pool.connection_kwargs for sentinel in pool.sentinel_manager.sentinels]
        addresses = tuple(Address(each["host"], int(each["port"])) for each in sentinels)
        shown = _shown("sentinel", addresses)
        return Target("sentinel", addresses, _access(settings), shown, pool.service_name, _access(sentinels[0]))
    if "path" in settings:
        raise ConfigError("a Redis client on a Unix socket cannot be used; give it a host and a port")
    address = Address(settings.get("host", "localhost"), int(settings.get("port", PORT)))
    return Target("standalone", (address,), _access(settings), _shown("", (address,)))


def _shown(kind: str, addresses: tuple[Address, ...]) -> str:
    return f"redis{'+' + kind if kind else ''}://{','.join(map(str, addresses))}"


def _access(settings: dict[str, Any]) -> Access:
    names = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
    with_tls = bool(settings.get("ssl")) or any(settings.get(name) for name in names)
    tls = _tls({name: settings[name] for name in names if settings.get(name)}) if with_tls else None
    return Access(settings.get("username") or "", settings.get("password") or "", int(settings.get("db") or 0), tls)
