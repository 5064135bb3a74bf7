"""The log of facts, and the audit log."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tickwork.server.audit import AuditRow, Journal, Wanted
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.exports import csv_of
from tickwork.server.operations import operation
from tickwork.server.operations.tasks import Limit, Name
from tickwork.server.rows import EventRow, event_row
from tickwork.store.contract import PAGE_MAX

Number = Annotated[int, Meta(ge=0, le=2**62)]
Part = Annotated[str, Meta(max_length=200)]
EXPORT_MAX = 10_000
LOOKS = 30  # pages of the log that one request looks at
STRIDE = 8


class EventPage(Struct, frozen=True, kw_only=True):
    """Facts of the log, the newest first. `before` asks for older ones; `missed` says that facts have left the log."""

    items: list[EventRow]
    before: int | None
    last: int
    missed: bool


class AuditPage(Struct, frozen=True, kw_only=True):
    items: list[AuditRow]
    before: int | None


@operation("GET", "/events", Right.VIEW)
async def list_events(
    call: Call,
    before: Number | None = None,
    limit: Limit = 100,
    kind: Annotated[str, Meta(max_length=64)] | None = None,
    id: Annotated[str, Meta(max_length=700)] | None = None,
    type: Name | None = None,
    worker: Annotated[str, Meta(max_length=128)] | None = None,
) -> EventPage:
    """Facts of the log, the newest first.

    `kind` is that of the facts, such as `task.died`, or what stands before the dot.
    """
    log = (await call.space.store()).log
    last = await log.last()
    oldest, gone = await log.read(0, 1)
    end = oldest[0].seq if oldest else last + 1
    top = last + 1 if before is None else min(before, last + 1)
    found: list[EventRow] = []
    span = PAGE_MAX
    for _ in range(LOOKS):
        if top <= end or len(found) > limit:
            break
        start = max(top - 1 - span, end - 1)
        facts, _ = await log.read(start, PAGE_MAX)
        if len(facts) == PAGE_MAX and facts[-1].seq < top - 1:  # these are the oldest of more than a page
            span = max(span // STRIDE, 1)
            continue
        below = [each for each in facts if each.seq < top]
        rows = [event_row(each, call.mask) for each in reversed(below)]
        found += [each for each in rows if _fits(each, kind, id, type, worker)]
        top = start + 1
        if len(below) < PAGE_MAX // STRIDE:  # numbers have gaps, some of them of years
            span *= STRIDE
    items = found[:limit]
    more = items[-1].seq if len(found) > limit else top if top > end else None
    return EventPage(items=items, before=more, last=last, missed=bool(gone))


def _fits(fact: EventRow, kind: str | None, id: str | None, type: str | None, worker: str | None) -> bool:
    """By what is shown of it: the id of a switch may be hidden."""
    if kind is not None and fact.kind != kind and not fact.kind.startswith(f"{kind}."):
        return False
    return id in (None, fact.id) and type in (None, fact.type) and worker in (None, fact.worker_id)


@operation("GET", "/audit", Right.OPERATE)
async def list_audit(
    call: Call,
    journal: Journal = "changes",
    before: Number | None = None,
    limit: Limit = 100,
    who: Part = "",
    what: Part = "",
    target: Part = "",
) -> AuditPage:
    """Who has changed what, who was refused and who signed in; the newest first.

    `who`, `what` and `target` are each a part of that text, in any case. With them a page may be short and still have
    older ones after it: ask for what is before.
    """
    rows, older = await call.space.audit.read(journal, before, limit, _wanted(who, what, target))
    return AuditPage(items=rows, before=older)


@operation("GET", "/audit/export", Right.OPERATE, media="text/csv")
async def export_audit(
    call: Call, journal: Journal = "changes", who: Part = "", what: Part = "", target: Part = ""
) -> str:
    """The audit log as CSV: the last 10,000 entries, or of those that fit as many as are found in a while."""
    found: list[AuditRow] = []
    before: int | None = None
    for _ in range(EXPORT_MAX // PAGE_MAX):
        page, before = await call.space.audit.read(journal, before, PAGE_MAX, _wanted(who, what, target))
        found += page
        if before is None:
            break
    return csv_of(AuditRow, found)


def _wanted(who: str, what: str, target: str) -> Wanted | None:
    return Wanted(who, what, target) if who or what or target else None
