"""The metrics of one scheduler: a registry of its own, so that several in one process never clash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from tickwork import __version__
from tickwork.config import Config
from tickwork.monitor.exposition import Exposition, NodeNumbers, Numbers
from tickwork.monitor.listener import Listener, Reply
from tickwork.monitor.store_numbers import StoreNumbers
from tickwork.monitor.tallies import Tallies
from tickwork.node.node import Node
from tickwork.observe.bus import Bus
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store

PATH = "/metrics"


class Metrics:
    """Counts from the moment that it is made, over several starts if need be; `node` gives the node that runs now.
    `types` and `schedules` are those that are shown before anything has happened."""

    store: StoreNumbers  # of the last start

    def __init__(
        self, config: Config, scheduler_id: str, url: str, bus: Bus, node: Callable[[], Node | None],
        types: Collection[str] = (), schedules: Collection[str] = (),
    ) -> None:  # fmt: skip
        count = config.worker_count
        workers = [scheduler_id] if count == 1 else [f"{scheduler_id}-{number}" for number in range(1, count + 1)]
        self.tallies = Tallies(types, config.queues, workers, schedules)
        self._config = config
        self._info = __version__, config.namespace, url.partition(":")[0], scheduler_id
        self._node = node
        self.registry = CollectorRegistry()
        self.registry.register(Exposition(self._numbers))
        ProcessCollector(registry=self.registry)
        self._subscriptions = self.tallies.listen(bus)
        self._thread = ThreadPoolExecutor(1, "tickwork-metrics")  # a page of a thousand types takes half a second

    def read_from(self, store: Store) -> None:
        """Show the numbers of this store from now on."""
        config = self._config
        self.store = StoreNumbers(store, config.metrics_interval, Log.of(config.logger, "metrics"), config.queues)

    def serve_on(self, listener: Listener) -> None:
        listener.add(PATH, self.reply)

    async def reply(self) -> Reply:
        return Reply(200, CONTENT_TYPE_LATEST, await self.page())

    def close(self) -> None:
        """Count no more."""
        for subscription in self._subscriptions:
            subscription.cancel()

    def render(self) -> bytes:
        """The numbers as they are known now, in the text format of Prometheus."""
        return generate_latest(self.registry)

    async def page(self) -> bytes:
        """The same, after those of the store were read again, if that was not done within `metrics_interval`."""
        await self.store.refresh()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.render)

    def _numbers(self) -> Numbers:
        return Numbers(self.tallies.copy(), self.store, self._of_node(), self._info)

    def _of_node(self) -> NodeNumbers:
        node = self._node()
        if node is None:
            return NodeNumbers()
        workers = node.workers
        return NodeNumbers(
            node.candidate.leads,
            sum(worker.capacity for worker in workers),
            sum(len(worker.running) for worker in workers),
            sum(worker.leaked for worker in workers),
        )
