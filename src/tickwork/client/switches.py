"""`app.switches`: stop tasks of a type, a key or a tag without a deploy."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from tickwork.client import rulebook
from tickwork.client.access import Access
from tickwork.errors import ConfigError
from tickwork.handlers.options import name, tags, text
from tickwork.model.facts import Fact, NewFact
from tickwork.model.gates import Book, Switch, switch_gate
from tickwork.texts import shown

FORMS = ("type:NAME", "key:KEY", "tag:NAME=VALUE")
KEY_MAX = 512


class SwitchInfo(Struct, frozen=True, kw_only=True):
    """Tasks that are switched off: which, by whom and why, until when, and how many were held by it."""

    of: str  # such as `type:mail`, `key:acme` or `tag:customer=acme`
    by: str = ""
    note: str = ""
    since: datetime | None = None
    until: datetime | None = None  # None: until somebody switches them on
    waiting: int = 0


class Switches:
    """What is switched off does not start, in any process, until it is switched on again. What runs goes on."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(self) -> list[SwitchInfo]:
        """All that is switched off, by name."""
        store = await self._access.open_store()
        switches = sorted((await rulebook.read(store)).switches.items())
        states = await store.gates.look([switch_gate(of) for of, _ in switches]) if switches else []
        asides = await rulebook.asides(store, [of for of, _ in switches])
        return [
            SwitchInfo(
                of=of,
                by=switch.by,
                note=switch.note,
                since=rulebook.moment_of(switch.at),
                until=rulebook.moment_of(switch.until),
                waiting=state.waiting + asides.get(of, 0),
            )
            for (of, switch), state in zip(switches, states, strict=True)
        ]

    async def off(self, of: str, note: str = "", by: str | None = None, until: rulebook.Until = None) -> None:
        """Start no task of a type (`type:mail`), of a key (`key:acme`) or with a tag (`tag:customer=acme`): until
        `until` (a time, or how long from now), or until it is switched on. Say in `note` why."""
        check_switch_name(of)
        store = await self._access.open_store()
        now = store.now()
        switch = Switch(now, rulebook.who(self._access, by), rulebook.short_note(note), rulebook.end_of(until, now))
        fact = NewFact(Fact.SWITCH_OFF, of, rulebook.told_of(switch))

        def edit(book: Book) -> rulebook.Change:
            if of not in book.switches:
                rulebook.check_room(book.switches, "switches")
            return replace(book, switches={**book.switches, of: switch}), fact

        await rulebook.change(store, edit)

    async def on(self, of: str, *, by: str | None = None) -> bool:
        """Start them again; those that wait start within seconds. False if they were not switched off."""
        check_switch_name(of)
        store = await self._access.open_store()
        fact = NewFact(Fact.SWITCH_ON, of, rulebook.told(rulebook.who(self._access, by)))

        def edit(book: Book) -> rulebook.Change | None:
            if of not in book.switches:
                return None
            return replace(book, switches={name: each for name, each in book.switches.items() if name != of}), fact

        was_off = await rulebook.change(store, edit)
        await store.gates.reset(switch_gate(of))  # also if it was on: a call before may have been cut short here
        return was_off


def check_switch_name(of: str) -> None:
    kind, named = rulebook.split("a switch", of, FORMS)
    if kind == "type":
        name("type", named)
    elif kind == "key":
        text("key", named, KEY_MAX)
    else:
        tag, equals, value = named.partition("=")
        if not equals:
            raise ConfigError(f"a switch must be {' or '.join(FORMS)}, not {shown(of)}")
        tags({tag: value})
