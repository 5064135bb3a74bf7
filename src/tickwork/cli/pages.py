"""Pages of tasks. A store looks at a bounded number of tasks a call, so a filter may find nothing in many of them."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tickwork.cli.session import now_of
from tickwork.client.listing import PAGES_MAX
from tickwork.store.contract import PAGE_MAX

if TYPE_CHECKING:
    from tickwork.client.client import Client
    from tickwork.model.info import Page, TaskInfo

ROUND = PAGES_MAX * PAGE_MAX
ROUNDS = 25  # without any find, before whoever waits is asked


class Found(NamedTuple):
    page: Page[TaskInfo]
    looked: int  # tasks that were looked at for nothing
    now: datetime

    def empty(self, nothing: str) -> str:
        """What to say of a page without tasks."""
        return nothing if self.page.cursor is None else f"none among the first {self.looked:,} tasks looked at"

    def show_rest(self) -> None:
        if self.page.cursor is not None:
            click.secho(f"{'more' if self.page.items else 'go on'} with --cursor {self.page.cursor}", dim=True)


async def find(client: Client, cursor: str | None, **query: Any) -> Found:
    """The next page with tasks on it."""
    looked = 0
    while True:
        page = await client.list_tasks(cursor=cursor, **query)
        if page.items or page.cursor is None:
            break
        looked, cursor = looked + ROUND, page.cursor
        if looked >= ROUND * ROUNDS:
            break
        if sys.stderr.isatty():
            click.echo(f"none among the first {looked:,} tasks, looking on ...", err=True)
    return Found(page, looked, await now_of(client))
