"""What a control plane goes by, read from the options of a scheduler."""

from __future__ import annotations

import ipaddress
import os
import stat
from functools import lru_cache

from msgspec import Struct

from tickwork.config import Config
from tickwork.errors import ConfigError
from tickwork.server.callers import Role

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Quota(Struct, frozen=True):
    """How much of a namespace may be used through the API."""

    waiting: int = 10_000_000  # tasks that have not ended
    queues: int = 1000  # names
    types: int = 1000
    schedules: int = 10_000
    pauses: int = 1000
    batch: int = 1000  # tasks of one submit


class Settings(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int = 8080
    hosts: tuple[str, ...] = ()  # names beside those of loopback by which it may be called
    namespaces: tuple[str, ...] = ()
    tokens: bool = False  # asked for on loopback too
    tls: tuple[str, str] | None = None
    socket: str | None = None
    masked: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    user_header: str | None = None
    roles: dict[str, Role] = {}
    grpc_port: int | None = None
    quota: Quota = Quota()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.socket is not None or is_loopback(self.host)

    @property
    def asks(self) -> bool:
        """Whether callers must say who they are."""
        return self.tokens or not self.is_loopback


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def settings_of(config: Config) -> Settings:
    if bool(config.server_tls_cert) is not bool(config.server_tls_key):
        raise ConfigError("server_tls_cert and server_tls_key belong together: name the files of both")
    known = Quota.__struct_fields__
    for name, most in config.server_quota.items():
        if name not in known or most < 1:
            raise ConfigError(f"server_quota: {name}={most}: known are {', '.join(known)}, each 1 or more")
    return Settings(
        host=config.host,
        port=config.server_port,
        hosts=config.server_hosts,
        namespaces=(config.namespace, *(each for each in config.server_namespaces if each != config.namespace)),
        tokens=config.server_tokens,
        tls=(config.server_tls_cert, config.server_tls_key)
        if config.server_tls_cert and config.server_tls_key
        else None,
        socket=config.server_socket,
        masked=config.server_mask,
        proxies=config.server_proxies,
        user_header=config.server_user_header,
        roles={name: _role(name, role) for name, role in config.server_roles.items()},
        grpc_port=config.server_grpc_port,
        quota=Quota(**config.server_quota),
    )


def _role(name: str, role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise ConfigError(f"server_roles: {name} has the role {role!r}; known are {', '.join(Role)}") from None


def check_socket(settings: Settings) -> None:
    """A socket that was left behind is replaced; anything else at its path is not ours to remove."""
    path = settings.socket
    if path is not None and os.path.lexists(path) and not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise ConfigError(f"server_socket: {path} is there already, and is no socket")


def check_reach(settings: Settings, has_tokens: bool) -> list[str]:
    """A server that others can reach, and that asks nobody who they are, does not start. Answers what is unwise."""
    if settings.is_loopback:
        return []
    known = bool(settings.user_header and settings.proxies)
    if not has_tokens and not known:
        raise ConfigError(
            f"the server would listen on {settings.host}, where others can reach it, and nobody could sign in: make a "
            "token first (`tickwork tokens create NAME --role admin`), or stay on 127.0.0.1"
        )
    if settings.tls is None and not known:
        return [
            f"the server listens on {settings.host} without TLS: tokens cross the network in clear, unless a proxy "
            "with TLS is before it (server_tls_cert and server_tls_key name the files)"
        ]
    return []
