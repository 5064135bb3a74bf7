"""Pages of tasks, by status, type, queue, key and tags."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from tickwork.client.access import Access
from tickwork.client.views import task_info
from tickwork.errors import ConfigError, TickworkError
from tickwork.handlers.options import count
from tickwork.handlers.options import tags as read_tags
from tickwork.model.info import Page, TaskInfo
from tickwork.model.tasks import Record, Status
from tickwork.store.contract import Query
from tickwork.texts import shown

CURSOR = re.compile(r"[0-9]+(\.[0-9A-Za-z._:@/-]{1,400})?")
PAGES_MAX = 20  # index pages that one call may look through


async def list_tasks(
    access: Access,
    status: Status | str | None = None,
    *,
    type: str | None = None,
    queue: str | None = None,
    key: str | None = None,
    tags: dict[str, str] | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[TaskInfo]:
    count("limit", limit, 1, 1000)
    if cursor is not None and not (isinstance(cursor, str) and CURSOR.fullmatch(cursor)):
        raise TickworkError(f"cursor {shown(cursor)} is not one that an earlier page gave")
    query = query_of(status, type, queue, key, tags)
    store = await access.open_store()
    found: list[Record] = []
    for _ in range(PAGES_MAX):
        records, cursor = await store.queries.page(replace(query, limit=limit - len(found), cursor=cursor))
        found += records
        if cursor is None or len(found) >= limit:
            break
    return Page([task_info(record, access.registry) for record in found], cursor)


def query_of(
    status: Status | str | None,
    type: str | None,
    queue: str | None,
    key: str | None,
    tags: Mapping[str, str] | None,
) -> Query:
    """What a caller asks for, checked."""
    for what, text in (("type", type), ("queue", queue), ("key", key)):
        if text is not None and not isinstance(text, str):
            raise ConfigError(f"{what} must be a text, not {shown(text)}")
    wanted = Status.parse(status) if isinstance(status, str) else status
    return Query(wanted, type, queue, key, None if tags is None else read_tags(tags))
