"""What the fault cases on Redis share: a server, processes that are signalled, and the questions asked at the end."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

from tests.faults.history import History, Judgement, Line, judge
from tests.support.redis import RedisServer
from tests.support.redis.process import spawn
from tickwork import Scheduler
from tickwork.model.facts import Event, Fact
from tickwork.model.policy import Policy
from tickwork.model.tasks import Record, Status
from tickwork.store.contract import Query, Store
from tickwork.store.redis import RedisStore
from tickwork.store.redis.net.target import parse

Scale = Literal["short", "long"]
Case = Callable[[int, Scale], Awaitable[str]]

ROOT = Path(__file__).resolve().parents[2]
SLACK = 1.0  # seconds beyond a lease in which what was lost must run, or be led, again
EVENTS_PAGE = 1000
KEEP = "FAULTS_KEEP"


class Crew:
    """Nodes, each a process of its own, on one server."""

    def __init__(self, url: str, folder: Path, options: dict[str, Any], program: str = "victim") -> None:
        self.history = History(folder / "history.jsonl")
        self.members: list[subprocess.Popen[bytes]] = []
        self.log = folder / "nodes.log"
        self._command = [sys.executable, "-m", f"tests.faults.{program}", url, str(self.history.path), "work"]
        self._options = options

    async def start(self, count: int = 1) -> None:
        """Return once they all work."""
        for _ in range(count):
            self.hire()
        await until(lambda: len(self.up()) == len(self.members), 20, lambda: f"the nodes to be up; they say:\n{self}")

    def hire(self) -> None:
        self.members.append(spawn([*self._command, json.dumps(self._options)], ROOT, self.log))

    def up(self) -> list[subprocess.Popen[bytes]]:
        known = {line["pid"] for line in self.history.lines() if line["what"] == "up"}
        return [member for member in self.members if member.pid in known and member.poll() is None]

    def of_node(self, node: str) -> subprocess.Popen[bytes] | None:
        pids = {line["pid"] for line in self.history.lines() if line["what"] == "up" and line["node"] == node}
        return next((member for member in self.members if member.pid in pids), None)

    def of_pid(self, pid: int) -> subprocess.Popen[bytes]:
        return next(member for member in self.members if member.pid == pid)

    def kill(self, member: subprocess.Popen[bytes]) -> float:
        """SIGKILL it; the time before that."""
        at = time.time()
        member.send_signal(signal.SIGKILL)
        self.bury(member)
        self._hit(member, "kill", at)
        return at

    def bury(self, member: subprocess.Popen[bytes]) -> None:
        member.wait()
        self.members.remove(member)

    def stop(self, member: subprocess.Popen[bytes]) -> float:
        at = time.time()
        member.send_signal(signal.SIGSTOP)
        os.waitpid(member.pid, os.WUNTRACED)
        self._hit(member, "stop", at)
        return at

    def go_on(self, member: subprocess.Popen[bytes]) -> float:
        at = time.time()
        member.send_signal(signal.SIGCONT)
        self._hit(member, "cont", at)
        return at

    def _hit(self, member: subprocess.Popen[bytes], what: str, at: float) -> None:
        """Write down from when to when the signal may have come: until it has, the process goes on."""
        self.history.write(what, victim=member.pid, at=at, till=time.time())

    def close(self) -> None:
        for member in self.members:
            member.kill()
            member.wait()
        self.history.close()

    def __str__(self) -> str:
        return self.log.read_text()[-3000:] if self.log.exists() else "(nothing)"


class Scene:
    """One case on any store: a crew, a client that submits, and a store to look at."""

    def __init__(self, crew: Crew, app: Scheduler, store: Store) -> None:
        self.crew = crew
        self.app = app
        self.store = store

    @property
    def lines(self) -> list[Line]:
        return self.crew.history.lines()

    def seen(self, what: str, task_id: str) -> list[Line]:
        return [line for line in self.lines if line["what"] == what and line["id"] == task_id]

    async def first(self, what: str, task_id: str) -> Line:
        """The first line of that kind, as soon as it is there."""
        await until(lambda: self.seen(what, task_id), 10, lambda: f"{what} of {task_id}; {self.crew}")
        return self.seen(what, task_id)[0]

    async def submit(self, type: str, payload: Any, task_id: str) -> None:
        await self.app.submit(type, payload, id=task_id)
        self.crew.history.write("ack", id=task_id)

    async def done(self, seconds: float) -> None:
        """Wait until every task has ended."""

        async def all_ended() -> bool:
            statuses = (await self.store.queries.stats()).statuses
            return not any(count for status, count in statuses.items() if not status.ended)

        await until(all_ended, seconds, lambda: f"all tasks to end; the nodes say:\n{self.crew}")

    async def records(self) -> dict[str, Record]:
        found: dict[str, Record] = {}
        cursor: str | None = None
        while True:
            page, cursor = await self.store.queries.page(Query(limit=1000, cursor=cursor))
            found.update((record.id, record) for record in page)
            if cursor is None:
                return found

    async def log_lines(self, task_id: str) -> list[str]:
        return (await self.store.queries.history(task_id)).lines

    async def facts(self, *kinds: Fact) -> list[Event]:
        found: list[Event] = []
        after = 0
        while True:
            page, dropped = await self.store.log.read(after, EVENTS_PAGE)
            assert dropped == 0, "the log is too short to judge by"
            found += [event for event in page if event.kind in kinds]
            if len(page) < EVENTS_PAGE:
                return found
            after = page[-1].seq

    async def judgement(self, recovery: float) -> Judgement:
        """What the judge says, once everything has ended; it must be nothing bad, and the store must be sound."""
        assert await self.store.queries.audit() == []
        records = await self.records()
        ends = Counter(event.id for event in await self.facts(Fact.TASK_SUCCEEDED, Fact.TASK_DIED))
        for record in records.values():
            if record.status is Status.SUCCESS:
                assert record.result == str(record.fence).encode(), f"{record.id} holds the result of another run"
        found = judge(self.lines, records, ends, recovery)
        assert found.clean, found
        return found


class Stage(Scene):
    """One case on a server."""

    store: RedisStore

    def __init__(self, server: RedisServer, crew: Crew, app: Scheduler, store: RedisStore) -> None:
        super().__init__(crew, app, store)
        self.server = server


@asynccontextmanager
async def stage(size: int = 3, **options: Any) -> AsyncIterator[Stage]:
    """A server with so many nodes on it; the options are those of their schedulers, and `stranger`."""
    partitions = options.get("partitions", 1)
    with evidence() as folder, RedisServer() as server:
        crew = Crew(server.url, folder, options)
        app = Scheduler(server.url, namespace="faults", partitions=partitions)
        store = RedisStore(parse(server.url), "faults", Policy(), partitions=partitions)
        try:
            await store.open()
            await crew.start(size)
            yield Stage(server, crew, app, store)
        finally:
            crew.close()
            await app.close()
            await store.close()


@contextmanager
def evidence() -> Iterator[Path]:
    """A folder for the history and what the nodes say. `chaos` keeps that of a case that was red."""
    folder = Path(tempfile.mkdtemp(prefix="tickwork-faults-"))
    try:
        yield folder
    except Exception as error:
        if os.environ.get(KEEP):
            error.add_note(f"its history is in {folder}")
            raise
        shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)


async def until(
    condition: Callable[[], object | Awaitable[object]], seconds: float, what: Callable[[], str] = lambda: "it"
) -> None:
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if await found if isinstance(found, Awaitable) else found:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what()}")
        await asyncio.sleep(0.02)


def pick(chance: random.Random, crew: Crew) -> subprocess.Popen[bytes] | None:
    """One of the nodes that work already: the death of one that only starts shows nothing."""
    up = crew.up()
    return chance.choice(up) if up else None
