"""A real primary with replicas under three sentinels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hiredis

from tests.support.redis.process import Started, wait_for
from tests.support.redis.server import RedisServer

NAME = "tick"
SENTINELS = 3
QUORUM = 2


class SentinelGroup(Started):
    """Data servers (`servers`, the first primary first) and their `sentinels`; `with` starts and stops them."""

    def __init__(
        self,
        replicas: int = 1,
        binary: Path | None = None,
        options: Mapping[str, str] | None = None,
        password: str | None = None,
    ) -> None:
        self._binary = binary
        self._options = dict(options or {})
        self._password = password
        self._replica_count = replicas
        self.servers: list[RedisServer] = []
        self.sentinels: list[RedisServer] = []

    @property
    def url(self) -> str:
        user = "" if self._password is None else f":{self._password}@"
        places = ",".join(f"{sentinel.host}:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{user}{places}/{NAME}/0"

    def start(self) -> None:
        first = self._serve({})
        for _ in range(self._replica_count):
            self._serve({"replicaof": f"{first.host} {first.port}"})
        # Sentinels read a primary's replicas when they connect and then only every 10 s: the replicas come first.
        online = str(self._replica_count)
        wait_for(lambda: first.info("replication")["connected_slaves"] == online, 20, lambda: "replicas online")
        wait_for(lambda: all(map(_follows, self.servers[1:])), 20, lambda: "replicas in step")
        for _ in range(SENTINELS):
            self._watch(first)
        wait_for(lambda: all(map(self._sees_all, self.sentinels)), 40, self._describe)

    def stop(self) -> None:
        for server in (*self.sentinels, *self.servers):
            server.stop()

    def master(self) -> RedisServer:
        """The primary, as the first sentinel that can answer sees it."""
        for sentinel in self.sentinels:
            if not sentinel.running:
                continue
            try:
                _, port = sentinel.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
            except (OSError, hiredis.HiredisError):
                continue
            return next(server for server in self.servers if server.port == int(port))
        raise RuntimeError("no sentinel answers")

    def replicas(self) -> list[RedisServer]:
        """Every data server but the primary."""
        master = self.master()
        return [server for server in self.servers if server is not master]

    def _serve(self, role: dict[str, str]) -> RedisServer:
        server = RedisServer(self._binary, self._options | role, password=self._password)
        self.servers.append(server)
        server.start()
        return server

    def _watch(self, master: RedisServer) -> None:
        options = {
            "sentinel monitor": f"{NAME} {master.host} {master.port} {QUORUM}",
            "sentinel down-after-milliseconds": f"{NAME} 1500",
            "sentinel failover-timeout": f"{NAME} 10000",
        }
        if self._password is not None:
            options["sentinel auth-pass"] = f"{NAME} {self._password}"
        sentinel = RedisServer(self._binary, options, sentinel=True)
        self.sentinels.append(sentinel)
        sentinel.start()

    def _sees_all(self, sentinel: RedisServer) -> bool:
        master = _fields(sentinel.command("SENTINEL", "MASTER", NAME))
        replicas = [_fields(row) for row in sentinel.command("SENTINEL", "REPLICAS", NAME)]
        peers = [_fields(row) for row in sentinel.command("SENTINEL", "SENTINELS", NAME)]
        return (
            master["flags"] == "master"
            and [row["flags"] for row in replicas] == ["slave"] * self._replica_count
            and all(row["master-link-status"] == "ok" for row in replicas)
            and [row["flags"] for row in peers] == ["sentinel"] * (SENTINELS - 1)
        )

    def _describe(self) -> str:
        seen = (str(sentinel.command("SENTINEL", "MASTER", NAME)) for sentinel in self.sentinels)
        return "sentinels that know the replicas and each other; they see:\n" + "\n".join(seen)


def _follows(server: RedisServer) -> bool:
    return server.info("replication").get("master_link_status") == "up"


def _fields(row: list[Any]) -> dict[str, str]:
    """The flat name, value, name, value list of a sentinel's reply."""
    texts = [item.decode() for item in row]
    return dict(zip(texts[::2], texts[1::2], strict=True))
