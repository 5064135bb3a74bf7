"""`app.events`: read the log of facts, and follow it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Generator
from types import TracebackType
from typing import Any

from tickwork.client import views
from tickwork.client.access import Access
from tickwork.clock import to_datetime
from tickwork.errors import ConfigError, StoreUnavailable
from tickwork.handlers.options import count, known_id
from tickwork.model import facts
from tickwork.model.facts import Fact
from tickwork.model.info import Event
from tickwork.store.contract import FactLog, Store
from tickwork.store.hints import EVENTS
from tickwork.texts import shown

EVENT_BATCH = 500
NUMBER_MAX = 2**62  # of facts
CLOSE_ENOUGH = 500  # facts that are read in any case


class Subscription:
    """The facts of the log as they come: `async for event in subscription`.

    It begins where the log ends when it is entered (`async with`) or awaited, or else at the first step of the loop;
    all that happens after that is told. `aclose()`, or leaving `async with`, ends it.
    """

    def __init__(self, access: Access, wanted: Callable[[facts.Event], bool], after: int | None) -> None:
        self._access = access
        self._wanted = wanted
        self._seen = after
        self._events = self._follow()

    def __await__(self) -> Generator[Any, None, Subscription]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Subscription:
        await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Event:
        return await self._events.__anext__()

    async def aclose(self) -> None:
        await self._events.aclose()

    async def _begin(self) -> tuple[Store, int]:
        store = await self._access.open_store()
        if self._seen is None:
            self._seen = await store.log.last()
        return store, self._seen

    async def _follow(self) -> AsyncGenerator[Event, None]:
        store, seen = await self._begin()
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
                    if self._wanted(fact):
                        yield views.event(fact)
                if len(found) < EVENT_BATCH:
                    await hint.wait(1.0)


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

    async def last(self) -> int:
        """The number of the newest fact, 0 if there is none: what happens from now on is after it."""
        return await (await self._access.open_store()).log.last()

    def subscribe(
        self,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        queues: Collection[str] | None = None,
        task_id: str | None = None,
        after: int | None = None,
    ) -> Subscription:
        """Follow the log from now (or from number `after`): `async for event in app.events.subscribe(): ...`.

        To miss nothing of what you do next, let it begin first: `async with app.events.subscribe() as events: ...`, or
        `events = await app.events.subscribe()`.

        Nothing is buffered for a slow consumer beyond the log itself; what the log has dropped meanwhile is told as one
        `log.missed` event that says how many.
        """
        if kinds is not None:
            check_kinds(kinds)
        if after is not None:
            count("after", after, 0, NUMBER_MAX)

        def wanted(fact: facts.Event) -> bool:
            return (
                (kinds is None or fact.kind in kinds)
                and (types is None or fact.type in types)
                and (queues is None or fact.queue in queues)
                and (task_id is None or fact.id == task_id)
            )

        return Subscription(self._access, wanted, after)


def check_kinds(kinds: Collection[str]) -> None:
    """A misspelt kind would never come."""
    if isinstance(kinds, str):
        raise ConfigError(f"kinds must be a list of kinds, such as [{shown(kinds)}], not {shown(kinds)}")
    for kind in kinds:
        if kind not in {*Fact}:
            family = f"{kind}".partition(".")[0]
            known = [str(fact) for fact in Fact if fact.partition(".")[0] == family] or map(str, Fact)
            raise ConfigError(f"unknown kind of event {shown(kind)}; known are {', '.join(known)}")


async def number_at(log: FactLog, moment: int) -> int:
    """A number of the log before the facts of that time, and not long before: to read all of a log would take long."""
    first, _ = await log.read(0, 1)
    low, high = first[0].seq - 1 if first else 0, await log.last()
    while high - low > CLOSE_ENOUGH:
        middle = (low + high) // 2
        found, _ = await log.read(middle, 1)
        if found and found[0].at < moment:
            low = middle
        else:
            high = middle
    return low
