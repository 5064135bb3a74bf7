"""`scheduler_id`: one name, one living process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.apps import FAST, ROOT, Child, Make, eventually, store_of
from tickwork import RemoteWorker, Scheduler, StoreUnavailable, TickworkError
from tickwork.model.members import Worker as Member
from tickwork.store.contract import Store

LONG = ("lease_ttl=30.0", "renew_interval=10.0")  # nothing here may depend on a lease that runs out
ELSEWHERE = Member(id="twin", node="twin#there", host="other-host/boot/ns", pid=4711, pid_started="1")
NODE = "tests.integration.child_node"


def node(url: str, *options: str) -> Child:
    return Child(NODE, url, 'scheduler_id="twin"', *options)


def refused(url: str, *options: str) -> str:
    """What a second process says before it gives up."""
    shown = subprocess.run(
        [sys.executable, "-m", NODE, url, 'scheduler_id="twin"', *options],
        capture_output=True, text=True, timeout=30, cwd=ROOT, check=False,
    )  # fmt: skip
    assert shown.returncode == 1, shown.stdout
    assert "started" not in shown.stdout
    return shown.stderr


async def test_a_second_process_of_the_name_is_refused(make: Make, file_url: str, tmp_path: Path) -> None:
    client = make(file_url)
    with node(file_url, *LONG) as first:
        await first.expect("started")
        await client.submit("hold", str(tmp_path / "held"), id="it")
        await eventually((tmp_path / "held").exists)
        said = await asyncio.to_thread(refused, file_url, *LONG)
        assert f"the name 'twin' is in use by process {first.process.pid} on this host" in said
        assert "leave that option out" in said
        (member,) = await client.list_workers()
        assert (member.pid, member.lost_at) == (first.process.pid, None), "the first one is not disturbed"
        (tmp_path / "held").unlink()
        assert await client.handle("it").result(10) == first.process.pid
        assert (await client.get_task("it")).losses == 0
        assert await first.stop() == 0
    with node(file_url, *LONG) as second:
        await second.expect("started")


async def test_a_restart_after_a_crash_has_the_name_at_once(make: Make, file_url: str, tmp_path: Path) -> None:
    client = make(file_url)
    with node(file_url, *LONG) as first:
        await first.expect("started")
        await client.submit("hold", str(tmp_path / "held"), id="it")
        await eventually((tmp_path / "held").exists)
        await first.kill()
    (tmp_path / "held").unlink()
    with node(file_url, *LONG) as second:
        await second.expect("started")
        await eventually((tmp_path / "held").exists, what="what the dead one ran is taken back")
        (tmp_path / "held").unlink()
        assert await client.handle("it").result(10) == second.process.pid


async def test_a_name_that_is_used_on_another_host_is_refused(make: Make, url: str) -> None:
    app = make(url, scheduler_id="twin")
    store = await store_of(app)

    async def beat_on() -> None:
        while True:
            await store.members.beat(ELSEWHERE)
            await asyncio.sleep(0.2)

    await store.members.beat(ELSEWHERE)
    beating = asyncio.ensure_future(beat_on())
    try:
        with pytest.raises(TickworkError, match="in use by process 4711 on host other-host"):
            await app.start()
        assert (await app.status()).running is False
        assert [worker.node for worker in await store.members.workers()] == ["twin#there"]
    finally:
        beating.cancel()


async def test_a_name_of_one_that_died_on_another_host_is_free_after_its_lease(make: Make, url: str) -> None:
    app = make(url, scheduler_id="twin")

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    store = await store_of(app)
    await store.members.beat(ELSEWHERE)
    began = time.monotonic()
    await app.start()
    assert time.monotonic() - began > FAST["lease_ttl"] - 1
    assert [worker.pid for worker in await app.list_workers()] == [os.getpid()]
    assert await (await double.submit(2)).result(10) == 4


async def test_two_schedulers_of_one_process_cannot_share_a_name(make: Make, file_url: str) -> None:
    first, second = (make(file_url, scheduler_id="twin") for _ in range(2))
    async with first:
        with pytest.raises(TickworkError, match=f"in use by process {os.getpid()} on this host"):
            await second.start()
        assert (await first.status()).running
    async with second:  # as soon as the first has left
        assert (await second.status()).running
    async with first:  # and a scheduler may use its name as often as it likes
        assert (await first.status()).running


async def test_every_worker_of_a_node_has_its_own_name(make: Make, file_url: str) -> None:
    first = make(file_url, scheduler_id="twin", worker_count=2)
    second = make(file_url, scheduler_id="twin-2")
    async with first:
        with pytest.raises(TickworkError, match="the name 'twin-2' is in use"):
            await second.start()
        assert sorted(worker.id for worker in await first.list_workers()) == ["twin-1", "twin-2"]


async def test_a_node_whose_name_was_taken_meanwhile_gives_way(make: Make, file_url: str) -> None:
    """It was stopped for longer than its lease, and a process elsewhere has its name now."""
    client = make(file_url)
    store = await store_of(client)
    with node(file_url) as child:
        await child.expect("started")
        await pause(child, store)

        async def taken() -> bool:
            return (await store.members.beat(ELSEWHERE)).rival is None

        await eventually(taken, what="its lease is over")
        child.process.send_signal(signal.SIGCONT)

        async def ended() -> bool:
            await store.members.beat(ELSEWHERE)
            return child.process.poll() is not None

        await eventually(ended, 20, "it ends by itself")
        (member,) = [worker for worker in await store.members.workers() if worker.id == "twin"]
        assert (member.node, member.lost_at) == ("twin#there", None), "whoever has the name keeps it"


async def pause(child: Child, store: Store) -> None:
    """Stop a process, but not in the middle of a write: it would keep everybody from the file."""
    while True:
        await store.members.beat(
            Member(id="witness")
        )  # so it has ended the write in which it was stopped the last time
        child.process.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(os.waitid, os.P_PID, child.process.pid, os.WSTOPPED)
        try:
            await store.members.beat(Member(id="witness"))
            return
        except StoreUnavailable:
            child.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("options", [{}, {"scheduler_id": "twin"}])
async def test_of_two_that_only_schedule_one_leads(make: Make, file_url: str, options: dict[str, Any]) -> None:
    """They are no workers, so a shared name does no harm: leadership is of one process."""
    lease = 4.0
    first, second = (make(file_url, leader_lease_ttl=lease, **options) for _ in range(2))

    async def leaders() -> list[Scheduler]:
        return [app for app in (first, second) if (await app.status()).is_leader]

    await first.start(work=False)
    await eventually(leaders)
    await second.start(work=False)
    ending = time.monotonic() + lease + 1
    while time.monotonic() < ending:
        assert await leaders() == [first]
        await asyncio.sleep(0.05)
    await first.shutdown()
    assert await eventually(leaders) == [second]
    assert (await second.status()).leader_id == second.id


async def test_a_worker_outside_cannot_take_the_name_of_a_living_one(make: Make, file_url: str) -> None:
    app = make(file_url, scheduler_id="twin")
    async with app:
        with pytest.raises(TickworkError, match=f"in use by process {os.getpid()}"):
            await app.register_worker(RemoteWorker(id="twin"))
        await app.register_worker(RemoteWorker(id="another"))
        await app.register_worker(RemoteWorker(id="another", capacity=1))
