"""`app.breakers`: what is stopped because it failed too often, or because somebody said so."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tickwork.client import rulebook
from tickwork.client.access import Access
from tickwork.errors import ConfigError
from tickwork.handlers.options import name
from tickwork.model.facts import Fact, NewFact
from tickwork.model.gates import MARK, Book, Switch, breaker_gate, read_book
from tickwork.store.contract import GateState, Store
from tickwork.texts import shown

FORMS = ("type:NAME", "target:EXECUTOR/TARGET")

BreakerState = Literal["open", "half_open", "closed"]


class BreakerInfo(Struct, frozen=True, kw_only=True):
    """A circuit breaker. It is `half_open` when its time is over: one task is let through to try.

    `open_until` is None while it is closed, and if somebody has opened it without an end. `by`, `note` and `since` are
    of one that was opened by hand.
    """

    of: str  # such as `type:mail` or `target:http/billing`
    state: BreakerState
    failures: int = 0  # in a row
    open_until: datetime | None = None
    waiting: int = 0
    by_hand: bool = False
    by: str = ""
    note: str = ""
    since: datetime | None = None


class Breakers:
    """Circuit breakers, each for all workers together. A breaker opens by itself where `breaker` is set for a handler
    or for all; by hand it can be opened and closed in any case."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(self) -> list[BreakerInfo]:
        """Those that are not closed, by name."""
        store = await self._access.open_store()
        return await breakers_of(store, await rulebook.read(store))

    async def get(self, of: str) -> BreakerInfo:
        """How a breaker is; one that nobody has heard of is closed."""
        check_breaker_name(of)
        store = await self._access.open_store()
        book, (state,) = await rulebook.read(store), await store.gates.look([breaker_gate(of)])
        aside = await rulebook.asides(store, [of] if of in book.breakers else [])
        return _info(of, state, book.breakers.get(of), store.now(), aside.get(of, 0))

    async def open(self, of: str, note: str = "", by: str | None = None, until: rulebook.Until = None) -> None:
        """Let no task of a type, or to a target of an executor, start: until `until` (a time, or how long from now), or
        until somebody closes it. What runs goes on."""
        check_breaker_name(of)
        store = await self._access.open_store()
        now = store.now()
        opened = Switch(now, rulebook.who(self._access, by), rulebook.short_note(note), rulebook.end_of(until, now))
        fact = NewFact(Fact.BREAKER_OPENED, breaker_gate(of), rulebook.told_of(opened))

        def edit(book: Book) -> rulebook.Change:
            if of not in book.breakers:
                rulebook.check_room(book.breakers, "breakers opened by hand")
            return replace(book, breakers={**book.breakers, of: opened}), fact

        await rulebook.change(store, edit)

    async def close(self, of: str, *, by: str | None = None) -> bool:
        """Let tasks through again, whether somebody has opened it or failures have; those count from 0. The tasks that
        wait start within seconds. False if it was closed already."""
        check_breaker_name(of)
        store = await self._access.open_store()
        gate = breaker_gate(of)
        fact = NewFact(Fact.BREAKER_CLOSED, gate, rulebook.told(rulebook.who(self._access, by)))
        (state,) = await store.gates.look([gate])

        def edit(book: Book) -> rulebook.Change | None:
            if of not in book.breakers:
                return None
            return replace(book, breakers={name: each for name, each in book.breakers.items() if name != of}), fact

        was_by_hand = await rulebook.change(store, edit)
        await store.gates.reset(gate)
        return was_by_hand or state.open_until > 0


async def unclosed(store: Store) -> list[BreakerInfo]:
    """Those that are not closed, for who watches: rules that cannot be read are none, as they are to workers."""
    return await breakers_of(store, read_book(await store.marks.get(MARK)))


async def breakers_of(store: Store, book: Book) -> list[BreakerInfo]:
    prefix = breaker_gate("")
    states = {state.name.removeprefix(prefix): state for state in await store.gates.opened()}
    missing = [of for of in book.breakers if of not in states]
    if missing:
        found = await store.gates.look([breaker_gate(of) for of in missing])
        states.update(zip(missing, found, strict=True))
    now, asides = store.now(), await rulebook.asides(store, book.breakers)
    return [_info(of, state, book.breakers.get(of), now, asides.get(of, 0)) for of, state in sorted(states.items())]


def check_breaker_name(of: str) -> None:
    kind, named = rulebook.split("a breaker", of, FORMS)
    if kind == "type":
        name("type", named)
        return
    executor, slash, target = named.partition("/")
    if not slash:
        raise ConfigError(f"a breaker must be {' or '.join(FORMS)}, not {shown(of)}")
    name("executor", executor)
    name("target", target)


def _info(of: str, state: GateState, by_hand: Switch | None, now: int, aside: int) -> BreakerInfo:
    until = state.open_until
    found: BreakerState = "closed" if not until else "open" if until > now else "half_open"
    if by_hand is not None:
        found, until = "open", by_hand.until
    return BreakerInfo(
        of=of,
        state=found,
        failures=state.failures,
        open_until=rulebook.moment_of(until),
        waiting=state.waiting + aside,
        by_hand=by_hand is not None,
        by="" if by_hand is None else by_hand.by,
        note="" if by_hand is None else by_hand.note,
        since=None if by_hand is None else rulebook.moment_of(by_hand.at),
    )
