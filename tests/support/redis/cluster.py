"""A real Redis Cluster, built and resharded with plain CLUSTER commands that 6.2 knows too."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hiredis

from tests.support.redis.process import Started, wait_for
from tests.support.redis.server import RedisServer, parse_info

SLOTS = 16_384
NODE_TIMEOUT = 2000


def slot_of(key: str | bytes) -> int:
    data = key.encode() if isinstance(key, str) else key
    start = data.find(b"{")
    end = data.find(b"}", start + 1)
    if start >= 0 and end > start + 1:
        data = data[start + 1 : end]
    return binascii.crc_hqx(data, 0) % SLOTS


class Cluster(Started):
    """Primaries that share the slots evenly, each with as many replicas; `with` starts and stops it.

    `masters` and `replicas` name the nodes by the role in which they started.
    """

    def __init__(
        self,
        masters: int = 3,
        replicas: int = 0,
        binary: Path | None = None,
        options: Mapping[str, str] | None = None,
        password: str | None = None,
    ) -> None:
        settings = {
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": str(NODE_TIMEOUT),
            "cluster-announce-ip": RedisServer.host,
            # 7.0 lists a replica only once its offset is not 0: in an empty cluster, after the first ping.
            "repl-ping-replica-period": "1",
            **(options or {}),
        }
        self.nodes = [RedisServer(binary, settings, password=password) for _ in range(masters * (1 + replicas))]
        self.masters = self.nodes[:masters]
        self.replicas = self.nodes[masters:]
        self._each = replicas

    @property
    def url(self) -> str:
        user = "" if self.nodes[0].password is None else f":{self.nodes[0].password}@"
        return f"redis+cluster://{user}" + ",".join(f"{node.host}:{node.port}" for node in self.nodes)

    def start(self) -> None:
        for node in self.nodes:
            node.start()
        for epoch, node in enumerate(self.nodes, 1):
            node.command("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        self._share_slots()
        self._meet()
        for number, replica in enumerate(self.replicas):
            replica.command("CLUSTER", "REPLICATE", self.id_of(self.masters[number % len(self.masters)]))
        self.wait_up()

    def wait_up(self, timeout: float = 40) -> None:
        """Return once every node sees every slot served and every replica online."""
        wait_for(lambda: all(map(self._sees_all, self.nodes)), timeout, self._describe)

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def id_of(self, node: RedisServer) -> str:
        return str(node.command("CLUSTER", "MYID").decode())

    def slot_of(self, key: str | bytes) -> int:
        return slot_of(key)

    def node_of(self, slot: int) -> RedisServer:
        """The node that serves this slot, as the first node that can answer sees it."""
        for first, last, owner, *_ in self._view():
            if first <= slot <= last:
                return self._by_port(owner[1])
        raise RuntimeError(f"no node serves slot {slot}")

    def move_slot(self, slot: int, to: RedisServer) -> None:
        """Reshard one slot with its keys."""
        self.begin_move(slot, to)
        self.move_keys(slot, to)
        self.end_move(slot, to)

    def begin_move(self, slot: int, to: RedisServer) -> None:
        """From here on the old node answers ASK for keys that it does not hold.

        A move ends with an epoch that must be greater than all others. Where two moves get the same one, a primary may
        take a late message of the old owner for news, which gossip does not mend: so the epochs must be settled before.
        """
        wait_for(self._agrees, 20, self._describe)
        source = self.node_of(slot)
        to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", self.id_of(source))
        source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", self.id_of(to))

    def move_keys(self, slot: int, to: RedisServer, count: int | None = None) -> int:
        """Move `count` keys of the slot, or all; return how many were moved."""
        source = self.node_of(slot)
        auth = () if to.password is None else ("AUTH", to.password)
        moved = 0
        while count is None or moved < count:
            batch = 100 if count is None else min(100, count - moved)
            keys = source.command("CLUSTER", "GETKEYSINSLOT", slot, batch)
            if not keys:
                break
            source.command("MIGRATE", to.host, to.port, "", 0, 5000, *auth, "KEYS", *keys)
            moved += len(keys)
        return moved

    def end_move(self, slot: int, to: RedisServer) -> None:
        """Hand the slot over; return once all nodes know it."""
        source = self.node_of(slot)
        for node in (to, source, *self.masters):
            node.command("CLUSTER", "SETSLOT", slot, "NODE", self.id_of(to))
        wait_for(self._agrees, 20, self._describe)

    def _share_slots(self) -> None:
        count = len(self.masters)
        for number, node in enumerate(self.masters):
            slots = range(number * SLOTS // count, (number + 1) * SLOTS // count)
            for start in range(0, len(slots), 1000):
                node.command("CLUSTER", "ADDSLOTS", *slots[start : start + 1000])

    def _meet(self) -> None:
        for number, node in enumerate(self.nodes):
            for other in self.nodes[number + 1 :]:
                node.command("CLUSTER", "MEET", other.host, other.port)
        wait_for(lambda: all(map(self._knows_all, self.nodes)), 20, self._describe)

    def _knows_all(self, node: RedisServer) -> bool:
        lines = node.command("CLUSTER", "NODES").decode().splitlines()
        return len(lines) == len(self.nodes) and not any("handshake" in line for line in lines)

    def _sees_all(self, node: RedisServer) -> bool:
        info = parse_info(node.command("CLUSTER", "INFO"))
        if info["cluster_state"] != "ok" or info["cluster_slots_ok"] != str(SLOTS):
            return False
        ranges = node.command("CLUSTER", "SLOTS")
        return all(len(row) == 3 + self._each for row in ranges) and self._follows(node)

    def _agrees(self) -> bool:
        """Whether all primaries see the same owners of all slots, and the same epochs, of which no two are equal."""
        views = [_primaries(node.command("CLUSTER", "NODES").decode()) for node in self.masters if node.running]
        epochs = [epoch for epoch, _ in views[0].values()]
        return all(view == views[0] for view in views) and len(set(epochs)) == len(epochs)

    @staticmethod
    def _follows(node: RedisServer) -> bool:
        return node.info("replication").get("master_link_status", "up") == "up"

    def _view(self) -> Any:
        for node in self.nodes:
            if not node.running:
                continue
            try:
                return node.command("CLUSTER", "SLOTS")
            except (OSError, hiredis.HiredisError):
                continue
        raise RuntimeError("no node of the cluster answers")

    def _by_port(self, port: int) -> RedisServer:
        return next(node for node in self.nodes if node.port == port)

    def _describe(self) -> str:
        seen = (node.command("CLUSTER", "NODES").decode() for node in self.nodes if node.running)
        return "one view of a whole cluster; the nodes see:\n" + "\n".join(seen)


def _primaries(nodes: str) -> dict[str, tuple[str, list[str]]]:
    """Epoch and slots of each primary, by its id, as one node lists them."""
    rows = [line.split() for line in nodes.splitlines()]
    return {row[0]: (row[6], [each for each in row[8:] if "[" not in each]) for row in rows if "master" in row[2]}
