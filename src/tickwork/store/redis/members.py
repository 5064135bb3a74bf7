"""Workers and leadership on Redis."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tickwork.model.members import Leader, OrderKind, Worker, ordered
from tickwork.store.contract import Heard
from tickwork.store.redis.core import Part
from tickwork.store.rules import leads
from tickwork.store.unreadable import UNREADABLE

_encode = msgspec.msgpack.Encoder().encode
_worker = msgspec.msgpack.Decoder(Worker).decode


class Members(Part):
    async def beat(self, worker: Worker, ttl: int | None = None, *, join: bool = True) -> Heard:
        args = (worker.id, worker.node, _encode(worker), ttl or self._core.policy.lease_ttl, int(join), worker.address)
        if join:
            self._core.own_workers.add(worker.id)
        found, order, *rival = await self._core.reached("beat", self._core.layout.root, *args, purpose="work")
        leader = Leader(found[0].decode(), *found[1:]) if found else None
        return Heard(leader, _read_worker(worker.id, *rival) if rival else None, order.decode())

    async def order(self, worker_id: str, kind: OrderKind, value: str | None) -> bool:
        word = ordered("", kind, value)
        return bool(await self._core.run("order", self._core.layout.root, worker_id, kind, word))

    async def leave(self, worker_id: str, node: str = "") -> None:
        self._core.own_workers.discard(worker_id)
        root = self._core.layout.root
        process = node
        if not (node or self._core.alone):
            process = (await self._core.ask(root, "HGET", f"{root}workers:nodes", worker_id) or b"").decode()
        # The namespace's own prefix comes first, since it holds the nodes of the workers.
        for prefix in self._core.prefixes:
            if not await self._core.run("leave", prefix, worker_id, node, process):
                return
        self._core.suspects.pop(process or worker_id, None)

    async def workers(self, counted: bool = False) -> list[Worker]:
        root = self._core.layout.root
        parts = ("workers", "workers:times", "workers:orders")
        blobs, times, given = await self._core.ask_all(root, [("HGETALL", f"{root}{part}") for part in parts])
        moments = dict(zip(times[::2], times[1::2], strict=True))
        orders = dict(zip(given[::2], given[1::2], strict=True))
        found = [
            _read_worker(worker_id.decode(), blob, moments[worker_id], orders.get(worker_id, b""))
            for worker_id, blob in zip(blobs[::2], blobs[1::2], strict=True)
            if worker_id in moments
        ]
        found.sort(key=lambda worker: worker.id)
        return await self._count(found) if counted and found else found

    async def _count(self, workers: list[Worker]) -> list[Worker]:
        """With the numbers of their leases in all partitions that can be reached."""

        async def count(part: str) -> list[int]:
            commands = [("ZCARD", f"{part}leases:{worker.id}") for worker in workers]
            if self._core.alone:
                return await self._core.ask_all(part, commands)
            return await self._core.reach.call(part, lambda: self._core.ask_all(part, commands))

        counts = (await self._core.reach.each(self._core.layout.parts, count)).values()
        sums = map(sum, zip(*counts, strict=True))
        return [replace(worker, running=running) for worker, running in zip(workers, sums, strict=True)]

    async def campaign(self, node: str, ttl: int) -> Leader:
        reply = await self._core.run("campaign", self._core.layout.root, node, ttl)
        return Leader(reply[0].decode(), *reply[1:])

    async def leader(self) -> Leader | None:
        root = self._core.layout.root
        found = await self._core.ask(root, "HMGET", f"{root}schedule:leader", "id", "term", "until", "ttl")
        if None in found:
            return None
        return leads(Leader(found[0].decode(), *map(int, found[1:])), self._core.now())

    async def resign(self, node: str, term: int) -> bool:
        return bool(await self._core.run("resign", self._core.layout.root, node, term))


def _read_worker(worker_id: str, blob: bytes, times: bytes, order: bytes = b"") -> Worker:
    try:
        return _with_times(replace(_worker(blob), order=order.decode()), times)
    except UNREADABLE:
        return Worker(id=worker_id)


def _with_times(worker: Worker, times: bytes) -> Worker:
    started_at, beat_at, expires_at, *lost_at = map(int, times.split())
    lost = lost_at[0] if lost_at else None
    running = worker.running if lost is None else 0
    return replace(worker, started_at=started_at, beat_at=beat_at, expires_at=expires_at, lost_at=lost, running=running)
