"""Limits on submits, of all processes together: `rate_limit` of the scheduler, `submit_rate` of a handler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tickwork.client.middleware import Send
from tickwork.errors import RateLimited
from tickwork.handlers.registry import Registry
from tickwork.model.policy import Durability
from tickwork.model.tasks import Spec
from tickwork.store.contract import Ask, Gate, Receipt, Store
from tickwork.store.hints import Hint

OF_TYPE = "submit:type:"
OnRejected = Callable[[list[Spec], float], None]


class RateLimit:
    """Before `send`: draws a token for each task from the store, or raises `RateLimited` and sends none of them."""

    def __init__(self, pair: tuple[float, int] | None, registry: Registry, send: Send, rejected: OnRejected) -> None:
        self._all = None if pair is None else Gate("submit", rate=pair[0] / 1000, burst=pair[1])
        self._registry = registry
        self._send = send
        self._rejected = rejected

    @classmethod
    def around(cls, pair: tuple[float, int] | None, registry: Registry, send: Send, rejected: OnRejected) -> Send:
        """`send` itself where nothing is limited."""
        entries = (registry.find(kind) for kind in registry.list())
        limited = pair is not None or any(entry is not None and entry.protection.submits for entry in entries)
        return cls(pair, registry, send, rejected).submit if limited else send

    async def submit(
        self, store: Store, specs: list[Spec], durability: Durability | None, waiter: Hint | None = None, /
    ) -> list[Receipt]:
        if gates := self._gates(specs):
            (refusal,) = await store.gates.enter([Ask("", gates)])
            if refusal is not None:
                seconds = (refusal.wait or 0) / 1000
                self._rejected(specs, seconds)
                raise RateLimited(seconds, refusal.gate.partition(OF_TYPE)[2] or None)
        return await self._send(store, specs, durability, waiter)

    def _gates(self, specs: list[Spec]) -> tuple[Gate, ...]:
        gates = [] if self._all is None else [_times(self._all, len(specs))]
        for kind, count in Counter(spec.type for spec in specs).items():
            entry = self._registry.find(kind)
            if entry is not None and entry.protection.submits:
                rate = entry.protection.submits
                gates.append(Gate(f"{OF_TYPE}{kind}", rate=rate / 1000, burst=max(int(rate), 1), cost=count))
        return tuple(gates)


def _times(gate: Gate, count: int) -> Gate:
    return Gate(gate.name, rate=gate.rate, burst=gate.burst, cost=count)
