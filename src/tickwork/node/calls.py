"""What a node has for remote workers: it knows them, calls them for the tasks in their inboxes, and, if it leads, asks
them whether they are well."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec.structs import replace

from tickwork.client.remote_workers import WorkerKeys, is_called
from tickwork.config import Config
from tickwork.executors.registry import Executors
from tickwork.executors.remote import RemoteExecutor
from tickwork.executors.remote_calls import Called, Caller
from tickwork.handlers.registry import Registry
from tickwork.model.members import WorkerStatus
from tickwork.node.duties import Duty
from tickwork.node.parts import OwnWorker, Parts
from tickwork.node.probes import PROBE_TIME, Probes
from tickwork.node.services import Service
from tickwork.observe.loggers import Log
from tickwork.outbound.addresses import Allowed, parse
from tickwork.outbound.client import Outbound
from tickwork.store.contract import Store
from tickwork.worker.sources import Sources
from tickwork.worker.worker import Worker

REMOTE = "remote"  # the executor of these tasks
LOOK = 1.0  # seconds between two looks at the members


def with_remote_calls(parts: Parts, config: Config, registry: Registry, store: Store, work: bool) -> Parts:
    """The parts of a program that may call somebody and can sign, and those for remote workers. Raises `ConfigError`
    if none can be called."""
    parts, log = parts.copy(), Log.of(config.logger, "remote")
    if config.callback_url is not None:
        parse(config.callback_url)
    keys = WorkerKeys(config)
    keys.secret("any")  # a secret that cannot be read is told now
    caller = Caller(Outbound(Allowed(config.allow_addresses)), keys)
    parts.duties.append(Duty("probe", Probes(store, caller, config, log).work, max(config.worker_timeout / 4, 0.1)))
    stop = caller.close
    if work:
        known = Directory(store)
        executor = RemoteExecutor(caller, registry, config.namespace, known.find, store, config.callback_url, log)
        own = Registry()
        executors = Executors(own)
        executors.register(REMOTE, executor)
        quiet = replace(config, queues=(), task_types=None, concurrency=config.call_limit, dispatch="pull", labels={})
        parts.duties.append(Duty("know remote workers", known.look, LOOK, who="all"))
        parts.workers.append(OwnWorker("calls", own, executors, quiet, partial(CallingWorker, known)))
        stop = partial(executor.stop, PROBE_TIME)
    connections = _Connections(stop)
    parts.services.append(Service("the connections to remote workers", connections.run, stop=connections.stop))
    return parts


class Directory:
    """The remote workers that are online and take tasks, as the last look has found them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._online: dict[str, Called] = {}
        self.inboxes: tuple[str, ...] = ()
        self.assigned: tuple[str, ...] = ()  # the queues whose tasks come by these
        self.on_change: Callable[[], None] = lambda: None

    def find(self, worker_id: str) -> Called | None:
        return self._online.get(worker_id)

    async def look(self) -> float | None:
        members = [each for each in await self._store.members.workers() if is_called(each) and each.lost_at is None]
        self._online = {each.id: Called(each.id, each.address) for each in members}
        taking = [each for each in members if each.status is not WorkerStatus.DRAINING]
        inboxes = tuple(each.id for each in taking)
        assigned = tuple(dict.fromkeys(queue for each in taking for queue in each.assigned))
        if (inboxes, assigned) != (self.inboxes, self.assigned):
            self.inboxes, self.assigned = inboxes, assigned
            self.on_change()
        return None


class CallingWorker(Worker):
    """Takes the tasks that were assigned to remote workers, and has them run there."""

    only_executor = REMOTE

    def __init__(self, known: Directory, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._known = known
        known.on_change = self.look_again

    @property
    def sources(self) -> Sources:
        return Sources(inboxes=self._known.inboxes, assigned=self._known.assigned)

    @property
    def free(self) -> int:
        return super().free if self._known.inboxes else 0


class _Connections:
    """They are closed when the node ends, after the last call."""

    def __init__(self, close: Callable[[], Awaitable[None]]) -> None:
        self._close = close
        self._closed = asyncio.Event()

    async def run(self) -> None:
        await self._closed.wait()

    async def stop(self, grace: float) -> None:
        await self._close()
        self._closed.set()
