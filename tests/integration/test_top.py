"""`tickwork top`, and the looks at a store that it is drawn from."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.integration.apps import Make
from tests.support.redis.server import RedisServer
from tickwork import Fact, Scheduler, Status
from tickwork.cli import commands
from tickwork.client import watching
from tickwork.client.watching import Watcher
from tickwork.testing import ManualClock, drain

if sys.platform == "win32":
    pytest.skip("needs a pseudo terminal", allow_module_level=True)

import pty
import termios


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with a bit of everything."""
    url = f"sqlite:///{tmp_path}/top.db"

    async def fill() -> None:
        app = Scheduler(url)

        @app.task(max_retry=0)
        async def pay(amount: int) -> None:
            raise ValueError("no money\x1b[2J")

        @app.task
        async def mail(to: str) -> None: ...

        @app.periodic("0 3 * * *")
        async def nightly() -> None: ...

        async with app:
            await pay.submit(1)
            await mail.submit("ada")
            await drain(app, timeout=60)
        await mail.options(queue="mails").submit("bob")
        await app.queues.pause("mails", "until noon")
        await app.close()

    asyncio.run(fill())
    return url


def run(*args: str) -> Result:
    return CliRunner().invoke(commands, ["top", *args])


def test_one_screen(store: str) -> None:
    shown = run("--once", "--store", store)
    assert shown.exit_code == 0, shown.output
    for wanted in ("mails", "PAUSED until noon", "no worker is up", "nightly", "ValueError: no money", "succeeded"):
        assert wanted in shown.output
    assert "\x1b" not in shown.output


def test_one_snapshot_for_programs(store: str) -> None:
    shown = json.loads(run("--json", "--store", store).output)
    assert shown["tasks"]["dead"] == 1
    assert [(queue["name"], queue["paused"]) for queue in shown["queues"]] == [("mails", True)]
    assert [each["id"] for each in shown["schedules"]] == ["nightly"]
    assert [each["type"] for each in shown["dead_letters"]] == ["pay"]
    assert set(shown["rates"]) == {"submitted", "done", "failed"}
    assert shown["events"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--interval", "0.01"], "less than 0.1 s"),
        (["--follow"], "--follow goes with --json"),
        (["--follow", "--json", "--once"], "not with --once"),
    ],
)
def test_options_that_make_no_sense(store: str, args: list[str], words: str) -> None:
    shown = CliRunner().invoke(commands, ["top", "--store", store, *args], standalone_mode=False)
    assert words in str(shown.exception)


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    shown = run("--once", "--store", f"sqlite:///{tmp_path}/no.db")
    assert shown.exit_code == 3
    assert "there is no SQLite file" in shown.output


class Top:
    """`tickwork top` on a terminal."""

    def __init__(self, *args: str, rows: int = 24) -> None:
        self.ours, self.theirs = pty.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tickwork", "top", "--no-color", *args],
            stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, start_new_session=True,
            env={**os.environ, "LINES": str(rows), "COLUMNS": "80"},
        )  # fmt: skip

    def until(self, words: str, times: int = 1) -> None:
        seen = 0
        while seen < times:
            self.shown += os.read(self.ours, 65536).decode(errors="replace")
            seen = len(re.findall(words, self.shown))

    def end(self) -> int:
        status = self.process.wait(60)
        assert termios.tcgetattr(self.theirs) == self.before, "the terminal is as it was"
        assert "Traceback" not in self.shown
        return status

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def start_top() -> Iterator[Callable[..., Top]]:
    started: list[Top] = []

    def start(*args: str, **options: Any) -> Top:
        started.append(Top(*args, **options))
        return started[-1]

    yield start
    for top in started:
        top.close()


def test_q_ends_it(store: str, start_top: Callable[..., Top]) -> None:
    top = start_top("--store", store, "--interval", "0.1")
    top.until("q quits", times=3)
    assert "\x1b[23A" in top.shown, "in place"
    os.write(top.ours, b"q")
    assert top.end() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(store: str, start_top: Callable[..., Top], number: signal.Signals) -> None:
    top = start_top("--store", store, "--interval", "30s")
    top.until("q quits")
    top.process.send_signal(number)
    assert top.end() == 0


