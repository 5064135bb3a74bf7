"""Pages of tasks, by status, type, queue, key and tags."""

from __future__ import annotations

import re

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
    for what, text in (("type", type), ("queue", queue), ("key", key)):
        if text is not None and not isinstance(text, str):
            raise ConfigError(f"{what} must be a text, not {shown(text)}")
    tags = None if tags is None else read_tags(tags)
    store = await access.open_store()
    wanted = Status.parse(status) if isinstance(status, str) else status
    found: list[Record] = []
    for _ in range(PAGES_MAX):
        query = Query(wanted, type, queue, key, tags, limit - len(found), cursor)
        records, cursor = await store.queries.page(query)
        found += records
        if cursor is None or len(found) >= limit:
            break
    return Page([task_info(record, access.registry) for record in found], cursor)
