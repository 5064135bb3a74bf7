"""The facts of this process as they happen, for logs and metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from tickwork.model.facts import Event, Fact
from tickwork.observe.loggers import Log


class News(NamedTuple):
    """A fact of this process as it happens, with what the log has no place for."""

    event: Event
    error: BaseException | None = None  # what the handler raised
    retry_in: float | None = None  # seconds until the next attempt


Listener = Callable[[News], None]


def _always(fact: Fact) -> bool:
    return True


class Bus:
    """The facts of this process as they happen, for logs and metrics. Nobody listening costs one look-up. A listener
    that raises harms neither who publishes nor the other listeners."""

    def __init__(self, log: Log | None = None) -> None:
        self._log = log or Log.of(None, "events")
        self._listeners: dict[str, tuple[tuple[Listener, Callable[[Fact], bool]], ...]] = {}
        self._broken: set[Listener] = set()

    def subscribe(
        self, listener: Listener, facts: Collection[Fact] = tuple(Fact), wanted: Callable[[Fact], bool] = _always
    ) -> None:
        """`wanted` is asked each time whether a fact is of interest just now."""
        for fact in facts:
            self._listeners[fact] = (*self._listeners.get(fact, ()), (listener, wanted))

    def wants(self, fact: Fact) -> bool:
        for _, wanted in self._listeners.get(fact, ()):  # noqa: SIM110 - `any` takes three times as long
            if wanted(fact):
                return True
        return False

    def publish(self, event: Event, error: BaseException | None = None, retry_in: float | None = None) -> None:
        news = News(event, error, retry_in)
        for listener, _ in self._listeners.get(event.kind, ()):
            try:
                listener(news)
            except Exception as broken:  # a bug in a log filter or a metric must not end a worker
                self._report(listener, broken)

    def _report(self, listener: Listener, broken: Exception) -> None:
        if listener in self._broken:
            return
        self._broken.add(listener)
        self._log.error("a listener to events failed; further errors of it are not told", exc_info=broken)
