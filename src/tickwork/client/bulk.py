"""Steering all tasks that a filter matches: page by page, so that there may be any number of them.

Only tasks that were submitted before the call began are touched, so it ends though tasks keep coming. Ended tasks are
listed in an order that does not change, so one walk meets each of them once. Lists of waiting tasks shift when some are
taken out of them, and tasks move on from one to another: these lists are walked again until a walk finds nothing to do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from tickwork.client import steering
from tickwork.client.access import Access
from tickwork.client.listing import query_of
from tickwork.clock import to_millis
from tickwork.errors import ConfigError, NotRetryable, TickworkError
from tickwork.handlers.options import aware, known_schedule, seconds
from tickwork.model.bulk import BulkResult, Refused, TaskFilter
from tickwork.model.info import Steered
from tickwork.model.tasks import Record, Status
from tickwork.store.contract import Query, Store

Progress = Callable[[int, int], object]  # is told how many are done, and how many matched so far
Act = Callable[[Sequence[str], Status | None], Awaitable[list[Steered]]]

PAGE = 250
EXAMPLES = 5
AGAIN_MAX = 10_000  # ids kept of tasks that may be retried once others were

WAITING = (Status.BLOCKED, Status.PENDING, Status.RETRYING, Status.READY, Status.ASSIGNED)
ENDED = (Status.DEAD, Status.FAILED, Status.CANCELLED, Status.SUCCESS)


class Verb(NamedTuple):
    """What can be done by a filter: to tasks in which statuses, and to which of these if the filter names none."""

    name: str
    done: str
    possible: tuple[Status, ...]
    usual: tuple[Status, ...]


CANCEL = Verb("cancel", "cancelled", (*WAITING, Status.RUNNING), WAITING)
RETRY = Verb("retry", "sent to run", ENDED, (Status.DEAD, Status.FAILED))
RUN_NOW = Verb("run_now", "sent to run", (Status.PENDING, Status.RETRYING), (Status.PENDING, Status.RETRYING))
DELETE = Verb("delete", "deleted", ENDED, ENDED)


async def cancel(
    access: Access, wanted: TaskFilter, force: bool = False, dry_run: bool = False, progress: Progress | None = None
) -> BulkResult:
    async def act(ids: Sequence[str], only: Status | None) -> list[Steered]:
        return await steering.cancel(access, ids, force, only)

    walk = await _Walk.begin(access, CANCEL, wanted, act, dry_run, progress)
    if walk.status is Status.RUNNING and not force:
        raise ConfigError("running tasks are cancelled by force only: give force=True (--force) with this filter")
    running = walk.status is None
    statuses = (*walk.statuses, Status.RUNNING) if running and force else walk.statuses
    async with walk:
        await walk.until_nothing_is_left(statuses, lambda record: not record.cancel)
        if running and not force:
            await walk.refuse_running()
    return walk.result()


async def run_now(
    access: Access, wanted: TaskFilter, dry_run: bool = False, progress: Progress | None = None
) -> BulkResult:
    async def act(ids: Sequence[str], only: Status | None) -> list[Steered]:
        return await steering.run_now(access, ids, only)

    walk = await _Walk.begin(access, RUN_NOW, wanted, act, dry_run, progress)

    def has_not_run_since(record: Record) -> bool:
        """One that was made ready, ran and failed must not lose its next pause too."""
        return record.started_at is None or record.started_at <= walk.began

    async with walk:
        await walk.until_nothing_is_left(walk.statuses, has_not_run_since)
    return walk.result()


async def delete(
    access: Access, wanted: TaskFilter, dry_run: bool = False, progress: Progress | None = None
) -> BulkResult:
    async def act(ids: Sequence[str], only: Status | None) -> list[Steered]:
        return await steering.delete(access, ids, only)

    walk = await _Walk.begin(access, DELETE, wanted, act, dry_run, progress)
    async with walk:
        await walk.once(walk.statuses)
    return walk.result()


async def retry(
    access: Access, wanted: TaskFilter, cascade: bool = False, dry_run: bool = False, progress: Progress | None = None
) -> BulkResult:
    async def act(ids: Sequence[str], only: Status | None) -> list[Steered]:
        return await steering.retry(access, ids, only, cascade=cascade)

    walk = await _Walk.begin(access, RETRY, wanted, act, dry_run, progress)
    async with walk:
        await walk.once(walk.statuses)
        await walk.try_again()
    return walk.result()


class _Walk:
    """One call: the tasks that it is about, and what has become of them so far."""

    @classmethod
    async def begin(
        cls, access: Access, verb: Verb, wanted: TaskFilter, act: Act, dry_run: bool, progress: Progress | None
    ) -> _Walk:
        query = _checked(verb, wanted)
        store = await access.open_store()
        return cls(store, await store.queries.time(), verb, query, wanted, act, dry_run, progress)

    def __init__(
        self,
        store: Store,
        began: int,
        verb: Verb,
        query: Query,
        wanted: TaskFilter,
        act: Act,
        dry_run: bool,
        progress: Progress | None,
    ) -> None:
        self.began = began
        self.status = query.status
        self.statuses = verb.usual if query.status is None else (query.status,)
        self._store = store
        self._verb = verb
        self._query = replace(query, limit=PAGE)
        self._schedule_id = wanted.schedule_id
        self._until = min(began, _until(wanted, began))
        self._act = act
        self._dry_run = dry_run
        self._progress = progress
        self._done = self._brought_back = 0
        self._refused: dict[str, Refused] = {}
        self._again: dict[Status, list[Steered]] = {}

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TickworkError) and self._done:
            error.args = (f"{error}; {self._done:,} tasks were {self._verb.done} before. The call can be repeated",)

    def result(self) -> BulkResult:
        return BulkResult(self._matched, self._done, self._refused, self._brought_back, self._dry_run)

    @property
    def _matched(self) -> int:
        return self._done + sum(refused.count for refused in self._refused.values())

    async def once(self, statuses: tuple[Status, ...]) -> None:
        for status in statuses:
            async for records in self._pages(status):
                # The newest come first; what a task depends on has to be retried before it.
                await self._do([record.id for record in reversed(records)], status, status)

    async def until_nothing_is_left(self, statuses: tuple[Status, ...], fits: Callable[[Record], bool]) -> None:
        before = -1
        while before < self._done:
            before = self._done
            for status in statuses:
                async for records in self._pages(status):
                    await self._do([record.id for record in records if fits(record)], self.status, *statuses)
            if self._dry_run:
                return

    async def refuse_running(self) -> None:
        async for records in self._pages(Status.RUNNING):
            for record in records:
                why = steering.not_cancellable(record.id, Status.RUNNING, force=False)
                self._refuse("running", Steered(record.id, Status.RUNNING, why))
            self._tell()

    async def try_again(self) -> None:
        """Some were refused because of tasks on which they depend, which may have been sent to run since."""
        before = -1
        while any(self._again.values()) and before < self._done:
            before, again, self._again = self._done, self._again, {}
            for status, refused in again.items():
                ids = [each.id for each in refused]
                for start in range(0, len(ids), PAGE):
                    await self._do(ids[start : start + PAGE], status, status)
                    self._tell()
        for refused in self._again.values():
            for each in refused:
                self._count(each)

    async def _pages(self, status: Status) -> AsyncIterator[list[Record]]:
        """Tasks of this status that match. A store looks at few tasks a call, so pages may be empty."""
        query = replace(self._query, status=status)
        while True:
            records, cursor = await self._store.queries.page(query)
            yield [record for record in records if self._fits(record)]
            self._tell()
            if cursor is None:
                return
            query = replace(query, cursor=cursor)

    def _fits(self, record: Record) -> bool:
        return record.submitted_at <= self._until and self._schedule_id in (None, record.spec.schedule_id)

    async def _do(self, ids: list[str], only: Status | None, *statuses: Status) -> None:
        """Tasks that are in none of these statuses any more do not match any more, and are left out."""
        if self._dry_run:
            self._done += len(ids)
            return
        for each in await self._act(ids, only) if ids else ():
            if each.status not in statuses:
                continue
            again = self._again.setdefault(each.status, [])
            if isinstance(each.error, NotRetryable) and each.error.upstream and len(again) < AGAIN_MAX:
                again.append(each)
            else:
                self._count(each)

    def _count(self, each: Steered) -> None:
        if each.error is None:
            self._done += 1
            self._brought_back += len(each.brought_back)
        elif isinstance(each.error, NotRetryable):
            self._refuse("upstream" if each.error.upstream else "damaged", each)

    def _refuse(self, reason: str, each: Steered) -> None:
        known = self._refused.get(reason, Refused(0, (), str(each.error)))
        examples = (*known.examples, each.id)[:EXAMPLES]
        self._refused[reason] = replace(known, count=known.count + 1, examples=examples)

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._done, self._matched)


def _checked(verb: Verb, wanted: TaskFilter) -> Query:
    """The filter as a query of the store, or an error that says what is wrong with it."""
    said = [name for name in TaskFilter.__struct_fields__ if name != "all" and getattr(wanted, name) not in (None, {})]
    if wanted.all and said:
        raise ConfigError(f"TaskFilter: all=True means every task, so {', '.join(said)} cannot be given beside it")
    if not said and wanted.all is not True:
        raise ConfigError("the filter names nothing, so it would mean every task; TaskFilter(all=True) says that")
    query = query_of(wanted.status, wanted.type, wanted.queue, wanted.key, wanted.tags)
    if wanted.schedule_id is not None:
        known_schedule(wanted.schedule_id)
    if query.status is not None and query.status not in verb.possible:
        raise ConfigError(
            f"{verb.name} is for tasks that are {_list(verb.possible)}, not for those that are {query.status}"
        )
    return query


def _until(wanted: TaskFilter, began: int) -> int:
    """The latest time of a submit that still fits."""
    age: Any = wanted.older_than
    if age is None:
        return began
    if isinstance(age, datetime):
        return to_millis(aware("older_than", age)) - 1
    return began - round(seconds("older_than", age) * 1000)


def _list(statuses: tuple[Status, ...]) -> str:
    return f"{', '.join(statuses[:-1])} or {statuses[-1]}"
