"""Settings: the options in force, what is right and wrong with the store, and saved views."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from tickwork.client.checkup import check_patient, examine
from tickwork.config import OPTIONS, shown_option
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.documents import read_document
from tickwork.server.filters import names_values, parse
from tickwork.server.operations import operation
from tickwork.server.operations.queues import Changed
from tickwork.server.operations.tasks import Name, Q
from tickwork.server.problems import Refused

VIEWS = "views"
VIEWS_MAX = 500
_SECRET = ("secret_file", "webhooks", "endpoints", "grpc_targets")


class OptionRow(Struct, frozen=True, kw_only=True):
    """An option with its value, as text, and where that comes from."""

    name: str
    value: str
    origin: str


class FindingRow(Struct, frozen=True, kw_only=True):
    """One thing that was looked at in the store, and what to do about it."""

    level: Literal["ok", "warning", "problem"]
    text: str
    advice: str


class SavedView(Struct, frozen=True, kw_only=True):
    """A filter with a name, for all who use this namespace."""

    name: str
    filter: str
    by: str


_decode_view = msgspec.json.Decoder(SavedView).decode


class SaveView(Struct, forbid_unknown_fields=True):
    filter: Q


@operation("GET", "/config", Right.ADMINISTER)
async def get_config(call: Call) -> list[OptionRow]:
    """Every option of this server: its value, with secrets masked, and where it comes from."""
    config = call.client.config
    origins: dict[str, str] = getattr(getattr(call.client, "loaded", None), "origins", {})
    return [
        OptionRow(name=name, value=_shown(name, getattr(config, name)), origin=origins.get(name, "default"))
        for name in OPTIONS
    ]


def _shown(name: str, value: Any) -> str:
    return ("set" if value else "not set") if name in _SECRET else shown_option(name, value)


@operation("GET", "/doctor", Right.OPERATE)
async def get_findings(call: Call) -> list[FindingRow]:
    """What is right and wrong with the store, its workers and schedules, as `tickwork doctor` tells it, but for the
    audit, which looks at every task."""
    patient = await examine(call.client, audit=False)
    found = [*patient.store, *check_patient(patient)]
    return [FindingRow(level=each.level, text=each.text, advice=each.advice) for each in found]


@operation("GET", "/views", Right.VIEW)
async def list_views(call: Call) -> list[SavedView]:
    """The filters that were saved, by name."""
    control = (await call.space.store()).control
    found: list[SavedView] = []
    after = ""
    while page := await control.page(VIEWS, after):
        read = [read_document(VIEWS, each, _decode_view) for each in page]
        found += [each for each in read if each is not None]
        after = page[-1].name
    # Who may not see values of tasks is not told those that others look for either.
    return [each for each in found if not (call.mask and names_values(each.filter))]


@operation("PUT", "/views/{name}", Right.OPERATE, changes="saved a view")
async def save_view(call: Call, name: Name, body: SaveView) -> SavedView:
    """Save a filter under a name, in the place of one that has it already."""
    call.tell(name, body.filter)
    store = await call.space.store()
    parse(body.filter, store.now())
    view = SavedView(name=name, filter=body.filter, by=call.caller.name)
    before = await store.control.get(VIEWS, name)
    if not await store.control.swap(VIEWS, name, before, msgspec.json.encode(view).decode(), VIEWS_MAX):
        raise Refused(
            409, "not_saved", f"the view was changed by others just now, or there are {VIEWS_MAX} views already"
        )
    return view


@operation("DELETE", "/views/{name}", Right.OPERATE, changes="deleted a view")
async def delete_view(call: Call, name: Name) -> Changed:
    """Forget a view."""
    call.tell(name)
    control = (await call.space.store()).control
    before = await control.get(VIEWS, name)
    return Changed(before is not None and await control.swap(VIEWS, name, before, None))
