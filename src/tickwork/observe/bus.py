"""What happens in this process, on its way to those who listen: logging and observers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

from tickwork.observe.loggers import Log

Listener = Callable[[Any], None]


def _always() -> bool:
    return True


class Subscription:
    """A listener and the topics it listens to."""

    def __init__(self, bus: Bus, listener: Listener, wanted: Callable[[], bool]) -> None:
        self.listener = listener
        self.wanted = wanted
        self.is_broken = False
        self._bus = bus

    def cancel(self) -> None:
        self._bus.remove(self)


class Bus:
    """Calls listeners where something happens, at once. Nobody listening costs one look-up. A listener that raises
    harms neither who publishes nor the other listeners."""

    def __init__(self, log: Log | None = None) -> None:
        self.log = log or Log.of(None, "events")
        self._listeners: dict[Hashable, tuple[Subscription, ...]] = {}

    def subscribe(
        self, listener: Listener, topics: Collection[Hashable], wanted: Callable[[], bool] = _always
    ) -> Subscription:
        """`wanted` is asked each time whether the listener wants to hear just now."""
        subscription = Subscription(self, listener, wanted)
        for topic in topics:
            self._listeners[topic] = (*self._listeners.get(topic, ()), subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        for topic, others in list(self._listeners.items()):
            self._listeners[topic] = tuple(other for other in others if other is not subscription)

    def wants(self, topic: Hashable) -> bool:
        for subscription in self._listeners.get(topic, ()):  # noqa: SIM110 - `any` takes three times as long
            if subscription.wanted():
                return True
        return False

    def publish(self, topic: Hashable, what: object) -> None:
        for subscription in self._listeners.get(topic, ()):
            try:
                if subscription.wanted():
                    subscription.listener(what)
            except Exception as broken:  # a bug in a log filter must not end a worker
                self._report(subscription, broken)

    def _report(self, subscription: Subscription, broken: Exception) -> None:
        if not subscription.is_broken:
            subscription.is_broken = True
            self.log.error("a listener to events failed; further errors of it are not told", exc_info=broken)
