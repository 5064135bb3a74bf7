"""What to connect to, from a URL or from a redis-py client."""

from __future__ import annotations

import ipaddress
import re
import ssl
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote

from tickwork.config.urls import mask_url
from tickwork.errors import ConfigError
from tickwork.store.redis.net.link import Access, Address

SCHEMES = ("redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
SENTINEL_PORT, PORT = 26379, 6379
# Not `urlsplit`: it takes a list of hosts for one, and some releases refuse an IPv6 address in it.
_URL = re.compile(
    r"(?P<scheme>[^:/?#]*)://(?P<place>[^/?#]*)(?P<path>[^?#]*)(\?(?P<query>[^#]*))?(?P<rest>#?)", re.DOTALL
)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\s:,\[\]]*)(:(?P<port>[^:]*))?")
_ALLOWED = re.compile(r"[A-Za-z0-9._:-]+")
FOR_TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "insecure_skip_verify")
OPTIONS = (
    *FOR_TLS, "password_file", "sentinel_username", "sentinel_password", "sentinel_password_file", "allow_eviction",
    "allow_hosts",
)  # fmt: skip
LONGEST_PASSWORD = 10_000


class Target(NamedTuple):
    kind: Literal["standalone", "sentinel", "cluster"]
    addresses: tuple[Address, ...]
    access: Access
    url: str  # without its password
    service: str = ""
    sentinel_access: Access = Access()
    allow_eviction: bool = False
    allow_hosts: tuple[str, ...] = ()  # hosts that servers may name: names, .suffixes, networks; empty allows all


def parse(url: str) -> Target:
    try:
        return _parse(url)
    except ValueError as error:
        raise ConfigError(f"store URL {mask_url(url)!r}: {error}") from None


def _parse(url: str) -> Target:
    scheme, login, hosts, path, options = _split(url)
    kind: Any = scheme.partition("+")[2] or "standalone"
    addresses = tuple(_address(host, SENTINEL_PORT if kind == "sentinel" else PORT) for host in hosts.split(","))
    service = ""
    if kind == "sentinel":
        if not path:
            raise ValueError("name the service: redis+sentinel://host,host/service/db")
        service = path.pop(0)
    if kind == "standalone" and len(addresses) > 1:
        raise ValueError("several hosts are for redis+sentinel:// and redis+cluster://")
    tls = _tls(options) if scheme.startswith("rediss") else None
    username, _, password = login.partition(":")
    return Target(
        kind,
        addresses,
        Access(unquote(username), _secret(unquote(password), "password_file", options), _db(path, kind), tls),
        mask_url(url),
        service,
        Access(
            options.get("sentinel_username", ""),
            _secret(options.get("sentinel_password", ""), "sentinel_password_file", options),
            0,
            tls,
        ),
        _yes(options, "allow_eviction"),
        _allowed(options.get("allow_hosts")),
    )


def _split(url: str) -> tuple[str, str, str, list[str], dict[str, str]]:
    """Scheme, login, hosts, pieces of the path, and options."""
    parts = _URL.match(url)
    if parts is None or parts["scheme"] not in SCHEMES:
        raise ValueError(f"a Redis URL begins with one of {', '.join(SCHEMES)}")
    query = parts["query"] or ""
    # Parts of the password would be taken for another part of the URL, and shown.
    if parts["rest"] or "@" in parts["path"] + query:
        raise ValueError("special characters of a password must be percent-encoded")
    options = dict(parse_qsl(query, keep_blank_values=True))
    for option in sorted(options):
        if option not in OPTIONS:
            raise ValueError(f"unknown option {option!r}; known are {', '.join(OPTIONS)}")
        if option in FOR_TLS and not parts["scheme"].startswith("rediss"):
            raise ValueError(f"{option} is for TLS: write {parts['scheme'].replace('redis', 'rediss', 1)}://")
    login, _, hosts = parts["place"].rpartition("@")
    if "," in hosts and not all(hosts.split(",")):
        raise ValueError("one of its hosts is empty")
    path = [unquote(piece) for piece in parts["path"].split("/") if piece]
    return parts["scheme"], login, hosts, path, options


