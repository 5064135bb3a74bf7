"""What holds for all tasks of a store, and the choices that users have there."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# What must have happened to a task before its submit is acknowledged: see `docs/durability.md`.
Durability = Literal["memory", "disk", "replicated"]
DURABILITIES: tuple[Durability, ...] = ("memory", "disk", "replicated")

# What a handler does when its node has not reached the store for a whole lease: see `docs/delivery.md`.
WhenCutOff = Literal["stop", "run_on"]
WHEN_CUT_OFF: tuple[WhenCutOff, ...] = ("stop", "run_on")


class Policy(Struct, frozen=True, kw_only=True):
    """What the transitions of one node go by."""

    dlq: bool = True
    dlq_max: int = 10_000
    max_losses: int = 3
    dedup: bool = True
    lease_ttl: int = 30_000
    renew_interval: int = 10_000
    retention: int = 604_800_000
    retention_max: int = 1_000_000
    events: bool = True
    events_max: int = 100_000
    log_lines_max: int = 200
    attempts_max: int = 20  # earlier runs of a task that are kept
