"""Orders to workers: to take no more tasks, to run more or fewer at a time, or to take them from other queues."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tickwork.client.access import Access
from tickwork.client.views import seen_at
from tickwork.errors import ConfigError, TickworkError, WorkerNotFound
from tickwork.handlers.options import count, name
from tickwork.host import host_id
from tickwork.model.members import CAPACITY, DRAIN, QUEUES, OrderKind, Orders, Worker, WorkerStatus
from tickwork.texts import shown

CONCURRENCY_MAX = 100_000
QUEUES_MAX = 1500  # characters of all names together


async def give(access: Access, worker_id: str, kind: OrderKind, value: str | None) -> None:
    name("a worker's id", worker_id)
    if not await (await access.open_store()).members.order(worker_id, kind, value):
        raise WorkerNotFound(worker_id)


async def change(access: Access, worker_id: str, concurrency: int | None, queues: Sequence[str] | None) -> None:
    """Give those of these orders that are not None. All are checked before the first is given."""
    if concurrency is None and queues is None:
        raise ConfigError("nothing is to be changed: give concurrency, queues, or both")
    orders: list[tuple[OrderKind, str]] = []
    if concurrency is not None:
        orders.append((CAPACITY, str(count("concurrency", concurrency, 1, CONCURRENCY_MAX))))
    if queues is not None:
        orders.append((QUEUES, _names(queues)))
    await _check_follows(access, worker_id)
    for kind, value in orders:
        await give(access, worker_id, kind, value)


def _names(queues: Sequence[str]) -> str:
    if isinstance(queues, str) or not queues:
        raise ConfigError(f"queues must be a list of at least one name, not {shown(queues)}")
    names = [name("a queue's name", queue) for queue in queues]
    if len(set(names)) < len(names):
        raise ConfigError(f"queues must hold each name once, not {shown(queues)}")
    text = ",".join(names)
    if len(text) > QUEUES_MAX:
        raise ConfigError(f"queues have {len(text):,} characters in all; an order may have {QUEUES_MAX:,}")
    return text


async def _check_follows(access: Access, worker_id: str) -> None:
    """A worker of an early version knows only how to drain, and would take an order for the end of that. One that was
    registered from outside is what its registration says."""
    name("a worker's id", worker_id)
    for worker in await (await access.open_store()).members.workers():
        if worker.id != worker_id:
            continue
        if not worker.node:
            raise TickworkError(
                f"worker {worker_id} was registered from outside: register it again with another capacity"
            )
        if not worker.version:
            raise TickworkError(f"worker {worker_id} runs an earlier version of Tickwork, which can only be drained")


async def reset(access: Access, worker_id: str) -> None:
    """Take back what `change` has ordered."""
    await give(access, worker_id, CAPACITY, None)
    await give(access, worker_id, QUEUES, None)


async def of_this_host(access: Access) -> list[str]:
    """The workers of processes on this host that are up."""
    workers = await (await access.open_store()).members.workers()
    return [worker.id for worker in workers if worker.lost_at is None and worker.node and worker.host == host_id()]


async def still_working(access: Access, ids: Collection[str]) -> list[Worker]:
    """Those of these workers that run tasks, or have not heard yet that they are to take no more. One that has ended,
    or was told to take tasks again, is not waited for."""
    store = await access.open_store()
    workers = seen_at(await store.members.workers(counted=True), store.now())
    return [
        worker
        for worker in workers
        if worker.id in ids and worker.status is WorkerStatus.DRAINING
        if worker.running or not Orders.of(worker.follows).drain
    ]


async def drain(access: Access, worker_id: str) -> None:
    await give(access, worker_id, DRAIN, "")


async def resume(access: Access, worker_id: str) -> None:
    await give(access, worker_id, DRAIN, None)
