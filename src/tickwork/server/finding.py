"""Pages of the tasks that a filter matches, and why those that wait do not run."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tickwork.client.explain import explain
from tickwork.client.holds import Passage, passages, shut_by_hand
from tickwork.client.views import HELD_BY, seen_at, task_info
from tickwork.errors import StoreError
from tickwork.model.gates import MARK, Book, read_book
from tickwork.model.info import Explanation
from tickwork.model.tasks import MOVABLE, Record, Status
from tickwork.server import filters
from tickwork.server.filters import Filter
from tickwork.server.masking import Mask
from tickwork.server.problems import Refused, refused_cursor
from tickwork.server.rows import HeldBy, TaskRow, row_of
from tickwork.server.spaces import Space
from tickwork.server.stops import stops_of
from tickwork.store.contract import PAGE_MAX, Query, Situation, Store

LOOKS = 10  # pages of the store that one request looks through
PLAN_MAX = 60  # lists that one filter may go through
HELD_LOOKS = 20  # different tasks whose limits are looked at for one list
_CURSOR = re.compile(r"([0-9]{1,3})~(.*)", re.DOTALL)  # behind it, one of the store, which knows its own


class Found(Struct, frozen=True):
    """Tasks of one request, where to go on, and how many were looked at."""

    records: list[Record]
    cursor: str | None
    looked: int


def plan(wanted: Filter) -> list[Query]:
    """The lists of the store that a filter goes through, one after another."""
    statuses: tuple[Status | None, ...] = wanted.status or (None,)
    names = itertools.product(wanted.type or (None,), wanted.queue or (None,), wanted.key or (None,))
    queries = [Query(status, *each) for each in names for status in statuses]
    if len(queries) > PLAN_MAX:
        raise Refused(
            400, "bad_filter", f"the filter names {len(queries)} combinations of values, more than {PLAN_MAX}"
        )
    return queries


async def read_filter(store: Store, text: str, now: int, mask: Mask = filters.NOTHING_HIDDEN) -> Filter:
    """What a filter means now. Only `waits:` depends on what is stopped by hand."""
    stops = await stops_of(store) if "waits:" in text else filters.NOTHING_STOPPED
    return filters.parse(text, now, mask, stops)


async def find(store: Store, wanted: Filter, limit: int, cursor: str | None) -> Found:
    if wanted.ids:
        return await _find_named(store, wanted)
    queries = plan(wanted)
    at, inner = _read_cursor(cursor, len(queries))
    found: list[Record] = []
    looked = 0
    for _ in range(LOOKS):
        records, inner = await _page(store, replace(queries[at], limit=min(limit - len(found), PAGE_MAX), cursor=inner))
        looked += len(records)
        found += filter(wanted.fits, records)
        if inner is None:
            at += 1
        if at >= len(queries) or len(found) >= limit:
            break
    return Found(found, None if at >= len(queries) else f"{at}~{inner or ''}", looked)


def _read_cursor(cursor: str | None, lists: int) -> tuple[int, str | None]:
    if cursor is None:
        return 0, None
    match = _CURSOR.fullmatch(cursor)
    if match is None or int(match[1]) >= lists:
        raise refused_cursor(cursor)
    return int(match[1]), match[2] or None


async def _page(store: Store, query: Query) -> tuple[list[Record], str | None]:
    """A store knows its own cursors; one that it does not know was sent by the caller."""
    try:
        return await store.queries.page(query)
    except StoreError as error:
        if query.cursor is not None and type(error) is StoreError:
            raise refused_cursor(query.cursor) from None
        raise


async def _find_named(store: Store, wanted: Filter) -> Found:
    looked = [await store.queries.get(task_id) for task_id in dict.fromkeys(wanted.ids)]
    there = [record for record in looked if record is not None]
    return Found([each for each in there if _in(wanted, each) and wanted.fits(each)], None, len(looked))


def _in(wanted: Filter, record: Record) -> bool:
    spec = record.spec
    pairs = (
        (wanted.status, record.status), (wanted.type, spec.type), (wanted.queue, spec.queue), (wanted.key, spec.key)
    )  # fmt: skip
    return all(not values or value in values for values, value in pairs)


async def pages(store: Store, wanted: Filter, until: int) -> AsyncIterator[list[Record]]:
    """All that match and were submitted by then, page by page; for bulk actions, which may take their time."""
    for query in plan(wanted):
        cursor: str | None = None
        while True:
            records, cursor = await store.queries.page(replace(query, limit=250, cursor=cursor))
            yield [each for each in records if each.submitted_at <= until and wanted.fits(each)]
            if cursor is None:
                break


async def rows(space: Space, records: Sequence[Record], mask: Mask) -> list[TaskRow]:
    """As a list shows them: those that wait say why."""
    store = await space.store()
    waiting = [each for each in records if not _runs(each)]
    book = read_book(await store.marks.get(MARK)) if waiting else Book()
    registry = space.client.registry
    shut = {each.id: shut_by_hand(book, registry, each.spec) for each in waiting}
    reasons = await _reasons(space, store, waiting, shut)
    infos = [task_info(each, registry) for each in records]
    return [row_of(info, mask, reasons.get(info.id), _held_by(shut.get(info.id))) for info in infos]


def _held_by(shut: list[Passage] | None) -> HeldBy | None:
    if not shut:
        return None
    return "switch" if shut[0].kind == "switch" else "breaker"


def _runs(record: Record) -> bool:
    return record.status is Status.RUNNING or record.status.ended


async def _reasons(space: Space, store: Store, waiting: list[Record], shut: dict[str, list[Passage]]) -> dict[str, str]:
    if not waiting:
        return {}
    now = store.now()
    pauses = await store.queries.paused()
    members = seen_at(await space.members(), now)
    running = {worker.id: worker.running for worker in members}
    looked: dict[object, Explanation] = {}
    reasons: dict[str, str] = {}
    for record in waiting:
        spec = record.spec
        by_hand = tuple(each.gate for each in shut[record.id])
        group = (spec.type, spec.queue, spec.key, record.status, record.parked, spec.needs, by_hand)
        known = looked.get(group) if record.status in MOVABLE and record.parked is not None else None
        if known is None:
            here = [each for each in pauses if each.name == (spec.queue if each.kind == "queue" else spec.type)]
            is_held = record.parked in HELD_BY and len(looked) < HELD_LOOKS
            gates = await passages(store, space.client.registry, spec) if is_held else shut[record.id]
            known = explain(Situation(record, 0, here, running), members, (), _clock, gates, now)
            looked[group] = known
        reasons[record.id] = known.text
    return reasons


def _clock(at: object) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
