"""Real Redis and Valkey servers for tests: alone, as a cluster, behind sentinels, over TLS, behind a faulty network."""

from tests.support.redis.binaries import KINDS, binary, default_binary, required_binary, supports_tls
from tests.support.redis.client import Client
from tests.support.redis.cluster import Cluster, slot_of
from tests.support.redis.proxy import Proxy
from tests.support.redis.sentinel import SentinelGroup
from tests.support.redis.server import RedisServer
from tests.support.redis.tls import TlsFiles, client_context, tls_files

__all__ = [
    "KINDS",
    "Client",
    "Cluster",
    "Proxy",
    "RedisServer",
    "SentinelGroup",
    "TlsFiles",
    "binary",
    "client_context",
    "default_binary",
    "required_binary",
    "slot_of",
    "supports_tls",
    "tls_files",
]
