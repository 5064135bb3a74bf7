"""Who takes part: the workers that have registered, and the leader."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field


class Worker(Struct, frozen=True, kw_only=True):
    """A member as stores keep it: one pool of slots in one process. Users are shown a `WorkerInfo`."""

    id: str
    node: str = ""
    host: str = ""
    pid: int = 0
    pid_started: str = ""
    address: str = ""
    queues: tuple[str, ...] = ("default",)
    task_types: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    weight: int = 1
    capacity: int = 10
    running: int = 0
    leaked: int = 0
    started_at: int = 0
    beat_at: int = 0
    expires_at: int = 0
    lost_at: int | None = None

    @property
    def status(self) -> Literal["idle", "busy", "offline"]:
        """Idle and busy ones are both online."""
        if self.lost_at is not None:
            return "offline"
        return "busy" if self.running >= self.capacity else "idle"


class Leader(Struct, frozen=True):
    """Who leads, in which term, until when by the store's clock, and for how long at a time."""

    id: str
    term: int
    until: int
    ttl: int
