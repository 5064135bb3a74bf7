"""A schedule that was declared in code stops once no process declares it, and goes on when one does again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from click.testing import CliRunner

from tests.integration.apps import Make
from tickwork.cli import commands
from tickwork.model.schedules import UNDECLARED, Schedule
from tickwork.model.tasks import Spec
from tickwork.node.declarations import DECLARES_MAX, declares

START = 1_700_000_000_000
DECLARED = Schedule(
    id="nightly", cron="@daily", task=Spec(id="", type="job", nonce=""), next_at=START + 60_000, declared=True
)


def test_a_heartbeat_stays_small() -> None:
    assert declares(["a", "b"]) == ("a", "b")
    assert declares([f"s{n}" for n in range(DECLARES_MAX + 1)]) is None


async def test_a_start_declares_and_lets_a_stopped_one_go_on(make: Make, url: str) -> None:
    app = make(url)

    @app.periodic("0 0 1 1 *")
    async def yearly() -> None: ...

    async with app:
        store = await app._open()
        await app.schedules.put("by-hand", "yearly", cron="@daily")
        marks = {schedule.id: schedule.declared for schedule in (await store.schedules.page())[0]}
        assert marks == {"yearly": True, "by-hand": False}
        assert [worker.declares for worker in await store.members.workers()] == [("yearly",)]
    await (await app._open()).schedules.change("yearly", stopped=UNDECLARED)
    async with app:
        assert (await app.schedules.get("yearly")).stopped == ""


PROGRAM = """
import sys
from tickwork import Scheduler
from tickwork.node import declarations, standard

declarations.GRACE, standard.LOOK = 2000, 0.2
app = Scheduler(sys.argv[1], leader_lease_ttl=3, leader_renew_interval=0.5, lease_ttl=5, renew_interval=0.5)

@app.task
async def job() -> None: ...

if sys.argv[2] == "old":
    @app.periodic("* * * * * *")
    async def sweep() -> None: ...

app.run()
"""


@asynccontextmanager
async def program(url: str, version: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    process = await asyncio.to_thread(subprocess.Popen, [sys.executable, "-c", PROGRAM, url, version])
    try:
        yield process
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 60)


async def until(ask: Callable[[], Awaitable[object]], wanted: object) -> None:
    deadline = time.monotonic() + 60
    while (found := await ask()) != wanted:
        assert time.monotonic() < deadline, f"{found!r} did not become {wanted!r}"
        await asyncio.sleep(0.05)


async def test_a_deploy_without_it_ends_its_ticks(make: Make, file_url: str) -> None:
    app = make(file_url)

    async def is_stopped() -> str:
        return (await app.schedules.get("sweep")).stopped

    async def count_workers() -> int:
        return len(await app.list_workers("online"))

    async def last_fire() -> object:
        return (await app.schedules.get("sweep")).last_fire_at

    async with program(file_url, "old") as old:
        await until(count_workers, 1)
        async with program(file_url, "new"):
            await until(count_workers, 2)
            await until(is_stopped, "")
            old.terminate()
            await asyncio.to_thread(old.wait, 60)
            await until(is_stopped, UNDECLARED)
            before = await last_fire()
            async with program(file_url, "old"):
                await until(is_stopped, "")

                async def fired_again() -> bool:
                    return await last_fire() != before

                await until(fired_again, True)


async def test_doctor_names_it_and_the_command_that_deletes_it(make: Make, sqlite_url: str) -> None:
    app = make(sqlite_url)
    store = await app._open()
    await store.schedules.put(DECLARED)
    await store.schedules.change("nightly", stopped=UNDECLARED)

    def run(*words: str) -> str:
        return CliRunner().invoke(commands, [*words, "--store", sqlite_url]).stdout

    told = await asyncio.to_thread(run, "doctor")
    assert "schedule nightly has stopped: no running process declares it" in told
    assert "if it is not wanted any more: tickwork schedules delete nightly" in told
    assert "stopped: no running process declares it" in await asyncio.to_thread(run, "schedules", "show", "nightly")