def _secret(given: str, option: str, options: dict[str, str]) -> str:
    """The password: as given, or read from the file that is named instead of it."""
    if option not in options:
        return given
    if given:
        raise ValueError(f"it has a password and a {option}; give one of them")
    path = options[option]
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LONGEST_PASSWORD)
    except (OSError, ValueError) as error:
        raise ValueError(f"{option} {path!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    secret = text.removesuffix("\n")
    if not secret or "\n" in secret:
        raise ValueError(f"{option} {path!r} must hold one line, the password")
    return secret


def _address(text: str, port: int) -> Address:
    found = _HOST.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no host; an IPv6 address stands in [brackets]")
    number = found["port"]
    if number and not (number.isdecimal() and 0 < int(number) < 65536):
        raise ValueError(f"{number!r} is no port")
    return Address(found["host"].strip("[]") or "localhost", int(number) if number else port)


def _db(path: list[str], kind: str) -> int:
    if not path:
        return 0
    if len(path) > 1 or not path[0].isdecimal():
        raise ValueError(f"{'/'.join(path)!r} is no database number")
    if kind == "cluster" and int(path[0]) != 0:
        raise ValueError("a Redis Cluster has database 0 only")
    return int(path[0])


def _allowed(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    for part in text.split(","):
        try:
            good = ipaddress.ip_network(part, strict=False) if "/" in part else _ALLOWED.fullmatch(part)
        except ValueError:
            good = None
        if not good:
            raise ValueError(f"allow_hosts: {part!r} is no host, no .suffix of hosts and no network")
    return tuple(text.split(","))


def _tls(options: dict[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
        if "ssl_certfile" in options:
            context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"))
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"its TLS files cannot be read: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if _yes(options, "insecure_skip_verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _yes(options: dict[str, str], name: str) -> bool:
    word = options.get(name, "").lower()
    if word in ("1", "true", "yes"):
        return True
    if word in ("", "0", "false", "no"):
        return False
    raise ValueError(f"{name}={options[name]!r} is neither true nor false")


def of_client(client: Any) -> Target:
    """The target of a redis-py client (sync or asyncio; standalone, Sentinel or Cluster). Only its settings are used:
    the store makes connections of its own."""
    if hasattr(client, "nodes_manager"):
        nodes = client.nodes_manager.startup_nodes.values()
        addresses = tuple(Address(node.host, int(node.port)) for node in nodes)
        access = _access(client.nodes_manager.connection_kwargs)
        return Target("cluster", addresses, access, _shown("cluster", addresses, access))
    pool = client.connection_pool
    settings = _settings(pool)
    if hasattr(pool, "sentinel_manager"):
        sentinels = [_settings(sentinel.connection_pool) for sentinel in pool.sentinel_manager.sentinels]
        addresses = tuple(Address(each["host"], int(each["port"])) for each in sentinels)
        access = _access(settings)
        shown = _shown("sentinel", addresses, access)
        return Target("sentinel", addresses, access, shown, pool.service_name, _access(sentinels[0]))
    if "path" in settings:
        raise ConfigError("a Redis client on a Unix socket cannot be used; give it a host and a port")
    address = Address(settings.get("host", "localhost"), int(settings.get("port", PORT)))
    access = _access(settings)
    return Target("standalone", (address,), access, _shown("", (address,), access))


def _settings(pool: Any) -> dict[str, Any]:
    return {"connection_class": pool.connection_class, **pool.connection_kwargs}


def _shown(kind: str, addresses: tuple[Address, ...], access: Access) -> str:
    scheme = "redis" if access.tls is None else "rediss"
    return f"{scheme}{'+' + kind if kind else ''}://{','.join(map(str, addresses))}"


def _access(settings: dict[str, Any]) -> Access:
    if settings.get("credential_provider") is not None:
        raise ConfigError("a Redis client with a credential_provider cannot be used; give it a user and a password")
    names = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
    # redis-py uses TLS if the class of its connections says so; there may be no other setting.
    with_tls = "SSL" in getattr(settings.get("connection_class"), "__name__", "")
    options = {name: settings[name] for name in names if settings.get(name)}
    if str(settings.get("ssl_cert_reqs", "required")).lower() in ("none", "verifymode.cert_none"):
        options["insecure_skip_verify"] = "true"
    try:
        tls = _tls(options) if with_tls else None
    except ValueError as error:
        raise ConfigError(f"a Redis client cannot be used: {error}") from None
    return Access(settings.get("username") or "", settings.get("password") or "", int(settings.get("db") or 0), tls)
