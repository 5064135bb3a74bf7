"""The leader's part in limits, breakers and switches: it wakes those who may go on, and lifts what was set for a
time."""

from __future__ import annotations

from msgspec.structs import replace

from tickwork.model.facts import Fact, NewFact
from tickwork.model.gates import MARK, Book, Switch, breaker_gate, is_whole, read_book, switch_gate, write_book
from tickwork.store.contract import Store
from tickwork.worker.admission import wake

EVERY = 1.0  # seconds


async def watch_gates(store: Store, limit: int) -> float | None:
    """Wake tasks at gates that have room since a time came. Where many wait, the rest comes at once."""
    await _lift(store)
    woken = await store.gates.wake(limit)
    await wake(store, woken)
    return 0 if len(woken) == limit else None


async def _lift(store: Store) -> None:
    """Lift switches, and close breakers, whose time is over. If that is interrupted, those who wait ask again later by
    themselves. Rules of a later version are left to its nodes."""
    text = await store.marks.get(MARK)
    book, now = read_book(text), store.now()
    over = {name for name, switch in book.switches.items() if _is_over(switch, now)}
    closed = {name for name, switch in book.breakers.items() if _is_over(switch, now)}
    if not (over or closed) or not is_whole(text):
        return
    new = _without(book, over, closed)
    facts = [NewFact(Fact.SWITCH_ON, name, "its time is over") for name in sorted(over)]
    facts += [NewFact(Fact.BREAKER_CLOSED, breaker_gate(name), "its time is over") for name in sorted(closed)]
    if await store.marks.swap(MARK, text, write_book(new), facts):
        for gate in (*map(switch_gate, over), *map(breaker_gate, closed)):
            await store.gates.reset(gate)


def _is_over(switch: Switch, now: int) -> bool:
    return 0 < switch.until <= now


def _without(book: Book, switches: set[str], breakers: set[str]) -> Book:
    return replace(
        book,
        version=book.version + 1,
        switches={name: switch for name, switch in book.switches.items() if name not in switches},
        breakers={name: switch for name, switch in book.breakers.items() if name not in breakers},
    )
