"""Where a worker's tasks come from: the queues that it pulls from, and inboxes for what the leader assigns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tickwork.config import Config


class Sources(NamedTuple):
    """`queues` are pulled from; `inboxes` are the workers whose assigned tasks are taken; `assigned` are the queues
    whose tasks come that way."""

    queues: tuple[str, ...] = ()
    inboxes: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()


def sources_of(
    worker_id: str, queues: tuple[str, ...], config: Config, is_led: Callable[[], bool] = lambda: True
) -> Sources:
    """Without a leader nobody assigns, so the worker pulls from all of its queues; what was assigned to it before is
    still taken."""
    if config.dispatch == "pull":
        return Sources(queues)
    assigned = tuple(queue for queue in queues if config.is_assigned(queue))
    if not assigned:
        return Sources(queues)
    if not is_led():
        return Sources(queues, (worker_id,))
    return Sources(tuple(queue for queue in queues if queue not in assigned), (worker_id,), assigned)
