"""Doing something to all tasks that a filter matches."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tickwork.server.bulk import BulkRun
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.operations import operation
from tickwork.server.previews import BulkWanted, Preview, preview


class RunBulk(Struct, forbid_unknown_fields=True):
    """`preview` is the handle that a preview gave, good for ten minutes and for whom it was given."""

    preview: Annotated[str, Meta(max_length=8000)]


@operation("POST", "/bulk/preview", Right.OPERATE)
async def preview_bulk(call: Call, body: BulkWanted) -> Preview:
    """Count the tasks that a bulk action would be done to, and get the handle to do it with."""
    return await preview(call.space, body, call.caller, call.mask, await call.plane.key())


@operation("POST", "/bulk", Right.OPERATE, status=202, changes="began a bulk action")
async def run_bulk(call: Call, body: RunBulk) -> BulkRun:
    """Do what a preview has shown, to tasks that were submitted before its moment.

    It goes on after the answer; `get_bulk` says how far it is.
    """

    async def ended(run: BulkRun) -> None:
        detail = f"{run.filter}: {run.done} done, {run.refused} refused"
        await call.space.audit.change(call.caller, f"ended a bulk action: {run.state}", run.action, detail)

    async def is_in() -> bool:
        return await call.plane.is_still_in(call.caller)

    run = await call.plane.bulk.begin(call.space, body.preview, call.caller, await call.plane.key(), is_in, ended)
    call.tell(run.action, f"{run.filter}: {run.expected} expected")
    return run


@operation("GET", "/bulk/{id}", Right.OPERATE)
async def get_bulk(call: Call, id: str) -> BulkRun:
    """How far a bulk action is. It is known to the server that began it, until that ends."""
    return call.plane.bulk.get(call.space, id)


@operation("DELETE", "/bulk/{id}", Right.OPERATE, changes="stopped a bulk action")
async def stop_bulk(call: Call, id: str) -> BulkRun:
    """Stop a bulk action; what is done stays done."""
    call.tell(id)
    return await call.plane.bulk.stop(call.space, id)
