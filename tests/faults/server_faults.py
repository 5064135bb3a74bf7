"""Faults of the server and of the network, under load: what the cases share.

A case is a coroutine function of a seed and a scale. It raises `AssertionError` when something does not hold, and
answers with its figures.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Literal

from tests.support.redis import RedisServer
from tickwork import Scheduler, Status, TaskContext
from tickwork.errors import StoreError, StoreUnavailable, TaskExists
from tickwork.model.facts import Fact
from tickwork.model.tasks import Record
from tickwork.store.contract import Query, Store
from tickwork.store.redis import RedisStore
from tickwork.store.redis.net.target import parse

Scale = Literal["short", "long"]
Figures = dict[str, float]
SHARED = 1.5  # and the core changes hands between two looks
Case = Callable[[int, Scale], Awaitable[Figures]]

NAMESPACE = "faults"
LEASE = 1.5
OPTIONS: dict[str, Any] = {
    "namespace": NAMESPACE,
    "concurrency": 5,
    "lease_ttl": LEASE,
    "renew_interval": 0.4,
    "leader_lease_ttl": 1.0,
    "leader_renew_interval": 0.25,
    "scan_interval": 0.25,
    "shutdown_timeout": 1.0,
    "timeout": 60.0,
    "max_losses": 1000,
}


def show(name: str, seed: int, figures: Figures) -> None:
    """For `pytest -s`, and for whoever writes the figures down."""
    print(f"{name} (seed {seed}): " + ", ".join(f"{key} {value:.6g}" for key, value in figures.items()))


class Witness:
    """What submitters and handlers of this process saw."""

    def __init__(self) -> None:
        self.acked: dict[str, float] = {}
        self.unknown: set[str] = set()
        self.starts: dict[str, list[float]] = {}
        self.returns: Counter[str] = Counter()
        self.live: Counter[str] = Counter()
        self.at_once: list[str] = []  # tasks that ran twice at the same time
        self.last_start = 0.0
        self.errors: list[str] = []

    def began(self, task_id: str) -> None:
        self.last_start = time.monotonic()
        self.starts.setdefault(task_id, []).append(self.last_start)
        if self.live[task_id]:
            self.at_once.append(task_id)
        self.live[task_id] += 1

    def ended(self, task_id: str) -> None:
        self.live[task_id] -= 1

    @property
    def reruns(self) -> int:
        return sum(len(times) - 1 for times in self.starts.values())


class Lines(logging.Handler):
    """Log lines, kept."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def texts(self, level: int = logging.INFO) -> list[str]:
        return [record.getMessage() for record in self.records if record.levelno >= level]


@contextlib.contextmanager
def log_lines() -> Iterator[Lines]:
    lines, logger = Lines(), logging.getLogger("tickwork")
    logger.addHandler(lines)
    try:
        yield lines
    finally:
        logger.removeHandler(lines)


