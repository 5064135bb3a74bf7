"""Fair queues, as a program declares them: what a task of each key costs there in virtual time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tickwork.errors import ConfigError
from tickwork.handlers.options import queue as read_queue
from tickwork.handlers.options import text
from tickwork.texts import shown

UNIT = 1000  # the cost of a task whose key has the weight 1
LEAST, MOST = 0.01, 1000


class FairQueues:
    def __init__(self) -> None:
        self._costs: dict[str, dict[str, int]] = {}  # by queue and key
        self.configured: tuple[str, ...] = ()  # queues without weights, from the configuration

    def declare(self, queue: str, fair: bool, weights: Mapping[str, float] | None) -> None:
        name = read_queue(queue)
        if not isinstance(fair, bool):
            raise ConfigError(f"fair must be true or false, not {shown(fair)}")
        if weights and not fair:
            raise ConfigError(f"queue {shown(name)} has weights, which are for fair queues: give fair=True too")
        costs = {text("a key of weights", key, 512): _cost(key, weight) for key, weight in dict(weights or {}).items()}
        if fair:
            self._costs[name] = costs
        else:
            self._costs.pop(name, None)

    def cost(self, queue: str, key: str | None) -> int:
        """What `Spec.fair` is to be; 0 where the queue is not fair."""
        costs = self._costs.get(queue)
        if costs is None:
            return UNIT if queue in self.configured else 0
        return costs.get(key or "", UNIT)


def _cost(key: str, weight: Any) -> int:
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool) and math.isfinite(weight)
    if not is_number or not LEAST <= weight <= MOST:
        raise ConfigError(
            f"the weight of key {shown(key)} must be a number from {LEAST} to {MOST}, not {shown(weight)}"
        )
    return max(round(UNIT / float(weight)), 1)
