"""Workers that are asked to take no more tasks, and to take tasks again."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.integration.apps import Gate, Make, eventually, status_of, store_of
from tests.integration.programs import Shop
from tickwork import Fact, Reason, Scheduler, Status, WorkerNotFound
from tickwork.cli import commands
from tickwork.client import orders
from tickwork.testing import wait_for


async def follows(app: Scheduler, order: str) -> bool:
    (worker,) = await (await store_of(app)).members.workers()
    return worker.follows == order


@pytest.mark.parametrize("busy", [True, False])
async def test_a_worker_that_drains_finishes_what_it_runs_and_takes_no_more(make: Make, url: str, busy: bool) -> None:
    """An idle one may have left a claim in the store, which is recalled."""
    app, gate = make(url, concurrency=3), Gate()
    app.registry.register("hold", gate.pass_through)

    @app.task
    async def quick() -> int:
        return 1

    async with app:
        await quick.call(timeout=30)
        held = [await app.submit("hold") for _ in range(busy)]
        await eventually(lambda: gate.inside == busy, 30)
        await app.drain_worker(app.id)
        await eventually(lambda: follows(app, "drain"), 30)
        (worker,) = await app.list_workers("draining")
        assert [found.id for found in await app.list_workers("online")] == [worker.id]
        assert worker.status == "draining"
        waits = await quick.submit()
        assert len(await orders.still_working(app._access, [app.id])) == busy
        gate.open()
        for handle in held:
            assert await wait_for(app, handle.id, Status.SUCCESS, timeout=30)

        async def drained() -> bool:
            return not await orders.still_working(app._access, [app.id])

        await eventually(drained, 30)
        assert await status_of(app, waits.id) == Status.READY
        assert (await app.explain(waits.id)).reason == Reason.WORKERS_DRAINING

        await app.resume_worker(app.id)
        assert await waits.result(30) == 1
        assert [found.status for found in await app.list_workers()] == ["idle"]
        ordered = [event.seq for event in await app.events.read() if event.kind == Fact.WORKER_ORDERED]
        claims = [event.seq for event in await app.events.read(task_id=waits.id) if event.kind == Fact.TASK_CLAIMED]
        assert len(ordered) == 2
        assert claims[0] > ordered[1]


async def test_a_worker_that_is_not_there_cannot_be_drained(make: Make, url: str) -> None:
    app = make(url)
    with pytest.raises(WorkerNotFound, match="nobody"):
        await app.drain_worker("nobody")
    with pytest.raises(WorkerNotFound, match="nobody"):
        await app.resume_worker("nobody")


# --- on the command line, with real processes


@pytest.fixture
def shop(tmp_path: Path, file_url: str) -> Iterator[Shop]:
    shop = Shop(tmp_path, url=file_url, options="scheduler_id='till', concurrency=2")
    yield shop
    shop.close()


def run(shop: Shop, *args: str) -> Result:
    return CliRunner().invoke(commands, [*args, "--store", shop.url])


def rows(result: Result) -> Any:
    return json.loads(result.stdout)["workers"]


def test_the_workers_of_a_host_are_drained_and_resumed(shop: Shop) -> None:
    program = shop.start("up", "shop:app")
    task, _ = shop.hold("one")
    told = run(shop, "workers", "drain", "--no-wait", "--json")
    assert (told.exit_code, rows(told)) == (0, [{"id": "till", "done": "draining", "running": 0}])
    program.until("Worker drains: it takes no more tasks worker=till running=1")
    waits = shop.app.sync.submit("who")
    impatient = run(shop, "workers", "drain", "till", "--timeout", "1s")
    assert (impatient.exit_code, impatient.stdout) == (1, "till  still runs 1 task\n")
    assert [worker["status"] for worker in rows(run(shop, "workers", "--json"))] == ["draining"]
    assert "1 worker asked to take no more tasks: till" in run(shop, "doctor").stdout
    assert "are draining" in run(shop, "task", waits.id).stdout
    shop.go()
    patient = run(shop, "workers", "drain")
    assert (patient.exit_code, patient.stdout) == (0, "till  drained\n")
    assert shop.task(task).status == Status.SUCCESS
    assert waits.info().status == Status.READY

    assert run(shop, "workers", "resume").stdout == "till  resumed\n"
    assert waits.result(60) > 0
    assert program.lines("Worker takes tasks again")


def test_a_process_that_is_started_again_takes_tasks(shop: Shop) -> None:
    first = shop.start("up", "shop:app")
    first.until("Task scheduler started")
    assert run(shop, "workers", "drain").exit_code == 0
    waits = shop.app.sync.submit("who")
    first.signal(signal.SIGKILL)
    first.wait()
    shop.start("up", "shop:app")
    assert waits.result(60) > 0


def test_who_is_to_be_drained_must_be_there(shop: Shop) -> None:
    shop.app.sync.submit("who")
    nobody = run(shop, "workers", "drain")
    assert (nobody.exit_code, "no worker of this host is up" in nobody.stderr) == (1, True)
    unknown = run(shop, "workers", "resume", "other")
    assert (unknown.exit_code, "other" in unknown.stderr) == (1, True)
