"""Pages of tasks. Each list is walked along one index, so that a page never looks at more than it may."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tickwork.model.tasks import DELAYED, ENDS, Record, Status
from tickwork.store.contract import PAGE_MAX, Query
from tickwork.store.rules import matches, read_cursor
from tickwork.store.sqlite.connection import Connection
from tickwork.store.sqlite.rows import Rows
from tickwork.store.sqlite.schema import IN_DELAYED, IN_ENDS, LISTS, qualify


def missing_lists(connection: Connection) -> list[str]:
    """The columns that have no index for lists now."""
    there = {name for (name,) in connection.all("SELECT name FROM sqlite_master WHERE type = 'index'")}
    return [column for column in LISTS if qualify(f"#by_{column}", connection.namespace).strip('"') not in there]


def page(connection: Connection, rows: Rows, query: Query) -> tuple[list[Record], str | None]:
    column = next((name for name in ("key", "type", "queue") if getattr(query, name) is not None), None)
    if column is not None and not missing_lists(connection):
        looked, limit = _by_submit(rows, query, f"{column} = ? AND ", (getattr(query, column),), column)
        return _chosen(query, looked, [str(record.seq) for record in looked], limit)
    if query.status in DELAYED:
        after = read_cursor(query, 0, 0)
        looked = rows.where(f"{IN_DELAYED} AND (due_at, seq) > (?, ?) ORDER BY due_at, seq LIMIT ?", (*after, PAGE_MAX))
        return _chosen(query, looked, [f"{record.due_at}.{record.seq}" for record in looked], PAGE_MAX)
    if query.status in ENDS:
        limit = _limit(query)
        looked = rows.where(
            f"{IN_ENDS} AND status = ? AND position < ? ORDER BY position DESC LIMIT ?",
            (query.status.value, *read_cursor(query, 2**62), limit),
        )
        return _chosen(query, looked, [str(record.position) for record in looked], limit)
    few = query.status in (Status.RUNNING, Status.ASSIGNED, Status.BLOCKED)
    looked, limit = _by_submit(
        rows, query, f"status = '{query.status}' AND " if few else "", (), "status" if few else ""
    )
    return _chosen(query, looked, [str(record.seq) for record in looked], limit)


def _by_submit(rows: Rows, query: Query, condition: str, params: Sequence[str], exact: str) -> tuple[list[Record], int]:
    limit = _limit(query, exact)
    before = read_cursor(query, 2**62)
    return rows.where(f"{condition}seq < ? ORDER BY seq DESC LIMIT ?", (*params, *before, limit)), limit


def _limit(query: Query, exact: str = "status") -> int:
    """How many entries to look at: no more than are asked for, if the walk along `exact` meets no others."""
    blank = {name: None for name in ("status", "type", "queue", "key") if name == exact}
    bare = replace(query, **blank) == Query(limit=query.limit, cursor=query.cursor, tags=query.tags) and not query.tags
    return min(query.limit + 1, PAGE_MAX) if bare else PAGE_MAX


def _chosen(query: Query, looked: list[Record], keys: list[str], limit: int) -> tuple[list[Record], str | None]:
    found: list[Record] = []
    for record, key in zip(looked, keys, strict=True):
        if matches(record, query):
            found.append(record)
            if len(found) == query.limit:
                return found, key if key != keys[-1] or len(looked) == limit else None
    return found, keys[-1] if len(looked) == limit else None
