"""What a node has for those who watch it: the pages that its options ask for, and the listeners that serve them."""

from __future__ import annotations

from collections.abc import Callable

from tickwork.config import Config
from tickwork.monitor.health import Condition, HealthPages, Look
from tickwork.monitor.listener import Listeners
from tickwork.node.parts import Parts
from tickwork.observe.loggers import Log


def with_pages(parts: Parts, config: Config, listeners: Listeners, look: Look, node: Callable[[], Condition]) -> Parts:
    """The parts of a program, and those that serve its pages, each of which is added to the listener of its port."""
    parts = parts.copy()
    if config.health:
        pages = HealthPages(look, node, Log.of(config.logger, "health"))
        pages.join(parts, listeners.at("health_port"), config.health_check_interval)
    parts.services += listeners.services()
    return parts
