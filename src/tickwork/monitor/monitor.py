"""What a scheduler has for those who watch it, in one object: metrics, pages, statistics and alerts.

Most programs have few of these; a module is imported when its option is on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from tickwork.config import Config
from tickwork.errors import ConfigError
from tickwork.node.node import Node
from tickwork.node.parts import Parts
from tickwork.observe.bus import Bus
from tickwork.store.contract import Store

if TYPE_CHECKING:
    from tickwork.monitor.health import Condition, Look
    from tickwork.monitor.listener import Listeners
    from tickwork.monitor.metrics import Metrics

EXTRA = 'pip install "tickwork[metrics,server]"'


class Monitor:
    """`node` gives the node that runs now; `look` and `condition` are for the pages of its health."""

    def __init__(
        self, bus: Bus, node: Callable[[], Node | None], look: Look, condition: Callable[[], Condition]
    ) -> None:
        self._bus = bus
        self._node = node
        self._look = look
        self._condition = condition
        self.metrics: Metrics | None = None
        self.listeners: Listeners | None = None

    def start(
        self, config: Config, scheduler_id: str, url: str, types: Collection[str], schedules: Collection[str]
    ) -> bool:
        """Count from now on, before the store is opened. Answers whether that is new: it goes on when a scheduler is
        started again."""
        if not config.metrics or self.metrics is not None:
            return False
        try:
            from tickwork.monitor.metrics import Metrics
        except ModuleNotFoundError as error:
            raise ConfigError(f"metrics: they need {error.name}, which is not installed: {EXTRA}") from error
        self.metrics = Metrics(config, scheduler_id, url, self._bus, self._node, types, schedules)
        return True

    def stop(self) -> None:
        """Count no more. What else it has are parts of the node, and stop with that."""
        if self.metrics is not None:
            self.metrics.close()
            self.metrics = None

    def join(
        self, parts: Parts, config: Config, store: Store, serve: Callable[[Listeners], None] | None = None
    ) -> Parts:
        """The parts of a program, and those that its options ask for. `serve` adds an application to the listeners."""
        if config.statistics and config.events:
            from tickwork.monitor.statistics import with_statistics

            parts = with_statistics(parts, config, store)
        if config.health or config.metrics or serve is not None:
            parts = self._with_pages(parts, config, store, serve)
        if config.monitoring:
            from tickwork.monitor.alerts import with_alerts

            parts = with_alerts(parts, config, store, self._bus)
        return parts

    def _with_pages(
        self, parts: Parts, config: Config, store: Store, serve: Callable[[Listeners], None] | None
    ) -> Parts:
        from tickwork.monitor.listener import Listeners
        from tickwork.monitor.parts import with_pages

        self.listeners = Listeners(config)
        if serve is not None:
            serve(self.listeners)
        if self.metrics is not None:
            self.metrics.read_from(store)
            self.metrics.serve_on(self.listeners.at("metrics_port"))
        return with_pages(parts, config, self.listeners, self._look, self._condition)
