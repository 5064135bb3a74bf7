"""A deployment that changes the layout: processes of this version, and of a next one that is made here, on one store.

The next version is this one with the number of the layout raised by one, and a migration that moves everything as it
is. So this test shows what a node of this version does when it is overtaken, which it must know before there is a
newer version.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

import tickwork
from tests.support.redis import RedisServer
from tests.support.redis.process import spawn
from tests.support.waiting import wait_until
from tickwork import Scheduler

pytestmark = pytest.mark.timeout(120)

HERE = Path(tickwork.__file__).parent
NODE = Path(__file__).with_name("rolling_node.py")
AS_IT_IS = """

def rewrite(value: bytes) -> Moved:
    return Moved(value, "", [])
"""


NEXT_SCHEMA = """

def _to_next(db: sqlite3.Connection, namespace: str, report: Report) -> None:
    before = f"{owner_of(namespace)}/{VERSION - 1}/"
    every = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    names = [name for (name,) in every if name.startswith(before)]
    for name in names:
        db.execute(f'ALTER TABLE "{name}" RENAME TO {qualify("@" + name.removeprefix(before), namespace)}')
    refuse_older(db, names)


STEPS[VERSION - 1] = _to_next
"""


def make_next(folder: Path) -> Path:
    """The package as its next version might be."""
    package = folder / "tickwork"
    shutil.copytree(HERE, package, ignore=shutil.ignore_patterns("__pycache__"))
    sqlite = package / "store" / "sqlite"
    replace(sqlite / "schema.py", "VERSION = 4", "VERSION = 5")
    with (sqlite / "migrations.py").open("a") as file:
        file.write(NEXT_SCHEMA)
    redis = package / "store" / "redis"
    replace(redis / "keys.py", 'VERSION = "3"', 'VERSION = "4"')
    replace(redis / "keys.py", 'BEFORE = "2"', 'BEFORE = "3"')
    replace(redis / "lua" / "parts" / "layout.lua", "LAYOUT = '3'", "LAYOUT = '4'")
    replace(redis / "migrations.py", 'DROPPED = ("leases", "watchers")', 'DROPPED = ("watchers",)')
    with (redis / "migrations.py").open("a") as file:
        file.write(AS_IT_IS)
    return folder


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name} does not have {old!r} once"
    path.write_text(text.replace(old, new))


class Versions:
    """Starts processes of this version and of the next one."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.paths = {"now": HERE.parent, "next": make_next(folder / "next")}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.logs: dict[int, Path] = {}

    def start(self, version: str, *args: str) -> subprocess.Popen[bytes]:
        log = self.folder / f"{version}-{args[1] if args[0] == str(NODE) else 'cli'}-{len(self.processes)}.log"
        command = ["/usr/bin/env", f"PYTHONPATH={self.paths[version]}", sys.executable, *args]
        process = spawn(command, self.folder, log)
        self.processes.append(process)
        self.logs[process.pid] = log
        return process

    def text(self, process: subprocess.Popen[bytes]) -> str:
        return self.logs[process.pid].read_text()

    def node(self, version: str) -> subprocess.Popen[bytes]:
        return self.start(version, str(NODE), "work", self.url, str(self.folder / f"ran-{version}"))

    def submitter(self, version: str, letter: str) -> subprocess.Popen[bytes]:
        return self.start(version, str(NODE), "submit", self.url, str(self.folder / f"sent-{version}"), letter)

    def migrate(self, *options: str) -> subprocess.Popen[bytes]:
        return self.start("next", "-m", "tickwork", "migrate", "--store", self.url, *options)

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(params=["redis", "sqlite"])
def versions(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Versions]:
    with RedisServer(options={"appendonly": "yes"}) if request.param == "redis" else nullcontext() as server:
        found = Versions(f"sqlite:///{tmp_path}/tick.db" if server is None else server.url, tmp_path)
        yield found
        for process in found.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


async def until(condition: Callable[[], bool], what: str, versions: Versions) -> None:
    def logs() -> str:
        return "\n".join(f"--- {process.args!r}\n{versions.text(process)[-2000:]}" for process in versions.processes)

    try:
        await wait_until(condition, what=what, timeout=40)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{logs()}") from None


async def test_nodes_that_are_overtaken_stop_and_lose_nothing(versions: Versions) -> None:
    """The migration does not wait for the older nodes, which run tasks all the time."""
    old = [versions.node("now"), versions.node("now")]
    sender = versions.submitter("now", "a")
    await until(lambda: len(versions.lines("ran-now")) > 50, "the older nodes to work", versions)
    migration = versions.migrate("--take-over")
    await until(lambda: migration.poll() is not None, "the migration to end", versions)
    assert migration.returncode == 0, versions.text(migration)
    new = versions.node("next")
    await until(
        lambda: all(process.poll() is not None for process in (*old, sender)), "the older ones to end", versions
    )
    (refusal,) = versions.lines("sent-now.refused")
    assert re.search("was (written|migrated) by a newer version of Tickwork", refusal)
    assert "upgrade this process" in refusal
    for node in old:
        assert "upgrade this process" in versions.text(node)
    late = versions.submitter("next", "b")
    await until(lambda: len(versions.lines("sent-next")) > 50, "the new submitter to work", versions)
    (versions.folder / "sent-next.stop").touch()
    sent = {*versions.lines("sent-now"), *versions.lines("sent-next")}
    await until(lambda: late.poll() is not None, "the submitter to end", versions)
    sent |= {*versions.lines("sent-next")}
    await until(lambda: sent <= {*versions.lines("ran-now"), *versions.lines("ran-next")}, "all to have run", versions)
    new.send_signal(signal.SIGTERM)
    await until(lambda: new.poll() is not None, "the new node to end", versions)
    assert new.returncode == 0, versions.text(new)


async def test_a_migration_waits_for_the_older_nodes_to_be_stopped(versions: Versions) -> None:
    node = versions.node("now")
    app = Scheduler(versions.url)
    for _ in range(20):
        await app.submit("step", 10)
    await app.close()
    await until(lambda: len(versions.lines("ran-now")) == 20, "the tasks to run", versions)
    refused = versions.migrate()
    await until(lambda: refused.poll() is not None, "the migration to be refused", versions)
    assert refused.returncode != 0
    assert "is in use by workers of an older version of Tickwork" in versions.text(refused)
    node.send_signal(signal.SIGTERM)
    await until(lambda: node.poll() is not None, "the older node to end", versions)
    migration = versions.migrate()
    await until(lambda: migration.poll() is not None, "the migration to end", versions)
    assert migration.returncode == 0, versions.text(migration)
    again = versions.migrate()
    await until(lambda: again.poll() is not None, "the second migration to end", versions)
    assert (again.returncode, "nothing to do" in versions.text(again)) == (0, True), versions.text(again)
