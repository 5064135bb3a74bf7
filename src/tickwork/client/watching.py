"""A look at everything at once: what `tickwork top` and the demo show, and what a dashboard would."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection
from datetime import datetime
from typing import Literal, get_args

from msgspec import Struct

from tickwork.client.client import Client
from tickwork.client.queues import QueueInfo, queue_infos
from tickwork.client.schedules import ScheduleInfo
from tickwork.client.views import worker_infos
from tickwork.clock import to_datetime
from tickwork.ids import name_of
from tickwork.model.facts import Fact
from tickwork.model.info import Event, TaskInfo, WorkerInfo
from tickwork.model.tasks import Status
from tickwork.store.contract import Stats, Store

HISTORY = 18  # seconds of the rates
RUNNING_MAX = 100  # running tasks that a look reads
DEAD_MAX = 5
LATEST_MAX = 60  # facts that are kept to be shown
LOG_PAGE = 1000
LOG_PAGES = 2  # of the log that a look reads; where more is written, rates are estimated from these
SCHEDULES_EVERY = 5.0  # seconds between two looks at the schedules, which change rarely

Rate = Literal["submitted", "done", "failed"]
COUNTED: dict[str, Rate] = {
    Fact.TASK_SUBMITTED: "submitted",
    Fact.TASK_SUCCEEDED: "done",
    Fact.TASK_RETRYING: "failed",
    Fact.TASK_DIED: "failed",
    Fact.TASK_FAILED: "failed",
}


class Snapshot(Struct, frozen=True, kw_only=True):
    """What a store holds at one moment, as far as a screen can show it. `submitted`, `done` and `failed` are numbers a
    second, of the last full seconds, the newest last."""

    now: datetime
    leader: str | None
    stats: Stats
    queues: list[QueueInfo]
    workers: list[WorkerInfo]
    running: list[TaskInfo]  # the first ones
    all_running: bool  # `running` has them all
    schedules: list[ScheduleInfo]
    dead: list[TaskInfo]  # the newest ones
    latest: list[Event]
    submitted: list[float]
    done: list[float]
    failed: list[float]

    @property
    def paused(self) -> list[str]:
        return [queue.name for queue in self.queues if queue.paused]


class Watcher:
    """Looks at a store again and again. Each look is a bounded number of reads, however much the store holds."""

    def __init__(self, client: Client, kinds: Collection[str] | None = None) -> None:
        """`kinds` are those of the facts that are kept to be shown; all of them, if none are named."""
        self._client = client
        self._kinds = kinds
        self._seen: int | None = None
        self._looked_at = 0  # second of the look before
        self._latest: deque[Event] = deque(maxlen=LATEST_MAX)
        self._counts: dict[Rate, Counter[int]] = {rate: Counter() for rate in get_args(Rate)}
        self._schedules: list[ScheduleInfo] = []
        self._schedules_at: datetime | None = None

    async def look(self) -> Snapshot:
        client = self._client
        store = await client._access.open_store()
        now = to_datetime(store.now())
        await self._read_log(store, int(now.timestamp()))
        running = await client.list_tasks(Status.RUNNING, limit=RUNNING_MAX)
        workers = [worker for worker in await store.members.workers(counted=True) if worker.lost_at is None]
        stats = await store.queries.stats()
        leader = await store.members.leader()
        return Snapshot(
            now=now,
            leader=None if leader is None else name_of(leader.id),
            stats=stats,
            queues=queue_infos(stats, await store.queries.paused(), workers, await store.queries.waiting_since()),
            workers=worker_infos(workers),
            running=sorted(running, key=lambda task: (task.progress is None, task.started_at or task.submitted_at)),
            all_running=running.cursor is None,
            schedules=await self._read_schedules(now),
            dead=(await client.dlq.list(limit=DEAD_MAX)).items if stats.statuses.get(Status.DEAD) else [],
            latest=list(self._latest),
            submitted=self._series("submitted", now),
            done=self._series("done", now),
            failed=self._series("failed", now),
        )

    async def _read_schedules(self, now: datetime) -> list[ScheduleInfo]:
        """Those of the first page, the next one due first."""
        before = self._schedules_at
        if before is None or not 0 <= (now - before).total_seconds() < SCHEDULES_EVERY:
            found = (await self._client.schedules.list()).items
            self._schedules = sorted(found, key=lambda each: (each.next_at is None, each.next_at or now, each.id))
            self._schedules_at = now
        return self._schedules

    # --- the log, from which rates are known without counting tasks

    async def _read_log(self, store: Store, second: int) -> None:
        if self._seen is None:
            self._seen = await self._first(store)
        begun: int | None = None  # the number before the first fact; the log may leave numbers out
        counts: dict[Rate, Counter[int]] = {rate: Counter() for rate in self._counts}
        for _ in range(LOG_PAGES):
            found = await self._client.events.read(self._seen, LOG_PAGE)
            for event in found:
                self._note(event, counts)
                self._seen = event.seq
                begun = event.seq - 1 if begun is None else begun
            if len(found) < LOG_PAGE:
                break
        else:
            counts = await self._skip(store, begun or 0, found[-1].seq - found[0].seq, counts, second)
        for rate, numbers in counts.items():
            self._counts[rate].update(numbers)
        self._looked_at = second

    async def _first(self, store: Store) -> int:
        """The number after which the first look reads: as far back as there is enough to show, and no more than a page.
        A log that was opened anew has left numbers out, so facts may lie far apart."""
        start = last = await store.log.last()
        back = LOG_PAGE
        while start > 0:
            found = await self._client.events.read(max(last - back, 0), LOG_PAGE)
            if len(found) == LOG_PAGE and back > LOG_PAGE:
                break  # these are the oldest of more than a page
            start = max(last - back, 0)
            if len(found) >= LATEST_MAX:
                break
            back *= 10
        return start

    def _note(self, event: Event, counts: dict[Rate, Counter[int]]) -> None:
        if (rate := COUNTED.get(event.kind)) is not None:
            counts[rate][int(event.at.timestamp())] += 1
        self._keep(event)

    def _keep(self, event: Event) -> None:
        if self._kinds is None or event.kind in self._kinds:
            self._latest.append(event)

    async def _skip(
        self, store: Store, begun: int, page: int, counts: dict[Rate, Counter[int]], second: int
    ) -> dict[Rate, Counter[int]]:
        """More is written than is read here: go to the end of the log, and take what was read as a sample."""
        assert self._seen is not None
        last, read = await store.log.last(), self._seen - begun
        if last - self._seen <= page or read <= 0:
            return counts
        self._seen = last - page
        for event in await self._client.events.read(self._seen, LOG_PAGE):
            self._keep(event)
            self._seen = event.seq
        seconds = range(max(self._looked_at, second - HISTORY), second) or range(second - 1, second)
        scale = (self._seen - begun) / read / len(seconds)
        return {
            rate: Counter({each: round(sum(numbers.values()) * scale) for each in seconds})
            for rate, numbers in counts.items()
        }

    def _series(self, rate: Rate, now: datetime) -> list[float]:
        counts, last = self._counts[rate], int(now.timestamp()) - 1  # the second that runs is not over
        for second in [second for second in counts if second < last - 2 * HISTORY]:
            del counts[second]
        return [float(counts[second]) for second in range(last - HISTORY + 1, last + 1)]
