"""What somebody has stopped: paused queues and types, switches, and breakers that were opened by hand.

Such tasks are ready: workers do not ask for them, or leave them aside, so their records do not tell what they wait for.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from tickwork.client.rulebook import asides_in
from tickwork.model.gates import MARK, read_book, switch_names
from tickwork.model.tasks import Spec
from tickwork.store.contract import Stats, Store

StoppedBy = Literal["paused", "switch", "breaker"]


class Stops(Struct, frozen=True):
    """By name; switches and breakers by what they are of, such as `type:mail`."""

    queues: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    breakers: frozenset[str] = frozenset()

    def by(self, spec: Spec) -> StoppedBy | None:
        if not self.switches.isdisjoint(switch_names(spec)):
            return "switch"
        if f"type:{spec.type}" in self.breakers or f"target:{spec.executor}/{spec.target}" in self.breakers:
            return "breaker"
        return "paused" if spec.queue in self.queues or spec.type in self.types else None

    def aside(self, stats: Stats) -> int:
        """Tasks that workers leave aside, since a switch or a breaker stops all of their type."""
        return sum(asides_in(stats, self.switches | self.breakers).values())


async def stops_of(store: Store) -> Stops:
    pauses, book = await store.queries.paused(), read_book(await store.marks.get(MARK))
    return Stops(
        queues=frozenset(pause.name for pause in pauses if pause.kind == "queue"),
        types=frozenset(pause.name for pause in pauses if pause.kind == "type"),
        switches=frozenset(book.switches),
        breakers=frozenset(book.breakers),
    )
