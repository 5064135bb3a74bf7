"""`app.events`: read the log of facts, and follow it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection

from tickwork.client import views
from tickwork.client.access import Access
from tickwork.clock import to_datetime
from tickwork.errors import ConfigError, StoreUnavailable
from tickwork.handlers.options import count, known_id
from tickwork.model import facts
from tickwork.model.facts import Fact
from tickwork.model.info import Event
from tickwork.store.hints import EVENTS
from tickwork.texts import shown

EVENT_BATCH = 500
NUMBER_MAX = 2**62  # of facts


class Events:
    """The log of facts: read it, or follow it live."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def read(self, after: int = 0, limit: int = 100, *, task_id: str | None = None) -> list[Event]:
        """Facts after number `after`, in order. Give the last one's `seq` to go on."""
        count("after", after, 0, NUMBER_MAX)
        count("limit", limit, 0, NUMBER_MAX)
        if task_id is not None:
            known_id(task_id)
        found, _ = await (await self._access.open_store()).log.read(after, limit, task_id)
        return [views.event(fact) for fact in found]

    def subscribe(
        self,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        queues: Collection[str] | None = None,
        task_id: str | None = None,
        after: int | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Follow the log from now (or from number `after`).

        Nothing is buffered for a slow consumer beyond the log itself; what the log has dropped meanwhile is told as one
        `log.missed` event that says how many.
        """
        if kinds is not None:
            check_kinds(kinds)

        def wanted(fact: facts.Event) -> bool:
            return (
                (kinds is None or fact.kind in kinds)
                and (types is None or fact.type in types)
                and (queues is None or fact.queue in queues)
                and (task_id is None or fact.id == task_id)
            )

        return self._follow(wanted, after)

    async def _follow(self, wanted: Callable[[facts.Event], bool], after: int | None) -> AsyncGenerator[Event, None]:
        store = await self._access.open_store()
        seen = await store.log.last() if after is None else after
        with store.hint(EVENTS) as hint:
            while True:
                try:
                    found, missed = await store.log.read(seen, EVENT_BATCH)
                    if missed:
                        seen = found[0].seq - 1 if found else await store.log.last()
                except StoreUnavailable as error:  # it goes on where it was when the store is back
                    store.contact.lost("events", error)
                    await asyncio.sleep(1.0)
                    continue
                store.contact.made("events")
                if missed:
                    at = to_datetime(store.now())
                    yield Event(seq=seen, at=at, kind=Fact.LOG_MISSED, id="", detail=f"{missed} events")
                for fact in found:
                    seen = fact.seq
                    if wanted(fact):
                        yield views.event(fact)
                if len(found) < EVENT_BATCH:
                    await hint.wait(1.0)


def check_kinds(kinds: Collection[str]) -> None:
    """A misspelt kind would never come."""
    if isinstance(kinds, str):
        raise ConfigError(f"kinds must be a list of kinds, such as [{shown(kinds)}], not {shown(kinds)}")
    for kind in kinds:
        if kind not in {*Fact}:
            family = f"{kind}".partition(".")[0]
            known = [str(fact) for fact in Fact if fact.partition(".")[0] == family] or map(str, Fact)
            raise ConfigError(f"unknown kind of event {shown(kind)}; known are {', '.join(known)}")