class Crew:
    """Nodes in this process on one store, and submitters that never tire."""

    def __init__(self, url: str, seed: int, **options: Any) -> None:
        self.url = url
        self.options = {**OPTIONS, **options}
        self.chance = random.Random(seed)
        self.witness = Witness()
        self.nodes: list[Scheduler] = []
        self.client = self.scheduler(url)
        self._submitters: list[asyncio.Task[None]] = []
        self._number = 0
        self._enough = False

    def scheduler(self, url: str) -> Scheduler:
        app = Scheduler(url, **self.options)
        witness = self.witness

        @app.task
        async def work(milliseconds: int, ctx: TaskContext) -> int:
            witness.began(ctx.task_id)
            try:
                await asyncio.sleep(milliseconds / 1000)
                witness.returns[ctx.task_id] += 1
                return milliseconds
            finally:
                witness.ended(ctx.task_id)

        @app.task
        async def bulk(text: str) -> int:
            return len(text)

        return app

    async def start(self, nodes: int = 2, url: str | None = None) -> None:
        for _ in range(nodes):
            app = self.scheduler(url or self.url)
            await app.start()
            self.nodes.append(app)

    async def stop(self) -> None:
        for task in self._submitters:
            task.cancel()
        await asyncio.gather(*self._submitters, return_exceptions=True)
        await asyncio.gather(*(app.shutdown(0.2) for app in (*self.nodes, self.client)), return_exceptions=True)

    # --- submits

    def submit_on(self, submitters: int = 3, pause: float = 0.01, longest: int = 30) -> None:
        for _ in range(submitters):
            self._submitters.append(asyncio.create_task(self._submit_for_ever(pause, longest)))

    async def _submit_for_ever(self, pause: float, longest: int) -> None:
        while not self._enough:
            await self.submit(self.chance.randrange(1, longest))
            await asyncio.sleep(pause)

    def new_id(self) -> str:
        self._number += 1
        return f"t{self._number}"

    async def submit(self, milliseconds: int, task_id: str | None = None) -> str:
        """Submit by an id, and write down whether it was acknowledged."""
        task_id = task_id or self.new_id()
        try:
            await self.client.submit("work", milliseconds, id=task_id)
        except (StoreError, TaskExists) as error:
            self.witness.unknown.add(task_id)
            self.witness.errors.append(f"{task_id}: {error}")
        else:
            self.witness.acked[task_id] = time.monotonic()
        return task_id

    async def stop_submitting(self) -> None:
        """Let each make its last call: one that was cancelled might still arrive, when all has been counted."""
        self._enough = True
        await asyncio.gather(*self._submitters)
        self._submitters.clear()

    # --- waiting

    async def started_after(self, moment: float, timeout: float = 20) -> float:
        """Seconds from `moment` until any handler was started."""
        deadline = time.monotonic() + timeout
        while self.witness.last_start <= moment:
            assert time.monotonic() < deadline, f"nothing was started within {timeout:g} s"
            await asyncio.sleep(0.002)
        return self.witness.last_start - moment

    async def started(self, task_id: str, timeout: float = 20) -> float:
        """The moment at which this task was started."""
        deadline = time.monotonic() + timeout
        while task_id not in self.witness.starts:
            assert time.monotonic() < deadline, f"{task_id} was not started within {timeout:g} s"
            await asyncio.sleep(0.002)
        return self.witness.starts[task_id][0]

    async def drained(self, timeout: float = 30) -> None:
        """Until every task that was acknowledged has ended, or is gone, and nothing else waits or runs. Each is asked
        for by itself: counts of a store in motion may miss one that moves from home to home meanwhile."""
        store = await self.store()
        deadline = time.monotonic() + timeout
        left, counted = set(self.witness.acked), "not counted yet"
        while True:
            with contextlib.suppress(StoreUnavailable):
                left -= {task_id for task_id in left if await _is_over(store, task_id)}
                waiting = {
                    name: n for name, n in (await store.queries.stats()).statuses.items() if n and not name.ended
                }
                if not left and not waiting:
                    return
                counted = str(waiting)
            assert time.monotonic() < deadline, f"not done within {timeout:g} s: {sorted(left)[:5]}, {counted}"
            await asyncio.sleep(0.05)

    async def store(self) -> Store:
        return await self.client._open()

    # --- the judge

    async def judge(self) -> Figures:
        """Nothing acknowledged is lost or ended twice, and nothing ran twice at the same time."""
        store, witness = await self.store(), self.witness
        records = await records_of(store)
        lost = [task_id for task_id in witness.acked if task_id not in records]
        assert not lost, f"{len(lost)} acknowledged tasks are lost: {lost[:5]}"
        undone = [f"{task_id} is {records[task_id].status}" for task_id in witness.acked
                  if records[task_id].status is not Status.SUCCESS]  # fmt: skip
        assert not undone, f"{len(undone)} tasks are not done: {undone[:5]}"
        ends, releases = await ends_of(store)
        twice = [task_id for task_id, count in ends.items() if count > 1]
        assert not twice, f"{len(twice)} tasks ended twice: {twice[:5]}"
        assert not witness.at_once, f"{len(witness.at_once)} tasks ran twice at once: {witness.at_once[:5]}"
        unexplained = [task_id for task_id, times in witness.starts.items()
                       if task_id in records
                       and len(times) > 1 + records[task_id].losses + releases[task_id]]  # fmt: skip
        assert not unexplained, f"started again though neither lost nor given back: {unexplained[:5]}"
        problems = await store.queries.audit()
        assert problems == [], problems[:5]
        return {"acked": len(witness.acked), "unknown": len(witness.unknown), "reruns": witness.reruns}


async def _is_over(store: Store, task_id: str) -> bool:
    record = await store.queries.get(task_id)
    return record is None or record.status.ended


async def records_of(store: Store) -> dict[str, Record]:
    found: dict[str, Record] = {}
    cursor: str | None = None
    while True:
        page, cursor = await store.queries.page(Query(limit=1000, cursor=cursor))
        found.update((record.id, record) for record in page)
        if cursor is None:
            return found


async def ends_of(store: Store) -> tuple[Counter[str], Counter[str]]:
    """How often each task ended well, and how often it was given back."""
    ends: Counter[str] = Counter()
    releases: Counter[str] = Counter()
    after = 0
    while True:
        events, dropped = await store.log.read(after, 5000)
        assert dropped == 0, "the log is too short to judge by"
        if not events:
            return ends, releases
        ends.update(event.id for event in events if event.kind == Fact.TASK_SUCCEEDED)
        releases.update(event.id for event in events if event.kind == Fact.TASK_RELEASED)
        after = events[-1].seq


@contextlib.asynccontextmanager
async def crew(url: str, seed: int, nodes: int = 2, **options: Any) -> AsyncIterator[Crew]:
    """A crew at work; it is sent home at the end, whatever state the store is in."""
    team = Crew(url, seed, **options)
    try:
        await team.start(nodes)
        yield team
    finally:
        await team.stop()


@contextlib.asynccontextmanager
async def open_store(url: str, **options: Any) -> AsyncIterator[RedisStore]:
    store = RedisStore(parse(url), NAMESPACE, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def off_loop(step: Callable[..., Any], *args: Any) -> Any:
    """Do what blocks without stopping the nodes of this process."""
    return await asyncio.to_thread(step, *args)


async def restart(server: RedisServer, down: float) -> float:
    """SIGKILL, a while without a server, and back; answers the moment from which it answers."""
    await off_loop(server.kill)
    await asyncio.sleep(down)
    await off_loop(server.start)
    return time.monotonic()


def lenient(bound: float) -> float:
    """A bound on the wall clock, longer by as much as this process has to wait for a core now, with others beside."""
    started, spent = time.monotonic(), time.process_time()
    while time.process_time() - spent < 0.05:
        continue
    return bound * max((time.monotonic() - started) / 0.05, 1.0) * SHARED
