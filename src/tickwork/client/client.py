"""The client: submits, asks and steers. Needs a store and a registry, but no running node."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tickwork import host
from tickwork.client import views
from tickwork.client.dead_letters import DeadLetters
from tickwork.client.dependants import cancelled_with
from tickwork.client.events import Events
from tickwork.client.handle import Handle, ScheduleHandle
from tickwork.client.queues import Queues
from tickwork.client.schedules import Schedules
from tickwork.client.specs import SpecMaker
from tickwork.config import Config
from tickwork.errors import (
    ConfigError,
    DuplicateTask,
    HandlerNotFound,
    LeaseLost,
    NotCancellable,
    NotRetryable,
    PayloadError,
    ResultError,
    ResultTimeout,
    StoreError,
    TaskCancelled,
    TaskExists,
    TaskFailed,
    TaskNotFound,
    TickworkError,
)
from tickwork.handlers.options import (
    Options,
    TaskOptions,
    count,
    known_id,
    known_only,
    name,
    note,
    returns_existing,
    wait_limit,
    wanted_durability,
)
from tickwork.handlers.options import tags as read_tags
from tickwork.handlers.registry import ANYTHING, MISSING, Entry, Registry
from tickwork.ids import is_token_of, name_of, new_id
from tickwork.model.info import Page, QueueStats, Task, TaskInfo, TaskResult
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Outcome, Stopped, Succeeded
from tickwork.model.tasks import UNKNOWN, Lease, Record, Spec, Status
from tickwork.model.transitions import waits_again
from tickwork.payload.codec import JSON
from tickwork.store.base import PAGE_MAX, SUBMIT_MAX, Query, Receipt, Store
from tickwork.store.joining import taken
from tickwork.texts import shown

CURSOR = re.compile(r"[0-9]+(\.[0-9A-Za-z._:@/-]{1,400})?")
RESULT_POLL = 1.0  # behind the hint that the task has ended: twice as long each time,
RESULT_POLL_MAX = 30.0  # since many may wait for long
WAITING_MAX = 20  # tasks that one waits for, looked at to explain it
PAGES_MAX = 20  # index pages that one list_tasks call may look through

NOBODY_RUNS = (
    "this scheduler names no store, so the task would be kept in the memory of this process, where nothing runs it. "
    'Name the store that your workers use: Scheduler("sqlite:///tickwork.db") in the code, or TICKWORK_STORE in the '
    "environment of all processes. To run tasks in this process, start the scheduler before you submit, or name "
    "memory:// as its store."
)

NOBODY_RUNS_CHILDREN = (
    "this handler runs in a child process, where memory:// is another store than that of the worker, so the task would "
    "never run. Use a store that processes share, such as sqlite:///tickwork.db; or return what is to be done, and "
    'submit it in the worker; or leave out run_in="process".'
)


class Client:
    def __init__(self, open_store: Callable[[], Awaitable[Store]], registry: Registry, config: Config) -> None:
        self.open_store = open_store
        self.registry = registry
        self.types_are_known_here = False  # on memory:// no other process can know a type
        self.runs_here = False  # this scheduler was started
        self.nobody_runs = False  # this process has its own store, which nobody named, and has not started
        self.configure(config)
        self.dlq = DeadLetters(self)
        self.schedules = Schedules(self)
        self.queues = Queues(self)
        self.events = Events(self)

    def configure(self, config: Config) -> None:
        self.config = config
        self._maker = SpecMaker(self.registry, config)

    # --- in

    def check_that_tasks_can_run(self) -> None:
        if self.types_are_known_here and not self.runs_here and host.is_pool_child:
            raise ConfigError(NOBODY_RUNS_CHILDREN)
        if self.nobody_runs:
            raise ConfigError(NOBODY_RUNS)

    async def submit(self, type: str, payload: Any, options: Options) -> Handle[Any]:
        if options.get("cron") is not None:
            return await self._submit_cron(type, payload, options)
        durability = wanted_durability(options)
        spec = self.spec(type, payload, options)
        self.check_that_tasks_can_run()
        store = await self.open_store()
        (receipt,) = await store.submit([spec], durability)
        if receipt.verdict == "created":
            return Handle(self, spec.id)
        if receipt.verdict in ("exists", "duplicate") and returns_existing(options):
            return Handle(self, receipt.other if receipt.verdict == "duplicate" else spec.id)
        raise refusal(receipt, spec)

    async def submit_many(self, type: str, payloads: Iterable[Any], options: Options) -> list[Handle[Any]]:
        for single in ("id", "dedup_key", "cron"):
            if options.get(single) is not None:
                raise ConfigError(f"submit_many gives each payload a task of its own; {single} cannot be one for all")
        self.check_that_tasks_can_run()
        store, durability = await self.open_store(), wanted_durability(options)
        handles: list[Handle[Any]] = []
        specs = self._maker.make_many(type, payloads, options, self.known(type))
        try:
            for start in range(0, len(specs), SUBMIT_MAX):
                batch = specs[start : start + SUBMIT_MAX]
                receipts = await store.submit(batch, durability)
                handles += [Handle(self, receipt.id) for receipt in receipts if receipt.verdict == "created"]
                for receipt, spec in zip(receipts, batch, strict=True):
                    if receipt.verdict != "created":
                        raise refusal(receipt, spec)
        except TickworkError as error:
            if handles:
                error.submitted = handles
                error.args = (f"{error}; {len(handles):,} of {len(specs):,} tasks were submitted before",)
            raise
        return handles

    def spec(self, type: str, payload: Any, options: TaskOptions) -> Spec:
        entry = self.known(type)
        if payload is MISSING:
            payload = None if entry is None else entry.default_payload()
        return self._maker.make(type, payload, options, entry)

    def known(self, type: str) -> Entry | None:
        entry = self.registry.find(type)
        if entry is None and self.types_are_known_here:
            self.registry.get(type)  # raises HandlerNotFound, naming those that are known
            raise HandlerNotFound(type)
        return entry

    async def _submit_cron(self, type: str, payload: Any, options: Options) -> ScheduleHandle:
        known_only(options, Options)
        for wrong in ("schedule_at", "delay", "depends_on", "durability"):
            if options.get(wrong) is not None:
                raise ConfigError(f"{wrong} cannot be given together with cron")
        may_exist = returns_existing(options)
        schedule_id = options.get("id") or f"{type}.{new_id()}"
        of_schedule = (*TaskOptions.__annotations__, "timezone", "dedup_key", "dedup_ttl")
        try:
            await self.schedules.put(
                schedule_id,
                type,
                payload,
                cron=options.get("cron"),
                create=True,
                on_exhausted="stop",
                **{name: options[name] for name in of_schedule if name in options},  # type: ignore[literal-required]
            )
        except TaskExists:
            if not may_exist:
                raise
        return ScheduleHandle(self, schedule_id)

    async def submit_task(self, task: Task) -> Handle[Any]:
        given = {name: getattr(task, name) for name in Options.__annotations__}
        given["depends_on"] = task.depends_on or None
        payload = MISSING if task.payload is None and not self._takes_none(task.type) else task.payload
        return await self.submit(task.type, payload, Options(**given))  # type: ignore[typeddict-item]

    def _takes_none(self, type: str) -> bool:
        entry = self.registry.find(type)
        return entry is None or entry.takes_none

    # --- asking

    async def record(self, task_id: str) -> Record:
        known_id(task_id)
        store = await self.open_store()
        record = await store.get(task_id)
        if record is None:
            raise TaskNotFound(task_id)
        return record

    async def get_task(self, task_id: str) -> TaskInfo:
        return views.task_info(await self.record(task_id), self.registry)

    async def list_tasks(
        self,
        status: Status | str | None = None,
        *,
        type: str | None = None,
        queue: str | None = None,
        tags: dict[str, str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[TaskInfo]:
        """Newest first. A page may be short of `limit` while `cursor` says that more remain."""
        count("limit", limit, 1, 1000)
        if cursor is not None and not (isinstance(cursor, str) and CURSOR.fullmatch(cursor)):
            raise TickworkError(f"cursor {shown(cursor)} is not one that an earlier page gave")
        for what, text in (("type", type), ("queue", queue)):
            if text is not None and not isinstance(text, str):
                raise ConfigError(f"{what} must be a text, not {shown(text)}")
        tags = None if tags is None else read_tags(tags)
        store = await self.open_store()
        wanted = Status.parse(status) if isinstance(status, str) else status
        found: list[Record] = []
        for _ in range(PAGES_MAX):
            query = Query(wanted, type, queue, tags, limit - len(found), cursor)
            records, cursor = await store.page(query)
            found += records
            if cursor is None or len(found) >= limit:
                break
        return Page([views.task_info(record, self.registry) for record in found], cursor)

    async def queue_stats(self) -> QueueStats:
        return views.queue_stats(await (await self.open_store()).stats())

    async def register_worker(self, worker: Worker) -> None:
        """Make a worker outside of this process known for `worker_timeout`; doing it again is its heartbeat."""
        name("a worker's id", worker.id)
        store = await self.open_store()
        heard = await store.beat(worker, round(self.config.worker_timeout * 1000))
        if heard.rival is not None:
            raise TickworkError(taken(heard.rival, store.now()))

    async def unregister_worker(self, worker_id: str) -> None:
        name("a worker's id", worker_id)
        await (await self.open_store()).leave(worker_id)

    async def list_workers(self, status: str | None = None) -> list[Worker]:
        workers = views.workers_of(await (await self.open_store()).workers(), status)
        return [replace(worker, node=name_of(worker.node)) for worker in workers]

    async def get_worker(self, worker_id: str) -> Worker | None:
        return next((worker for worker in await self.list_workers() if worker.id == worker_id), None)

    async def explain(self, task_id: str, shown: Callable[[datetime], str] = views.in_utc) -> str:
        """Why a task is not running, in a sentence; `shown` is how to say a time."""
        store, record = await self.open_store(), await self.record(task_id)
        ended = [task_id for task_id in record.waiting[:WAITING_MAX] if await _has_ended(store, task_id)]
        return views.explain(record, await store.paused(), await store.workers(), store.now(), ended, shown)

    async def result(self, task_id: str, timeout: float | timedelta | None = None) -> Any:
        known_id(task_id)
        patience = wait_limit("timeout", timeout)
        deadline, pause = time.monotonic() + patience, RESULT_POLL
        store = await self.open_store()
        with store.hint(task_id) as ended:
            while True:
                record = await store.get(task_id, ended)
                if record is None:
                    raise TaskNotFound(task_id)
                if record.status.ended:
                    return self._value(record)
                left = min(deadline - time.monotonic(), pause)
                if left <= 0:
                    late = f"task {task_id} has not ended within {patience:g} s; it is {record.status}."
                    info = views.task_info(record, self.registry)
                    raise ResultTimeout(f"{late} {await self.explain(task_id)}", info)
                await ended.wait(left)
                pause = min(2 * pause, RESULT_POLL_MAX)

    def _value(self, record: Record) -> Any:
        if record.status is Status.SUCCESS:
            return self._result_of(record)
        info = views.task_info(record, self.registry)
        if record.status is Status.CANCELLED:
            raise TaskCancelled(
                f"task {record.id} was cancelled" + (f": {record.message}" if record.message else ""), info
            )
        first_line = (record.last_error or "unknown error").partition("\n")[0]
        raise TaskFailed(f"task {record.id} failed for good ({record.status}): {first_line}", info)

    def _result_of(self, record: Record) -> Any:
        if record.unreadable:
            info = views.task_info(record, self.registry)
            raise ResultError(f"task {record.id} has ended, but {record.unreadable}", info)
        entry, data = self.registry.find(record.spec.type), None
        try:
            if record.result is not None:
                data = ANYTHING.decode(JSON, record.result) if entry is None else entry.decode_result(record.result)
        except PayloadError as error:
            text = f"task {record.id} has ended, but its stored result cannot be read: {error}"
            raise ResultError(text, views.task_info(record, self.registry)) from None
        if entry is not None and entry.returns_task_result:
            return TaskResult(record.code, record.message, data)
        return data

    # --- steering

    async def cancel(self, task_id: str, force: bool = False) -> None:
        known_id(task_id)
        store = await self.open_store()
        found = await store.cancel(task_id, force, "cancelled by request")
        if found is None:
            raise TaskNotFound(task_id)
        if found is Status.RUNNING and not force:
            raise NotCancellable(f"task {task_id} is running; force=True (--force) asks its handler to stop")
        if found.ended and found is not Status.CANCELLED:
            raise NotCancellable(f"task {task_id} has ended already ({found})")

    async def retry(self, task_id: str, *, cascade: bool = False) -> list[str]:
        """Run an ended task again with fresh counters, or a delayed one now.

        One that depends on others waits again for those that have not ended. `cascade` also brings back the tasks that
        were cancelled because this one did not succeed; their ids are the answer. An ended task takes its dedup key
        again, unless another task holds it.
        """
        store = await self.open_store()
        record = await self.record(task_id)
        if record.status.ended:
            return await self.retry_ended(record, cascade=cascade)
        found = await store.run_now(task_id)
        if found in (Status.READY, Status.RUNNING, Status.BLOCKED):
            raise NotRetryable(f"task {task_id} is {found}: only ended or delayed tasks can be retried")
        return []

    async def retry_ended(self, record: Record, only: Status | None = None, *, cascade: bool = False) -> list[str]:
        store = await self.open_store()
        if only not in (None, record.status):
            raise TaskNotFound(record.id)
        if record.spec.type == UNKNOWN:
            raise NotRetryable(f"task {record.id} is damaged, and nothing is left of it that could run: delete it")
        await self._check_upstreams(store, record)
        followers = await cancelled_with(store, record) if cascade else []
        found = await store.retry(record.id, only)
        if found is None or only not in (None, found):
            raise TaskNotFound(record.id)
        for follower in followers:
            await store.retry(follower.id, Status.CANCELLED)
        return [follower.id for follower in followers]

    async def _check_upstreams(self, store: Store, record: Record) -> None:
        """A store leaves alone what cannot run; here is who says why."""
        upstreams = {upstream_id: await store.get(upstream_id) for upstream_id in record.spec.depends_on}
        _, never = waits_again(record, upstreams.get)
        if not never:
            return
        upstream = upstreams[never]
        if upstream is None:
            raise NotRetryable(
                f"task {record.id} depends on task {never}, which is gone, and never ran: submit it anew"
            )
        raise NotRetryable(
            f"task {record.id} depends on task {never}, which is {upstream.status}: retry that one with cascade=True "
            "(--cascade on the command line), which brings this one back too"
        )

    async def dependants(self, task_id: str) -> list[TaskInfo]:
        """The tasks that depend on this one: those that wait for it, and those that were cancelled with it."""
        store, record = await self.open_store(), await self.record(task_id)
        waiting = [await store.get(each) for each in await store.dependants(task_id, PAGE_MAX)]
        found = [each for each in waiting if each is not None] + await cancelled_with(store, record)
        return [views.task_info(each, self.registry) for each in found]

    async def delete(self, task_id: str) -> None:
        """Remove an ended task and all that is known of it."""
        found = await (await self.open_store()).delete(known_id(task_id))
        if found is None:
            raise TaskNotFound(task_id)
        if not found.ended:
            raise TickworkError(f"task {task_id} is {found}: only ended tasks can be deleted; cancel it first")

    async def update_task_status(
        self, task_id: str, status: Status | str, message: str = "", token: str | None = None
    ) -> None:
        """Move a task by hand, along the transition table only. A running one needs its token (`ctx.token`)."""
        wanted = Status.parse(status) if isinstance(status, str) else status
        message = note("message", message)
        record, store = await self.record(task_id), await self.open_store()
        if record.status is Status.RUNNING and wanted.ended:
            if not token:
                raise LeaseLost(
                    f"task {task_id} is running: its token is needed to end it, which its handler has as ctx.token"
                )
            holds = is_token_of(str(token), task_id, record.fence, record.nonce)
            outcome = _outcome(record.lease, wanted, message)
            if not holds or (await store.finish([outcome])).verdicts[0].kind == "lost":
                raise LeaseLost(f"task {task_id} is running under another token; nothing was changed")
        elif wanted is Status.CANCELLED and not record.status.ended:
            if await store.cancel(task_id, False, message) is Status.RUNNING:
                raise LeaseLost(f"task {task_id} began to run meanwhile; nothing was changed")
        elif wanted is Status.READY and (record.status.ended or record.status in (Status.PENDING, Status.RETRYING)):
            await self.retry(task_id)
        elif wanted is not record.status:
            raise TickworkError(f"task {task_id} is {record.status} and cannot become {wanted}")


def _outcome(lease: Lease, wanted: Status, message: str) -> Outcome:
    match wanted:
        case Status.SUCCESS:
            return Succeeded(lease, None, 0, message)
        case Status.CANCELLED:
            return Stopped(lease)
        case _:
            return Aborted(lease, message or "failed by request")


async def _has_ended(store: Store, task_id: str) -> bool:
    record = await store.get(task_id)
    return record is not None and record.status.ended


def refusal(receipt: Receipt, spec: Spec) -> TickworkError:
    match receipt.verdict:
        case "exists":
            return TaskExists(spec.id)
        case "duplicate":
            return DuplicateTask(spec.dedup_key or "", receipt.other)
        case "orphan":
            return TaskNotFound(receipt.other)
        case other:
            return StoreError(f"the store answered {other!r}")
