"""Orders to workers: to take no more tasks, or to take tasks again."""

from __future__ import annotations

from collections.abc import Collection

from tickwork.client.access import Access
from tickwork.errors import WorkerNotFound
from tickwork.handlers.options import name
from tickwork.host import host_id
from tickwork.model.members import DRAIN, Order, Worker


async def give(access: Access, worker_id: str, order: Order) -> None:
    name("a worker's id", worker_id)
    if not await (await access.open_store()).members.order(worker_id, order):
        raise WorkerNotFound(worker_id)


async def of_this_host(access: Access) -> list[str]:
    """The workers of processes on this host that are up."""
    workers = await (await access.open_store()).members.workers()
    return [worker.id for worker in workers if worker.lost_at is None and worker.node and worker.host == host_id()]


async def still_working(access: Access, ids: Collection[str]) -> list[Worker]:
    """Those of these workers that run tasks, or have not heard yet that they are to take no more. One that has ended,
    or was told to take tasks again, is not waited for."""
    workers = await (await access.open_store()).members.workers(counted=True)
    return [
        worker
        for worker in workers
        if worker.id in ids and worker.status == "draining" and (worker.follows != DRAIN or worker.running)
    ]
