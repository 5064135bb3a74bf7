"""Groups of failures that somebody has muted: they are shown as such, and nobody is asked to look at them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec import Struct

from tickwork.clock import to_datetime
from tickwork.model.reports import FailureGroup
from tickwork.server.documents import read_document
from tickwork.server.problems import Refused
from tickwork.store.contract import Document, Store

KIND = "mutes"  # of documents, by the id of the group
MUTES_MAX = 500


class Mute(Struct, frozen=True, kw_only=True):
    """Who has muted a group of failures and why, and when that ends."""

    by: str
    note: str
    since: datetime
    until: datetime


class FailureRow(FailureGroup, frozen=True, kw_only=True):
    """A group of failures, and whether somebody has muted it."""

    muted: Mute | None = None


_decode = msgspec.json.Decoder(Mute).decode


async def with_mutes(store: Store, groups: Iterable[FailureGroup]) -> list[FailureRow]:
    mutes = {name: mute for name, (_, mute) in (await _all(store)).items() if mute.until > to_datetime(store.now())}
    return [
        FailureRow(**{name: getattr(each, name) for name in FailureGroup.__struct_fields__}, muted=mutes.get(each.id))
        for each in groups
    ]


async def mute(store: Store, group: str, new: Mute) -> None:
    """In the place of one that there is already; those that have ended are dropped."""
    for name, (text, old) in (await _all(store)).items():
        if old.until <= to_datetime(store.now()):
            await store.control.swap(KIND, name, text, None)
    before = await store.control.get(KIND, group)
    if not await store.control.swap(KIND, group, before, msgspec.json.encode(new).decode(), MUTES_MAX):
        raise Refused(
            409, "not_muted", f"the group was muted by others just now, or {MUTES_MAX} groups are muted already"
        )


async def unmute(store: Store, group: str) -> bool:
    """False if it was not muted."""
    before = await store.control.get(KIND, group)
    if before is None:
        return False
    old = read_document(KIND, Document(group, before), _decode)
    gone = await store.control.swap(KIND, group, before, None)
    return gone and old is not None and old.until > to_datetime(store.now())


async def _all(store: Store) -> dict[str, tuple[str, Mute]]:
    found: dict[str, tuple[str, Mute]] = {}
    after = ""
    while page := await store.control.page(KIND, after):
        for each in page:
            if (old := read_document(KIND, each, _decode)) is not None:
                found[each.name] = (each.text, old)
        after = page[-1].name
    return found
