"""Which tasks a bulk action would be done to, and the handle with which it is done to exactly those.

The handle is bound to the filter, the action, the caller, the moment and a short time, and is good once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from tickwork.client.bulk import CANCEL, DELETE, RETRY, RUN_NOW, Verb
from tickwork.client.views import task_info
from tickwork.clock import to_datetime
from tickwork.ids import new_id
from tickwork.model.tasks import MOVABLE, Record, Status
from tickwork.server import filters, finding
from tickwork.server.callers import Caller
from tickwork.server.masking import Mask
from tickwork.server.problems import Refused
from tickwork.server.rows import TaskRow, row_of
from tickwork.server.spaces import Space
from tickwork.store.contract import Store

Action = Literal["cancel", "retry", "run_now", "delete", "reschedule"]

COUNT_MAX = 10_000  # tasks that a preview counts; beyond, it says "at least"
LOOKS_MAX = 40  # pages of 250 that a preview looks through
GOOD_FOR = 600_000  # milliseconds that a preview may be acted on
SAMPLES = 5
KIND = "bulks"  # of documents: the handles that were used, by their end, each with the id of its run
USED_MAX = 1000  # handles that are used in ten minutes

VERBS: dict[Action, Verb] = {
    "cancel": CANCEL,
    "retry": RETRY,
    "run_now": RUN_NOW,
    "delete": DELETE,
    "reschedule": Verb("reschedule", "rescheduled", tuple(MOVABLE), tuple(MOVABLE)),
}


class BulkWanted(Struct, forbid_unknown_fields=True, kw_only=True):
    """What is to be done, and to which tasks. `filter` is in the filter language; it must name something.

    `force` also asks running tasks to stop (cancel). `cascade` also brings back tasks that were cancelled with these
    (retry). `rate` is how many tasks a second are acted on at most. `delay` is in seconds from now (reschedule).
    """

    action: Action
    filter: Annotated[str, Meta(max_length=2000)]
    force: bool = False
    cascade: bool = False
    rate: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    delay: Annotated[float, Meta(ge=0, le=3_153_600_000)] | None = None


class Preview(Struct, frozen=True, kw_only=True):
    """What would be done. `at_least` says that more than `count` may match. `preview` is what `run_bulk` takes; tasks
    that are submitted after `moment` are not touched."""

    preview: str
    action: Action
    filter: str
    count: int
    at_least: bool
    statuses: dict[str, int]
    samples: list[TaskRow]
    moment: datetime
    expires_at: datetime


class Bound(Struct, frozen=True, array_like=True):
    """What a preview handle is bound to."""

    wanted: BulkWanted
    namespace: str
    caller: str
    count: int
    at_least: bool
    moment: int
    nonce: str  # two previews are two handles, also of the same at the same moment

    @property
    def name(self) -> str:
        """By which it is remembered; names sort by when they are over."""
        return f"{self.moment + GOOD_FOR:015} {self.nonce}"


def statuses_of(wanted: BulkWanted, found: filters.Filter) -> tuple[Status, ...]:
    """Which statuses an action is for: those that the filter names, or the usual ones."""
    verb = VERBS[wanted.action]
    possible = verb.possible if wanted.action != "cancel" or wanted.force else tuple(
        status for status in verb.possible if status is not Status.RUNNING
    )  # fmt: skip
    if not found.status:
        return possible if wanted.force else verb.usual
    chosen = tuple(status for status in found.status if status in possible)
    if not chosen:
        raise Refused(400, "bad_filter", f"{wanted.action} is for tasks that are {', '.join(possible)}")
    return chosen


async def checked(space: Space, wanted: BulkWanted, now: int) -> filters.Filter:
    if not wanted.filter.strip():
        raise Refused(
            400, "bad_filter", "the filter names nothing, so it would mean every task; name at least a status"
        )
    if (wanted.action == "reschedule") is (wanted.delay is None):
        raise Refused(400, "bad_value", "delay goes with reschedule, and reschedule needs it")
    found = await finding.read_filter(await space.store(), wanted.filter, now)
    return replace(found, status=statuses_of(wanted, found))


async def preview(space: Space, wanted: BulkWanted, caller: Caller, mask: Mask, key: bytes) -> Preview:
    store = await space.store()
    moment = await store.queries.time()
    found = await checked(space, wanted, moment)
    counts: dict[str, int] = {}
    samples: list[Record] = []
    looks, at_least = 0, False
    async for records in pages(space, found, moment):
        for record in records:
            counts[record.status] = counts.get(record.status, 0) + 1
        samples += records[: SAMPLES - len(samples)]
        looks += 1
        if sum(counts.values()) >= COUNT_MAX or looks >= LOOKS_MAX:
            at_least = True
            break
    count = sum(counts.values())
    return Preview(
        preview=_sign(Bound(wanted, space.namespace, _who(caller), count, at_least, moment, new_id()), key),
        action=wanted.action,
        filter=found.text,
        count=count,
        at_least=at_least,
        statuses=counts,
        samples=[row_of(task_info(each, space.client.registry), mask) for each in samples],
        moment=to_datetime(moment),
        expires_at=to_datetime(moment + GOOD_FOR),
    )


async def pages(space: Space, found: filters.Filter, moment: int) -> AsyncIterator[list[Record]]:
    store = await space.store()
    if found.ids:
        named = (await finding.find(store, found, len(found.ids), None)).records
        yield [each for each in named if each.submitted_at <= moment]
        return
    async for records in finding.pages(store, found, moment):
        yield records


def _who(caller: Caller) -> str:
    """Names are not unique: two tokens may have the same."""
    return caller.credential or f"{caller.via} {caller.name}"


def _sign(bound: Bound, key: bytes) -> str:
    data = msgspec.msgpack.encode(bound)
    return base64.urlsafe_b64encode(hmac.digest(key, data, hashlib.sha256) + data).decode()


def _read(handle: str, key: bytes) -> Bound | None:
    try:
        raw = base64.urlsafe_b64decode(handle.encode("ascii", "replace"))
        if not hmac.compare_digest(raw[:32], hmac.digest(key, raw[32:], hashlib.sha256)):
            return None
        return msgspec.msgpack.decode(raw[32:], type=Bound)
    except (ValueError, msgspec.MsgspecError):
        return None


async def bound_by(space: Space, handle: str, caller: Caller, key: bytes) -> Bound:
    bound = _read(handle, key)
    if bound is None or bound.namespace != space.namespace or bound.caller != _who(caller):
        raise Refused(400, "bad_preview", "this is no preview that you were given; ask for one first")
    if await (await space.store()).queries.time() > bound.moment + GOOD_FOR:
        raise Refused(410, "preview_over", "this preview is over: look again at what would be done")
    return bound


async def use(store: Store, bound: Bound, run_id: str) -> None:
    """A handle is good for one run: a request that is sent twice does nothing twice. All servers know those used."""
    now = f"{await store.queries.time():015}"
    while over := [each for each in await store.control.page(KIND) if each.name < now]:
        for each in over:
            await store.control.swap(KIND, each.name, each.text, None)
    if await store.control.swap(KIND, bound.name, None, run_id, USED_MAX):
        return
    begun = await store.control.get(KIND, bound.name)
    if begun is None:
        raise Refused(429, "too_many_bulks", f"{USED_MAX:,} bulk actions were begun in ten minutes; wait for some")
    raise Refused(
        409, "preview_used", f"this preview was acted on already, by run {begun}: look again", existing_id=begun
    )
