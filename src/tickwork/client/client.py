"""The client: submits, asks and steers. Needs a store and a registry, but no running node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack, cast

from tickwork.client import alerts, explain, orders, remote_workers, reports, steering, submitting, views
from tickwork.client.access import Access
from tickwork.client.breakers import Breakers
from tickwork.client.calling import call
from tickwork.client.dead_letters import DeadLetters
from tickwork.client.dependants import cancelled_with
from tickwork.client.events import Events
from tickwork.client.functions import TaskFunction, type_of
from tickwork.client.handle import Handle
from tickwork.client.limits import Limits
from tickwork.client.listing import list_tasks
from tickwork.client.lock import Lock
from tickwork.client.queues import Queues, stats_of_queue
from tickwork.client.results import Patience
from tickwork.client.schedules import Schedules
from tickwork.client.switches import Switches
from tickwork.client.tasks import Tasks
from tickwork.config import Config
from tickwork.errors import (
    ConfigError,
    TickworkError,
    WorkerNotFound,
)
from tickwork.handlers.options import (
    CallOptions,
    Options,
    count,
    json_data,
    known_id,
    name,
    note,
    wanted_durability,
)
from tickwork.handlers.registry import Registry
from tickwork.model.alerts import Alert
from tickwork.model.info import Explanation, Page, QueueStats, RemoteWorker, Task, TaskInfo, WorkerInfo
from tickwork.model.members import WorkerStatus
from tickwork.model.reports import FailureGroup, Report
from tickwork.model.tasks import Status
from tickwork.payload.parameters import MISSING
from tickwork.store.contract import PAGE_MAX, SUBMIT_MAX, Store

if TYPE_CHECKING:
    from tickwork.client.task_types import Returned


class Client:
    """Submits tasks to one store, asks about them and steers them."""

    def __init__(self, open_store: Callable[[], Awaitable[Store]], registry: Registry, config: Config) -> None:
        self.registry = registry
        self._access = access = Access(open_store, registry, config)
        self.tasks = Tasks(access)
        self.dlq = DeadLetters(access)
        self.schedules = Schedules(access)
        self.queues = Queues(access)
        self.limits = Limits(access)
        self.breakers = Breakers(access)
        self.switches = Switches(access)
        self.events = Events(access)

    @property
    def config(self) -> Config:
        """Every option with its value."""
        return self._access.config

    def queue(self, name: str, *, fair: bool = False, weights: Mapping[str, float] | None = None) -> None:
        """Say how the tasks of a queue take their turns: with `fair`, those of one `key` do not delay those of another.

        A key with a weight of 3 gets three times as many starts as one with 1, which is the weight of all that are not
        named; tasks without a key count as one key. It goes by what is declared where a task is submitted, and applies
        to tasks that are submitted afterwards.
        """
        self.registry.declare_queue(name, fair, weights)

    # --- submitting

    async def submit(
        self, type: str | TaskFunction[..., Returned], payload: Any = MISSING, **options: Unpack[Options]
    ) -> Handle[Returned]:
        """Queue one task, now, later (`delay`, `schedule_at`) or as a durable schedule (`cron`)."""
        kind, options = type_of(type, options)
        if options.get("cron") is not None:
            return await submitting.submit_cron(self, kind, payload, options)
        access, durability = self._access, wanted_durability(options)
        spec = access.spec(kind, payload, options)
        access.check_that_tasks_can_run()
        store = await access.open_to_submit()
        (receipt,) = await access.send(store, [spec], durability)
        return submitting.handle_of(self, receipt, spec, options)

    async def call(
        self,
        type: str | TaskFunction[..., Returned],
        payload: Any = MISSING,
        *,
        timeout: float | timedelta | None = None,
        **options: Unpack[CallOptions],
    ) -> Returned:
        """Queue one task and wait for its result: what `submit` and then `result(timeout)` give, in one step.

        `timeout` is that of the wait. After it, and if the caller is cancelled, the task goes on. That of the run is
        the handler's, or given with the function: `app.call(report.options(timeout=60), ...)`.
        """
        kind, of_task = type_of(type, cast("Options", options))
        returned: Returned = await call(self._access, kind, payload, of_task, Patience(timeout))
        return returned

    async def submit_many(
        self, type: str | TaskFunction[..., Returned], payloads: Iterable[Any], **options: Unpack[Options]
    ) -> list[Handle[Returned]]:
        """Queue one task for each payload, in few round trips."""
        kind, options = type_of(type, options)
        for single in ("id", "dedup_key", "cron"):
            if options.get(single) is not None:
                raise ConfigError(f"submit_many cannot take {single}: it creates one task for each payload")
        access, durability = self._access, wanted_durability(options)
        access.check_that_tasks_can_run()
        store = await access.open_to_submit()
        handles: list[Handle[Returned]] = []
        specs = access.specs(kind, payloads, options)
        try:
            for start in range(0, len(specs), SUBMIT_MAX):
                batch = specs[start : start + SUBMIT_MAX]
                receipts = await access.send(store, batch, durability)
                handles += [Handle(self, receipt.id) for receipt in receipts if receipt.verdict == "created"]
                for receipt, spec in zip(receipts, batch, strict=True):
                    if receipt.verdict != "created":
                        raise submitting.refusal(receipt, spec)
        except TickworkError as error:
            if handles:
                error.submitted = handles
                error.args = (f"{error}; {len(handles):,} of {len(specs):,} tasks were submitted before",)
            raise
        return handles

    async def submit_task(self, task: Task) -> Handle[Any]:
        """Queue a task that is given as a record."""
        options = submitting.options_of(task)
        return await self.submit(task.type, task.payload, **options)

    async def submit_tasks(self, tasks: Iterable[Task]) -> list[Handle[Any] | TickworkError]:
        """Queue tasks of any types, in few round trips: for each, in order, its handle or the error that refused it.

        One may depend on another before it in the list. If the store cannot be reached half way, `StoreUnavailable`
        stands for each task whose fate is not known or that was not sent.
        """
        return await submitting.submit_tasks(self, tasks)

    # --- asking

    def handle(self, task_id: str) -> Handle[Any]:
        """A handle on a task that was submitted elsewhere, or before."""
        return Handle(self, task_id, created=False)

    async def get_task(self, task_id: str) -> TaskInfo:
        """All that is known of a task; raises `TaskNotFound` when there is none of that id."""
        known_id(task_id)
        store = await self._access.open_store()
        record, history = await asyncio.gather(self._access.record(task_id), store.queries.history(task_id))
        return views.task_info(record, self.registry, history)

    async def list_tasks(
        self,
        status: Status | str | None = None,
        *,
        type: str | None = None,
        queue: str | None = None,
        key: str | None = None,
        tags: dict[str, str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[TaskInfo]:
        """Ended tasks come newest first, delayed ones by due time; all together newest first, on Redis by status.

        While `index_tasks` is on, lists without a status come newest first on every store, and those by type, queue or
        key are found without a look at other tasks. With a status too, Redis may keep to the order of that. A page
        may be short of `limit` while `cursor` says that more remain. Log lines and earlier runs are not in a list:
        `get_task` has them.
        """
        return await list_tasks(
            self._access, status, type=type, queue=queue, key=key, tags=tags, limit=limit, cursor=cursor
        )

    async def index_tasks(self, on: bool = True, report: Callable[[int], None] | None = None) -> bool:
        """Keep tasks findable by type, queue and key, for all processes of the namespace, or stop it. It makes every
        submit a little dearer. Answers whether that was not so already; `report` is told how many tasks it has done."""
        store = await self._access.open_store()
        return await store.operators.index(on, report)

    async def dependants(self, task_id: str) -> list[TaskInfo]:
        """The tasks that depend on this one: those that wait for it, and those that were cancelled with it."""
        store, record = await self._access.open_store(), await self._access.record(task_id)
        waiting = [await store.queries.get(each) for each in await store.queries.dependants(task_id, PAGE_MAX)]
        found = [each for each in waiting if each is not None] + await cancelled_with(store, record)
        return [views.task_info(each, self.registry) for each in found]

    async def explain(self, task_id: str) -> Explanation:
        """Why a task is not running: the reason as data, and in a sentence."""
        return await explain.of_task(self._access, task_id)

    async def queue_stats(self, queue: str | None = None) -> QueueStats:
        """How many tasks wait, run and are dead, and how many workers there are; of one queue, or of all together.

        All together is one look at counters. Of one queue, the tasks that are delayed, run or are dead are looked
        through, which takes longer the more there are.
        """
        store = await self._access.open_store()
        if queue is None:
            return views.queue_stats(await store.queries.stats())
        return await stats_of_queue(store, name("queue", queue))

    async def report(
        self,
        since: datetime | timedelta | None = None,
        until: datetime | timedelta | None = None,
        *,
        by: reports.By = "type",
        type: str | None = None,
        queue: str | None = None,
    ) -> Report:
        """What has happened: how many tasks were submitted and how they ended, how long they waited and ran, by type,
        by queue, or by day, hour or minute (of UTC).

        `since` and `until` are times, or say how long ago; the last 24 hours if left out. `type` and `queue` narrow it
        down. Statistics are kept by the minute for 3 hours, by the hour for 8 days and by the day for 400 days, so the
        report may begin a little earlier than asked; it says when.
        """
        return await reports.report(self._access, since, until, by, type, queue)

    async def failures(
        self, *, type: str | None = None, since: datetime | timedelta | None = None, limit: int = 50
    ) -> list[FailureGroup]:
        """Failed attempts grouped by what went wrong where; what was seen last comes first."""
        return await reports.failures(self._access, type, since, limit)

    async def alerts(self) -> list[Alert]:
        """How the alert rules stand, those that fire first; as the leader has last seen it (`looked_at`). None while no
        node with `monitoring` has led."""
        return await alerts.alerts_of(await self._access.open_store())

    async def silence_alert(
        self, name: str, until: datetime | timedelta, note: str = "", by: str | None = None
    ) -> None:
        """Tell nobody that an alert rule fires or is over until `until` (a time, or how long from now); say in `note`
        why. If it fires then, it is told then. A silence that there is already is replaced."""
        await alerts.silence(self._access, name, until, note, by)

    async def unsilence_alert(self, name: str) -> bool:
        """End a silence now: if the rule fires, it is told at the next look. False if it was not silenced."""
        return await alerts.unsilence(self._access, name)

    async def audit(self) -> list[str]:
        """Everything in the store that is not as it must be; empty when all is well."""
        return await (await self._access.open_store()).queries.audit()

    # --- steering

    async def cancel(self, task_id: str, force: bool = False) -> None:
        """Cancel a waiting task; with `force` also ask a running one to stop."""
        await steering.only_one(steering.cancel(self._access, [task_id], force))

    async def retry(self, task_id: str, *, cascade: bool = False) -> list[str]:
        """Run an ended task again with fresh counters. One that only waits for its time is for `run_now`.

        One that depends on others waits again for those that have not ended. `cascade` also brings back the tasks that
        were cancelled because this one did not succeed; their ids are the answer. An ended task takes its dedup key
        again, unless another task holds it.
        """
        steered = await steering.only_one(steering.retry(self._access, [task_id], cascade=cascade))
        return list(steered.brought_back)

    async def run_now(self, task_id: str) -> None:
        """Let a task that waits for its time, or for its next attempt, run at once.

        Nothing happens to one that is ready or running already.
        """
        await steering.only_one(steering.run_now(self._access, [task_id]))

    async def reschedule(
        self, task_id: str, *, at: datetime | None = None, delay: float | timedelta | None = None
    ) -> None:
        """Move a task that waits for its time, or for its next attempt, to another time: `at`, or `delay` from now. One
        that is ready waits again. A deadline that counts from its due time moves along."""
        await steering.reschedule(self._access, task_id, at, delay)

    async def delete(self, task_id: str) -> None:
        """Remove an ended task and all that is known of it."""
        await steering.only_one(steering.delete(self._access, [task_id]))

    async def update_task_status(
        self,
        task_id: str,
        status: Status | str,
        message: str = "",
        token: str | None = None,
        *,
        code: int | None = None,
        data: Any = None,
    ) -> None:
        """Move a task by hand, along the transition table only. A running one needs its token (`ctx.token`).

        `message`, `code` and `data` are those of its `TaskResult`; code and data are for a success, as the others have
        a code of their own and no data. `data` is any JSON value, no larger than a payload may be.
        """
        wanted = Status.parse(status) if isinstance(status, str) else status
        if code is not None and wanted is not Status.SUCCESS:
            raise ConfigError(f"code says more of a success; a task that becomes {wanted} has a code of its own")
        if data is not None and not (wanted is Status.SUCCESS and token):
            raise ConfigError("data is the result of a running task that becomes a success, which needs its token")
        given = 0 if code is None else count("code", code, -(2**31), 2**31 - 1)
        encoded = None if data is None else json_data(data, self.config.payload_limit)
        await steering.set_status(self._access, task_id, wanted, note("message", message), token, given, encoded)

    # --- workers

    async def register_worker(self, worker: RemoteWorker) -> None:
        """Make a worker outside of this process known for `worker_timeout`; doing it again is its heartbeat.

        One with an address is called there by nodes, if `allow_addresses` lists it. What a worker may run is what is
        said here. An id that lives elsewhere is refused: unregister that one first.
        """
        await remote_workers.register(self._access, worker)

    async def unregister_worker(self, worker_id: str) -> None:
        """Forget a worker; nothing happens if there is none."""
        name("a worker's id", worker_id)
        await (await self._access.open_store()).members.leave(worker_id)

    async def list_workers(self, status: WorkerStatus | str | None = None) -> list[WorkerInfo]:
        """The workers, all or those of a status: `idle`, `busy` or `draining`, which are all `online`, or `offline`.
        One that was lost stays among them, as offline, for an hour."""
        store = await self._access.open_store()
        return views.worker_infos(views.seen_at(await store.members.workers(counted=True), store.now()), status)

    async def get_worker(self, worker_id: str) -> WorkerInfo:
        """Raises `WorkerNotFound` when there is none of that id."""
        store = await self._access.open_store()
        for worker in views.seen_at(await store.members.workers(counted=True), store.now()):
            if worker.id == worker_id:
                return views.worker_info(worker)
        raise WorkerNotFound(worker_id)

    async def drain_worker(self, worker_id: str) -> None:
        """Let a worker take no more tasks, and finish those that it runs. Its status is `draining` until it is resumed,
        or ends. Raises `WorkerNotFound` when none of that id is up."""
        await orders.drain(self._access, worker_id)

    async def resume_worker(self, worker_id: str) -> None:
        """Let a worker that drains take tasks again. Nothing happens to one that does not."""
        await orders.resume(self._access, worker_id)

    async def set_worker(
        self, worker_id: str, *, concurrency: int | None = None, queues: Sequence[str] | None = None
    ) -> None:
        """Let a worker run another number of tasks at a time, or take tasks from other queues, until it ends or is
        reset. What it runs goes on, also if that is more than it may run now. Raises `WorkerNotFound` when none of that
        id is up."""
        await orders.change(self._access, worker_id, concurrency, queues)

    async def reset_worker(self, worker_id: str) -> None:
        """Take back what `set_worker` has changed: the worker goes by its own options again."""
        await orders.reset(self._access, worker_id)

    # --- locks

    def lock(self, name: str, ttl: float | timedelta | None = None) -> Lock:
        """A lock for one holder at a time, over all processes on the store: `async with app.lock("report"): ...`.

        `ttl` is how long it outlives a holder that died; `lock_ttl` if not given, or else `lease_ttl`.
        """
        return Lock(self._access.open_store, self.config, name, ttl)
