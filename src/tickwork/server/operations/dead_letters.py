"""Dead letters and failures: grouped by error, muted, run again, removed. Many at once are done by a bulk action."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from tickwork.client.rulebook import end_of, short_note
from tickwork.clock import to_datetime
from tickwork.model.tasks import Status
from tickwork.server.callers import Right
from tickwork.server.calls import Call
from tickwork.server.mutes import FailureRow, Mute, mute, unmute, with_mutes
from tickwork.server.operations import operation
from tickwork.server.operations.queues import Changed, Note
from tickwork.server.operations.tasks import Cursor, Limit, Name, RetryTask, TaskPage, get_task, list_tasks
from tickwork.server.problems import not_found
from tickwork.server.rows import TaskView


class FailureGroups(Struct, frozen=True, kw_only=True):
    """What went wrong, that which was seen last first. `dead` is how many dead letters there are in all, `most` how
    many are kept, `retrying` how many tasks wait for their next attempt."""

    items: list[FailureRow]
    dead: int
    most: int
    retrying: int


class MuteFailure(Struct, forbid_unknown_fields=True, kw_only=True):
    """Until when a group is muted, and why."""

    until: datetime
    note: Note = ""


@operation("GET", "/dead-letters", Right.VIEW)
async def list_dead_letters(call: Call, limit: Limit = 100, cursor: Cursor | None = None) -> TaskPage:
    """A page of dead letters, the newest first."""
    return await list_tasks(call, "status:dead", limit, cursor)


@operation("GET", "/failures", Right.VIEW)
async def list_failures(call: Call, type: Name | None = None, limit: Limit = 100) -> FailureGroups:
    """Failed attempts grouped by what went wrong where."""
    stats = await call.space.stats()
    found = await call.client.failures(type=type, limit=limit)
    return FailureGroups(
        items=[_masked(call, each) for each in await with_mutes(await call.space.store(), found)],
        dead=stats.statuses[Status.DEAD],
        most=call.client.config.dlq_max,
        retrying=stats.statuses[Status.RETRYING],
    )


def _masked(call: Call, group: FailureRow) -> FailureRow:
    return msgspec.structs.replace(group, error=call.mask.kind(group.error), message=call.mask.text(group.message))


@operation("GET", "/failures/{id}", Right.VIEW)
async def get_failure(call: Call, id: str) -> FailureRow:
    """One group of failures."""
    for each in await call.client.failures(limit=10_000):
        if each.id == id:
            (row,) = await with_mutes(await call.space.store(), [each])
            return _masked(call, row)
    raise not_found("group", id)


@operation("POST", "/failures/{id}/mute", Right.OPERATE, changes="muted a group of failures")
async def mute_failure(call: Call, id: str, body: MuteFailure) -> FailureRow:
    """Ask nobody to look at a group of failures until then. Its tasks fail, die and are counted as before."""
    call.tell(id, body.note)
    await get_failure(call, id)
    store = await call.space.store()
    now = store.now()
    until, note = to_datetime(end_of(body.until, now)), short_note(body.note)
    await mute(store, id, Mute(by=call.caller.name, note=note, since=to_datetime(now), until=until))
    return await get_failure(call, id)


@operation("POST", "/failures/{id}/unmute", Right.OPERATE, changes="unmuted a group of failures")
async def unmute_failure(call: Call, id: str) -> Changed:
    """Ask to look at a group of failures again."""
    call.tell(id)
    return Changed(await unmute(await call.space.store(), id))


@operation("POST", "/dead-letters/{id}/retry", Right.OPERATE, changes="retried a dead letter")
async def retry_dead_letter(call: Call, id: str, body: RetryTask) -> TaskView:
    """Run a dead letter again, with fresh counters."""
    call.tell(id)
    await call.client.dlq.retry(id, cascade=body.cascade)
    return await get_task(call, id)


@operation("DELETE", "/dead-letters/{id}", Right.OPERATE, status=204, changes="removed a dead letter")
async def remove_dead_letter(call: Call, id: str) -> None:
    """Remove a dead letter for good."""
    call.tell(id)
    await call.client.dlq.remove(id)
