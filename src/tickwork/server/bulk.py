"""Doing something to all tasks that a filter matches: shown first, then done to exactly what was shown.

A preview answers how many tasks match at a moment, and a handle that is bound to the filter, the action, the caller,
the moment and a short time. Only with that handle is it done, once, and only to tasks that were submitted before the
moment.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from tickwork.client import steering
from tickwork.client.bulk import CANCEL, DELETE, RETRY, RUN_NOW, Verb
from tickwork.client.views import task_info
from tickwork.clock import to_datetime
from tickwork.errors import TickworkError
from tickwork.ids import new_id
from tickwork.model.info import Steered
from tickwork.model.tasks import MOVABLE, Record, Status
from tickwork.server import filters, finding
from tickwork.server.callers import Caller
from tickwork.server.masking import Mask
from tickwork.server.problems import Refused, not_found
from tickwork.server.rows import TaskRow, row_of
from tickwork.server.spaces import Space
from tickwork.server.stops import Stops, stops_of
from tickwork.store.contract import Store
from tickwork.texts import cut

Action = Literal["cancel", "retry", "run_now", "delete", "reschedule"]

COUNT_MAX = 10_000  # tasks that a preview counts; beyond, it says "at least"
LOOKS_MAX = 40  # pages of 250 that a preview looks through
GOOD_FOR = 600_000  # milliseconds that a preview may be acted on
SAMPLES = 5
SLICE = 100
RUNS_MAX = 100  # that are remembered
ERRORS_MAX = 5
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


class BulkRun(Struct, frozen=True, kw_only=True):
    """A bulk action that was begun. `refused` counts tasks that could not be changed, `errors` says why, of some."""

    id: str
    action: Action
    filter: str
    state: Literal["running", "done", "stopped", "failed"]
    done: int
    refused: int
    expected: int
    errors: list[str]
    began_at: datetime
    ended_at: datetime | None


class _Bound(Struct, frozen=True, array_like=True):
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


class _Out(Exception):
    """Whoever began it is not let in any more."""


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


async def _checked(space: Space, wanted: BulkWanted, now: int) -> filters.Filter:
    if not wanted.filter.strip():
        raise Refused(
            400, "bad_filter", "the filter names nothing, so it would mean every task; name at least a status"
        )
    if (wanted.action == "reschedule") is (wanted.delay is None):
        raise Refused(400, "bad_value", "delay goes with reschedule, and reschedule needs it")
    asks = filters.asks_for_stops(wanted.filter)
    found = filters.parse(wanted.filter, now, stops=await stops_of(await space.store()) if asks else Stops())
    return replace(found, status=statuses_of(wanted, found))


async def preview(space: Space, wanted: BulkWanted, caller: Caller, mask: Mask, key: bytes) -> Preview:
    store = await space.store()
    moment = await store.queries.time()
    found = await _checked(space, wanted, moment)
    counts: dict[str, int] = {}
    samples: list[Record] = []
    looks, at_least = 0, False
    async for records in _pages(space, found, moment):
        for record in records:
            counts[record.status] = counts.get(record.status, 0) + 1
        samples += records[: SAMPLES - len(samples)]
        looks += 1
        if sum(counts.values()) >= COUNT_MAX or looks >= LOOKS_MAX:
            at_least = True
            break
    count = sum(counts.values())
    return Preview(
        preview=_sign(_Bound(wanted, space.namespace, _who(caller), count, at_least, moment, new_id()), key),
        action=wanted.action,
        filter=found.text,
        count=count,
        at_least=at_least,
        statuses=counts,
        samples=[row_of(task_info(each, space.client.registry), mask) for each in samples],
        moment=to_datetime(moment),
        expires_at=to_datetime(moment + GOOD_FOR),
    )


async def _pages(space: Space, found: filters.Filter, moment: int) -> AsyncIterator[list[Record]]:
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


def _sign(bound: _Bound, key: bytes) -> str:
    data = msgspec.msgpack.encode(bound)
    return base64.urlsafe_b64encode(hmac.digest(key, data, hashlib.sha256) + data).decode()


def _read(handle: str, key: bytes) -> _Bound | None:
    try:
        raw = base64.urlsafe_b64decode(handle.encode("ascii", "replace"))
        if not hmac.compare_digest(raw[:32], hmac.digest(key, raw[32:], hashlib.sha256)):
            return None
        return msgspec.msgpack.decode(raw[32:], type=_Bound)
    except (ValueError, msgspec.MsgspecError):
        return None


async def bound_by(space: Space, handle: str, caller: Caller, key: bytes) -> _Bound:
    bound = _read(handle, key)
    if bound is None or bound.namespace != space.namespace or bound.caller != _who(caller):
        raise Refused(400, "bad_preview", "this is no preview that you were given; ask for one first")
    if await (await space.store()).queries.time() > bound.moment + GOOD_FOR:
        raise Refused(410, "preview_over", "this preview is over: look again at what would be done")
    return bound


async def _use(store: Store, bound: _Bound, run_id: str) -> None:
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


class _Run:
    """One bulk action on its way. `is_in` says whether whoever began it is still let in."""

    def __init__(self, space: Space, bound: _Bound, now: int, is_in: Callable[[], Awaitable[bool]]) -> None:
        self._space = space
        self._bound = bound
        self._is_in = is_in
        self._errors: dict[str, None] = {}
        self._refused: set[str] = set()
        self._moved: set[str] = set()  # tasks that were rescheduled, and stay in the list that is walked
        self._done = 0
        rate = bound.wanted.rate
        self._slice = SLICE if rate is None else max(1, min(SLICE, int(rate / 5)))  # a few times a second
        self.shown = BulkRun(
            id=new_id(), action=bound.wanted.action, filter=bound.wanted.filter, state="running", done=0, refused=0,
            expected=bound.count, errors=[], began_at=to_datetime(now), ended_at=None,
        )  # fmt: skip

    async def run(self) -> None:
        state: Literal["done", "stopped", "failed"] = "failed"
        try:
            await self._walk()
            state = "done"
        except asyncio.CancelledError:
            state = "stopped"
            raise
        except _Out:
            state = "stopped"
            self._errors = {"whoever began it is no longer let in; what is done stays done": None, **self._errors}
        except TickworkError as error:
            self._errors[cut(str(error), 300)] = None
        finally:
            now = (await self._space.store()).now()
            self._show(state, to_datetime(now))

    async def _walk(self) -> None:
        """Lists of waiting tasks shift when some are taken out of them: they are walked again until nothing is left."""
        found = await _checked(self._space, self._bound.wanted, self._bound.moment)
        again = self._bound.wanted.action != "delete" and not found.ids
        before = -1
        while before < self._done:
            before = self._done
            async for records in _pages(self._space, found, self._bound.moment):
                ids = [each.id for each in reversed(records) if self._is_left(each)]
                ids = ids[: self._left()]
                for start in range(0, len(ids), self._slice):
                    await self._act(ids[start : start + self._slice])
            if not again:
                return

    def _left(self) -> int | None:
        """How many tasks may still be acted on: no more than the preview has counted, if it has counted all."""
        if self._bound.at_least:
            return None
        return max(self._bound.count - self._done - len(self._refused), 0)

    def _is_left(self, record: Record) -> bool:
        """One that was acted on, and has come back since, is not acted on again."""
        if record.id in self._refused or record.id in self._moved:
            return False
        if self._bound.wanted.action == "cancel":
            return not record.cancel
        if self._bound.wanted.action == "retry":
            return (record.finished_at or 0) <= self._bound.moment
        return record.started_at is None or record.started_at <= self._bound.moment

    async def _act(self, ids: Sequence[str]) -> None:
        if not await self._is_in():
            raise _Out
        began = asyncio.get_running_loop().time()
        for each in await self._steer(ids):
            if each.error is None:
                self._done += 1
            elif each.status is not None:
                self._refused.add(each.id)
                if len(self._errors) < ERRORS_MAX:
                    self._errors[cut(str(each.error), 300)] = None
        if self._bound.wanted.action == "reschedule":
            self._moved.update(ids)
        self._show("running", None)
        rate = self._bound.wanted.rate
        if rate is not None:
            await asyncio.sleep(max(began + len(ids) / rate - asyncio.get_running_loop().time(), 0))

    async def _steer(self, ids: Sequence[str]) -> list[Steered]:
        access, wanted = self._space.client._access, self._bound.wanted
        match wanted.action:
            case "cancel":
                return await steering.cancel(access, ids, wanted.force)
            case "retry":
                return await steering.retry(access, ids, cascade=wanted.cascade)
            case "run_now":
                return await steering.run_now(access, ids)
            case "delete":
                return await steering.delete(access, ids)
            case "reschedule":
                return [await _reschedule(self._space, each, wanted.delay or 0.0) for each in ids]

    def _show(self, state: Literal["running", "done", "stopped", "failed"], ended: datetime | None) -> None:
        self.shown = replace(
            self.shown,
            state=state,
            done=self._done,
            refused=len(self._refused),
            errors=list(self._errors),
            ended_at=ended,
        )


async def _reschedule(space: Space, task_id: str, delay: float) -> Steered:
    try:
        await space.client.reschedule(task_id, delay=delay)
    except TickworkError as error:
        record = await (await space.store()).queries.get(task_id)
        return Steered(task_id, None if record is None else record.status, error)
    return Steered(task_id)


class BulkRuns:
    """Those that this process has begun."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[_Run, str, asyncio.Task[None]]] = {}

    async def begin(
        self,
        space: Space,
        handle: str,
        caller: Caller,
        key: bytes,
        is_in: Callable[[], Awaitable[bool]],
        ended: Callable[[BulkRun], Awaitable[None]],
    ) -> BulkRun:
        bound, store = await bound_by(space, handle, caller, key), await space.store()
        run = _Run(space, bound, store.now(), is_in)

        async def work() -> None:
            try:
                await run.run()
            finally:
                await ended(run.shown)

        while len(self._runs) >= RUNS_MAX:
            oldest = next((name for name, (_, _, task) in self._runs.items() if task.done()), None)
            if oldest is None:
                raise Refused(429, "too_many_bulks", f"{RUNS_MAX} bulk actions are on their way; wait for one to end")
            del self._runs[oldest]
        await _use(store, bound, run.shown.id)
        self._runs[run.shown.id] = (run, space.namespace, asyncio.create_task(work()))
        return run.shown

    def get(self, space: Space, run_id: str) -> BulkRun:
        return self._find(space, run_id)[0].shown

    async def stop(self, space: Space, run_id: str) -> BulkRun:
        run, _, task = self._find(space, run_id)
        task.cancel()
        await asyncio.wait([task])
        return run.shown

    def _find(self, space: Space, run_id: str) -> tuple[_Run, str, asyncio.Task[None]]:
        found = self._runs.get(run_id)
        if found is None or found[1] != space.namespace:
            raise not_found("bulk", run_id)
        return found

    async def close(self) -> None:
        tasks = [task for _, _, task in self._runs.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
