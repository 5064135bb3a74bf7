"""The Redis store: many machines, one namespace.

Reading order: `keys.py` (what is where), `lua/parts/prelude.lua` and the scripts, `records.py` (a task as a string),
`tasks.py`, `partitions.py`, `members.py` and `queries.py` (the contract), `net/` (connections), `ops/` (for operators).
"""

from __future__ import annotations

from tickwork.store.contract import Capabilities
from tickwork.store.flat import Flat
from tickwork.store.redis.core import PATIENCE
from tickwork.store.redis.firing import Firing
from tickwork.store.redis.ops.audit import Audit
from tickwork.store.redis.ops.doctor import Doctor

SHORTEST_TIMEOUT = 0.5  # seconds

__all__ = ["PATIENCE", "RedisStore"]


class RedisStore(Firing, Audit, Doctor, Flat):
    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            shared=True,
            remote=True,
            own_clock=True,
            durabilities=("memory", "disk", "replicated"),
            partitions=len(self.layout.parts),
        )

    def sibling(self) -> RedisStore:
        """One for the heart: its own connections, and no patience, since it must know soon when it is cut off."""
        twin = type(self)(
            self.target,
            self.layout.namespace,
            self.policy,
            partitions=len(self.layout.parts),
            pool_size=1,
            patience=0.0,
            timeout=max(min(self._timeout, self.policy.lease_ttl / 3000), SHORTEST_TIMEOUT),
            durability=self.durability,
        )
        twin.contact = self.contact
        twin.server = self.server  # it is never opened, and its scripts must be those that this server knows
        return twin
