"""Doing something to all tasks that a filter matches: shown first (see `previews`), then done to exactly what was
shown, and only to tasks that were submitted before the moment of the preview."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tickwork.client import steering
from tickwork.clock import to_datetime
from tickwork.errors import TickworkError
from tickwork.ids import new_id
from tickwork.model.info import Steered
from tickwork.model.tasks import Record
from tickwork.server.callers import Caller
from tickwork.server.previews import Action, Bound, bound_by, checked, pages, use
from tickwork.server.problems import Refused, not_found
from tickwork.server.spaces import Space
from tickwork.texts import cut

SLICE = 100
RUNS_MAX = 100  # that are remembered
ERRORS_MAX = 5


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


class _Out(Exception):
    """Whoever began it is not let in any more."""


class _Run:
    """One bulk action on its way. `is_in` says whether whoever began it is still let in."""

    def __init__(self, space: Space, bound: Bound, now: int, is_in: Callable[[], Awaitable[bool]]) -> None:
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
        found = await checked(self._space, self._bound.wanted, self._bound.moment)
        again = self._bound.wanted.action != "delete" and not found.ids
        before = -1
        while before < self._done:
            before = self._done
            async for records in pages(self._space, found, self._bound.moment):
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
        await use(store, bound, run.shown.id)
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