@pytest.mark.parametrize("flags", [[], ["--json", "--follow"]], ids=["text", "json"])
def test_without_a_terminal_it_prints_a_line_for_each_look(store: str, flags: list[str]) -> None:
    command = [sys.executable, "-m", "tickwork", "top", "--store", store, "--interval", "0.1", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    for line in lines:
        if flags:
            assert json.loads(line)["tasks"]["dead"] == 1
        else:
            assert " ready=1 running=0 " in line


def test_it_goes_on_when_redis_is_away_and_back(tmp_path: Path, start_top: Callable[..., Top]) -> None:
    async def fill(url: str) -> None:
        app = Scheduler(url)
        await app.submit("work")
        await app.close()

    with RedisServer() as server:
        asyncio.run(fill(server.url))
        top = start_top("--store", server.url, "--interval", "0.1")
        top.until("q quits", times=2)
        server.pause()
        top.until("THE STORE CANNOT BE REACHED")
        server.resume()
        top.shown = ""
        top.until("q quits", times=2)
        os.write(top.ours, b"q")
        assert top.end() == 0


# --- looks at a store


async def test_a_look_has_what_happened_since_the_last_one(make: Make, clock: ManualClock) -> None:
    app = make("memory://", clock=clock)

    @app.task
    async def work(n: int) -> None: ...

    watcher = Watcher(app)
    async with app:
        assert (await watcher.look()).submitted == [0.0] * watching.HISTORY
        await work.submit_many(range(30))
        await drain(app)
        clock.advance(1)
        snap = await watcher.look()
        assert (snap.submitted[-1], snap.done[-1]) == (30, 30)
        clock.advance(3)
        snap = await watcher.look()
        assert snap.submitted[-4:] == [30, 0, 0, 0]
        assert snap.stats.statuses[Status.SUCCESS] == 30
        assert snap.workers[0].running == 0


async def test_the_first_look_finds_facts_before_numbers_that_were_left_out(
    make: Make, clock: ManualClock, tmp_path: Path
) -> None:
    """A file that is opened anew goes on at the number of the current time."""
    url = f"sqlite:///{tmp_path}/often.db"
    for _ in range(3):
        app = make(url, clock=clock)
        await app.submit("work")
        await app.close()
        clock.advance(3600)
    app = make(url, clock=clock)
    snap = await Watcher(app, [Fact.TASK_SUBMITTED]).look()
    assert len(snap.latest) == 3
    assert snap.latest[-1].seq - snap.latest[0].seq > 1_000_000, "or this test shows nothing"


async def test_a_look_reads_no_more_of_the_log_than_it_can_show(
    make: Make, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOG_PAGE", 10)
    app = make("memory://", clock=clock)

    @app.task
    async def work(n: int) -> None: ...

    watcher = Watcher(app)
    await watcher.look()
    reads = 0
    read = app.events.read

    async def counting(*args: Any, **options: Any) -> Any:
        nonlocal reads
        reads += 1
        return await read(*args, **options)

    monkeypatch.setattr(app.events, "read", counting)
    for _ in range(2):  # seconds
        await work.submit_many(range(500))
        clock.advance(1)
    snap = await watcher.look()
    assert reads == watching.LOG_PAGES + 1
    assert sum(snap.submitted) == pytest.approx(1000, rel=0.05), "estimated from what was read"
    assert snap.latest[-1].seq == await (await app._open()).log.last()
    reads = 0
    await watcher.look()
    assert reads == 1
    await app.close()


async def test_a_look_at_redis_is_few_commands_whatever_it_holds() -> None:
    """Also where there are thousands of tasks and hundreds of schedules."""
    with RedisServer() as server:
        app = Scheduler(server.url)

        @app.task(max_retry=0)
        async def work(n: int) -> None: ...

        await work.submit_many(range(3000))
        for number in range(300):
            await app.schedules.put(f"s{number}", "work", {"n": 1}, cron="@daily")
        watcher = Watcher(app)
        await watcher.look()
        before = int(server.info("stats")["total_commands_processed"])
        for _ in range(5):
            await watcher.look()
        commands_a_look = (int(server.info("stats")["total_commands_processed"]) - before) / 5
        await app.close()
    assert commands_a_look < 40, "those inside of scripts count too"
