"""The rules that are set by hand, as the store keeps them: read to be shown, and changed by compare-and-set."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sized
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from tickwork.client.access import Access
from tickwork.clock import to_datetime, to_millis
from tickwork.errors import ConfigError, StoreError, StoreUnavailable
from tickwork.handlers.options import aware, seconds
from tickwork.handlers.options import note as read_note
from tickwork.host import user_at_host
from tickwork.model.facts import NewFact
from tickwork.model.gates import MARK, RULES_MAX, Book, Switch, is_whole, write_book
from tickwork.store.contract import Stats, Store
from tickwork.texts import cut, shown

TRIES = 50  # each failure means that another process has changed the rules meanwhile
NOTE_MAX = 300  # characters: all workers read all notes
BY_MAX = 128

Until = datetime | timedelta | None
Change = tuple[Book, NewFact]

_decode = msgspec.json.Decoder(Book).decode
_UNREADABLE = "the rules of limits, breakers and switches were written by another version of Tickwork"


async def read(store: Store) -> Book:
    """To show it. What a later version has added to it is left out."""
    return _readable(await store.marks.get(MARK))


async def asides(store: Store, shut: Collection[str]) -> dict[str, int]:
    """Of the types among what was shut by hand (`type:mail`): how many tasks workers leave aside meanwhile. These ask
    at no gate."""
    types = [of for of in shut if of.startswith("type:")]
    return asides_in(await store.queries.stats(), types) if types else {}


def asides_in(stats: Stats, shut: Collection[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for (_, kind), count in stats.parked.items():
        if (of := f"type:{kind}") in shut:
            counts[of] = counts.get(of, 0) + count
    return counts


async def change(store: Store, edit: Callable[[Book], Change | None]) -> bool:
    """Write what `edit` makes of the book, and tell of it in the same step; False if it answers None. It is called
    again when others have changed the book meanwhile."""
    for _ in range(TRIES):
        text = await store.marks.get(MARK)
        book = _readable(text)
        if not is_whole(text):
            raise StoreError(f"{_UNREADABLE}, and a change would lose some of them; use that version to change them")
        changed = edit(book)
        if changed is None:
            return False
        new, fact = changed
        if await store.marks.swap(MARK, text, write_book(replace(new, version=book.version + 1)), [fact]):
            return True
    raise StoreUnavailable("the rules of limits, breakers and switches are changed by others all the time")


def _readable(text: str | None) -> Book:
    try:
        return Book() if text is None else _decode(text)
    except msgspec.MsgspecError:
        raise StoreError(f"{_UNREADABLE}, and cannot be read; they are left as they are") from None


def check_room(rules: Sized, what: str) -> None:
    """For one more."""
    if len(rules) >= RULES_MAX:
        raise ConfigError(f"there are {len(rules):,} {what} already, which is the most; remove some first")


def who(access: Access, by: str | None) -> str:
    """The id of this scheduler if nobody is named, or whose process it is."""
    return access.config.scheduler_id or user_at_host() if by is None else cut(read_note("by", by), BY_MAX)


def short_note(note: str) -> str:
    return cut(read_note("note", note), NOTE_MAX)


def end_of(until: Until, now: int) -> int:
    """In milliseconds; 0 is no end."""
    if until is None:
        return 0
    if isinstance(until, datetime):
        at = to_millis(aware("until", until))
    else:
        at = now + round(1000 * seconds("until", until))
    if at <= now:
        raise ConfigError(f"until must be in the future, not {shown(until)}")
    return at


def moment_of(at: int) -> datetime | None:
    return to_datetime(at) if at else None


def told(by: str, *parts: str) -> str:
    """What the log says of a change: by whom, and what."""
    what = "; ".join(part for part in parts if part)
    if by and what:
        return f"by {by}: {what}"
    return f"by {by}" if by else what


def told_of(switch: Switch) -> str:
    until = f"until {to_datetime(switch.until):%Y-%m-%dT%H:%M:%SZ}" if switch.until else ""
    return told(switch.by, switch.note, until)


def split(what: str, of: str, forms: tuple[str, ...]) -> tuple[str, str]:
    """The kind and the name of `type:mail`. `forms` are those that may be, such as `type:NAME`."""
    kind, colon, name = of.partition(":") if isinstance(of, str) else ("", "", "")
    if not (colon and name) or kind not in {form.partition(":")[0] for form in forms}:
        raise ConfigError(f"{what} must be {' or '.join(forms)}, not {shown(of)}")
    return kind, name
