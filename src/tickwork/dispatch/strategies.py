"""Strategies: which worker is given a task.

Each is a pure function `pick(task, workers)`. The workers that it is given are online and may run the task, in the
order of their ids. It returns one of them that has a free slot, or None: then the task waits.
"""

from __future__ import annotations

import builtins
import inspect
import math
import random
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from tickwork.errors import ConfigError, TickworkError
from tickwork.handlers.options import name as checked_name
from tickwork.texts import shown


class Candidate(Struct, frozen=True, kw_only=True):
    """A task that waits for a worker, as a strategy sees it."""

    id: str
    type: str = ""
    queue: str = "default"
    priority: int = 5
    key: str | None = None


class Load(Struct, kw_only=True):
    """A worker and how busy it is, as a strategy sees it.

    `running` counts what it runs and what is assigned to it. `picks` is how often this leader has picked it; one that
    joins begins with as many, for its weight, as the least picked of the others.
    """

    id: str
    weight: int = 1
    capacity: int = 10
    running: int = 0
    picks: float = 0.0

    @property
    def free(self) -> int:
        return max(self.capacity - self.running, 0)


Strategy = Callable[[Candidate, Sequence[Load]], Load | None]
_random = random.Random()  # noqa: S311 (it spreads load and keeps no secret)


def least_tasks(task: Candidate, workers: Sequence[Load]) -> Load | None:
    """The one that has the fewest tasks; of several, the one that was picked least."""
    return _lowest(workers, lambda worker: (worker.running, worker.picks))


def round_robin(task: Candidate, workers: Sequence[Load]) -> Load | None:
    """One after the other, whatever their weights."""
    return _lowest(workers, lambda worker: (worker.picks,))


def weighted_round_robin(task: Candidate, workers: Sequence[Load]) -> Load | None:
    """In turn, and as often as their weights say, evenly mixed."""
    return _lowest(workers, lambda worker: ((worker.picks + 1) / worker.weight,))


def capacity_based(task: Candidate, workers: Sequence[Load]) -> Load | None:
    """As often as their numbers of slots say, those first that have fewer quarters of them in use."""
    # By exact shares the large ones would get nearly everything while there is little to do.
    return _lowest(
        workers, lambda worker: (4 * worker.running // worker.capacity, (worker.picks + 1) / worker.capacity)
    )


def random_choice(task: Candidate, workers: Sequence[Load]) -> Load | None:
    """Any that has a free slot."""
    free = [worker for worker in workers if worker.free]
    return _random.choice(free) if free else None


def consistent_hash(task: Candidate, workers: Sequence[Load]) -> Load | None:
    """Always the same one for a key, or for the id of a task without one. It waits for that one if it is full.

    Each worker has a number for each key, and the highest is taken. When a worker leaves or joins, only the keys that
    it had, or will have, move.
    """
    key = task.id if task.key is None else task.key
    chosen = max(workers, key=lambda worker: (_rank(worker, key), worker.id), default=None)
    return chosen if chosen is not None and chosen.free else None


def _rank(worker: Load, key: str) -> float:
    """By it each worker is the highest for a share of the keys that is in proportion to its weight."""
    digest = blake2b(f"{worker.id}\n{key}".encode(), digest_size=8).digest()
    share = (int.from_bytes(digest) + 1) / (2**64 + 1)  # above 0 and, as a float, at most 1
    return worker.weight / max(-math.log(share), 1e-300)


def _lowest(workers: Sequence[Load], measure: Callable[[Load], tuple[float, ...]]) -> Load | None:
    free = (worker for worker in workers if worker.free)
    return min(free, key=lambda worker: (measure(worker), worker.id), default=None)


STRATEGIES: dict[str, Strategy] = {
    "least_tasks": least_tasks,
    "round_robin": round_robin,
    "random": random_choice,
    "weighted_round_robin": weighted_round_robin,
    "consistent_hash": consistent_hash,
    "capacity_based": capacity_based,
}
OTHER_NAMES = {"least_task": "least_tasks"}


def strategy_of(name: str, own: dict[str, Strategy] | None = None) -> Strategy:
    """The strategy of a name: one of Tickwork's, or of `own`."""
    known = STRATEGIES | (own or {})
    try:
        return known[OTHER_NAMES.get(name, name)]
    except (KeyError, TypeError):
        raise ConfigError(
            f"unknown strategy {shown(name)}; known are {', '.join(known)}. Add one of your own with "
            "app.strategies.register"
        ) from None


class Strategies:
    """The strategies that a program knows, by name: `load_balance_strategy` chooses one."""

    def __init__(self) -> None:
        self._own: dict[str, Strategy] = {}

    def register(self, name: str, function: Strategy) -> None:
        """Add a strategy: a function of a `Candidate` and the `Load` of each worker that may be given it.

        It returns one of them whose `free` is not 0, or None to let the task wait. It is called for each task, so it
        must be quick, and it must go by its arguments alone, since another node may lead next.
        """
        checked_name("a strategy's name", name)
        if name in STRATEGIES or name in OTHER_NAMES or name in self._own:
            raise ConfigError(f"there is a strategy {name!r} already; choose another name")
        _check_function(name, function)
        self._own[name] = _checked(name, function)

    def list(self) -> builtins.list[str]:
        """The names of all that are known here."""
        return [*STRATEGIES, *self._own]

    def of(self, name: str) -> Strategy:
        """Raises `ConfigError` with the known names when there is none of this name."""
        return strategy_of(name, self._own)


def _check_function(name: str, function: Any) -> None:
    wanted = f"strategy {name!r} must be a plain function of two arguments, `def pick(task, workers)`"
    if not callable(function):
        raise ConfigError(f"{wanted}, not {shown(function)}")
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        raise ConfigError(f"{wanted}; {shown(function)} is async")
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{wanted}; {shown(function)} cannot be called so: {error}") from None


def _checked(name: str, function: Strategy) -> Strategy:
    """What a function of the user's own returns is looked at before anything is assigned by it."""

    def pick(task: Candidate, workers: Sequence[Load]) -> Load | None:
        chosen = function(task, workers)
        if chosen is None or (any(chosen is worker for worker in workers) and chosen.free):
            return chosen
        raise TickworkError(
            f"strategy {name!r} must return one of the workers that it is given, with a free slot, or None; for task "
            f"{task.id} it returned {shown(chosen)}"
        )

    return pick
