"""What a node has for its webhooks: the duty of the leader, and a worker for each endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from tickwork.config import Config
from tickwork.config.webhooks import Webhook
from tickwork.executors.registry import Executors
from tickwork.handlers.registry import Registry
from tickwork.node.duties import Duty
from tickwork.node.parts import OwnWorker, Parts
from tickwork.node.services import Service
from tickwork.observe.loggers import Log
from tickwork.store.contract import Store
from tickwork.store.hints import EVENTS
from tickwork.webhooks.deliver import Deliverer, Sender, senders
from tickwork.webhooks.events import TYPE, queue_of
from tickwork.webhooks.feed import Feeder


def with_webhooks(parts: Parts, config: Config, store: Store, work: bool) -> Parts:
    """The parts of a program, and those of its webhooks. Raises `ConfigError` if one of them cannot be sent to."""
    parts, log = parts.copy(), Log.of(config.logger, "webhooks")
    feeder = Feeder(config.webhooks, config.namespace, store, log)
    parts.duties.append(Duty("webhooks", feeder.work, config.scan_interval, EVENTS))
    if work:
        made = senders(config.webhooks, config)
        connections = _Connections(made)
        parts.services.append(Service("the connections of webhooks", connections.run, stop=connections.stop))
        parts.workers += [_worker(hook, made[hook.name], config, store, log) for hook in config.webhooks]
    return parts


def _worker(hook: Webhook, sender: Sender, config: Config, store: Store, log: Log) -> OwnWorker:
    """With a queue and slots of its own, so that no endpoint holds up another, or the tasks of the program."""
    registry = Registry()
    registry.register(TYPE, Deliverer(hook, sender, store, log))
    own = replace(
        config, queues=(queue_of(hook.name),), task_types=None, concurrency=hook.concurrency, dispatch="pull",
        labels={"webhook": hook.name},
    )  # fmt: skip
    return OwnWorker(f"webhook-{hook.name}", registry, Executors(registry), own)


class _Connections:
    """They are closed when the node ends, after the last delivery."""

    def __init__(self, made: Mapping[str, Sender]) -> None:
        self._senders = made
        self._closed = asyncio.Event()

    async def run(self) -> None:
        await self._closed.wait()

    async def stop(self, grace: float) -> None:
        await asyncio.gather(*(sender.close() for sender in self._senders.values()))
        self._closed.set()
