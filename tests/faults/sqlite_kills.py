"""SIGKILL after SIGKILL on processes that share one SQLite file, while the others go on.

`python -m tests.faults.sqlite_kills --kills 200` is the long form; the suite runs a short one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.faults.history import History, Judgement, judge
from tickwork.model.facts import Fact
from tickwork.model.policy import Policy
from tickwork.model.tasks import Record, Status
from tickwork.store.contract import Query
from tickwork.store.sqlite import SqliteStore

ROOT = Path(__file__).resolve().parents[2]


class Crew:
    """Processes on one file; whoever is killed is replaced at once."""

    def __init__(self, folder: Path, size: int) -> None:
        self.database = folder / "tick.db"
        self.history = folder / "history.jsonl"
        self._members = [self._start("submit") for _ in range(size)]

    def _start(self, role: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.faults.victim", f"sqlite:///{self.database}", str(self.history), role]
        return subprocess.Popen(command, cwd=ROOT)

    def up(self) -> int:
        alive = {member.pid for member in self._members}
        return len({line["pid"] for line in History.read(self.history) if line["what"] == "up"} & alive)

    def kill_one(self, chance: random.Random) -> None:
        index = chance.randrange(len(self._members))
        victim = self._members[index]
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        self._members[index] = self._start("submit")

    def finish(self) -> None:
        """Only a worker stays, which submits nothing, until all is done."""
        for member in self._members:
            member.kill()
            member.wait()
        self._members = [self._start("work")]

    def stop(self) -> None:
        for member in self._members:
            member.kill()
            member.wait()


async def records_of(store: SqliteStore) -> dict[str, Record]:
    found: dict[str, Record] = {}
    cursor: str | None = None
    while True:
        page, cursor = await store.queries.page(Query(limit=1000, cursor=cursor))
        found.update((record.id, record) for record in page)
        if cursor is None:
            return found


async def wait_until_done(store: SqliteStore, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        stats = await store.queries.stats()
        if not any(count for status, count in stats.statuses.items() if not status.ended):
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"not done after {seconds} s: {dict(stats.statuses)}")


async def run(folder: Path, kills: int, seed: int, size: int = 3, pause: float = 0.25) -> Judgement:
    chance = random.Random(seed)
    crew = Crew(folder, size)
    try:
        deadline = time.monotonic() + 60
        while crew.up() < size and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        for number in range(kills):
            await asyncio.sleep(chance.uniform(0.2, 1.8) * pause)
            crew.kill_one(chance)
            if kills > 50 and number % 10 == 9:
                print(f"{number + 1} of {kills} killed", flush=True)
        crew.finish()
        store = SqliteStore(str(crew.database), "faults", Policy())
        await store.open()
        try:
            await wait_until_done(store, 60)
            problems = await store.queries.audit()
            assert problems == [], problems
            records = await records_of(store)
            events, dropped = await store.log.read(0, 1_000_000)
            assert dropped == 0 or kills > 50, "the log is too short to judge by"
            ends = Counter(event.id for event in events if event.kind == Fact.TASK_SUCCEEDED)
            assert all(record.status is Status.SUCCESS for record in records.values())
        finally:
            await store.close()
    finally:
        crew.stop()
    with sqlite3.connect(crew.database) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return judge(History.read(crew.history), records, ends)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(run(Path(folder), options.kills, options.seed))
    print(
        f"{options.kills} kills: {found.acked} acknowledged, "
        f"{len(found.lost)} lost, {len(found.unfinished)} unfinished, "
        f"{len(found.ended_twice)} ended twice, {found.reruns} reruns of {found.starts} starts, "
        f"{len(found.unexplained_reruns)} of them unexplained"
    )
    for problem in (*found.lost, *found.unfinished, *found.ended_twice, *found.unexplained_reruns):
        print(f"  {problem}")
    return 0 if found.clean else 1


if __name__ == "__main__":
    sys.exit(main())
