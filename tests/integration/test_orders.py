"""Workers that are asked to run more or fewer tasks at a time, or to take them from other queues."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.integration import child_handlers
from tests.integration.apps import Gate, Make, eventually, status_of, store_of
from tests.integration.programs import Shop, until
from tickwork import ConfigError, RemoteWorker, Scheduler, Status, TickworkError, WorkerNotFound
from tickwork.cli import commands
from tickwork.model.members import Worker


async def followed(app: Scheduler, order: str) -> None:
    async def look() -> bool:
        return (await app.get_worker(app.id)).follows == order

    await eventually(look, 30, f"the worker follows {order!r}")


class ThreadGate:
    """As `Gate`, for handlers in threads."""

    def __init__(self) -> None:
        self.entered = 0
        self._open = threading.Event()
        self._lock = threading.Lock()

    def open(self) -> None:
        self._open.set()

    def pass_through(self) -> None:
        with self._lock:
            self.entered += 1
        self._open.wait()


@pytest.mark.parametrize("kind", [Gate, ThreadGate])
async def test_a_worker_runs_more_and_fewer_tasks_at_a_time(
    make: Make, url: str, kind: type[Gate | ThreadGate]
) -> None:
    app, first, later = make(url, concurrency=2), kind(), kind()
    app.registry.register("hold", first.pass_through)
    app.registry.register("later", later.pass_through)
    async with app:
        held = [await app.submit("hold") for _ in range(6)]
        await eventually(lambda: first.entered == 2, 30)
        await app.set_worker(app.id, concurrency=5)
        await eventually(lambda: first.entered == 5, 30)
        await followed(app, "capacity=5")
        assert (await app.get_worker(app.id)).capacity == 5
        await app.set_worker(app.id, concurrency=1)
        await followed(app, "capacity=1")
        assert (await app.get_worker(app.id)).running == 5, "what runs goes on"
        waiting = [await app.submit("later") for _ in range(3)]
        first.open()
        for handle in held:
            await handle.result(30)
        await eventually(lambda: later.entered == 1, 30)
        assert (await app.get_worker(app.id)).running == 1
        assert [await status_of(app, handle.id) for handle in waiting[1:]] == [Status.READY, Status.READY]
        await app.reset_worker(app.id)
        await eventually(lambda: later.entered == 2, 30)
        await followed(app, "")
        assert (await app.get_worker(app.id)).capacity == 2
        later.open()
        for handle in waiting:
            await handle.result(30)


async def test_handlers_in_processes_follow_too(make: Make, file_url: str, tmp_path: Path) -> None:
    app = make(file_url, concurrency=1)
    app.registry.register("hold", child_handlers.hold, run_in="process")
    places = [tmp_path / "one", tmp_path / "two"]
    async with app:
        handles = [await app.submit("hold", str(place)) for place in places]
        await eventually(places[0].exists, 60)
        await app.set_worker(app.id, concurrency=2)
        await eventually(places[1].exists, 60)
        await app.set_worker(app.id, concurrency=1)
        await followed(app, "capacity=1")
        for place in places:
            place.unlink()
        assert len({await handle.result(60) for handle in handles}) == 2


async def test_a_worker_takes_tasks_from_other_queues(make: Make, url: str) -> None:
    app = make(url, queues=("a", "b"))

    @app.task
    async def who() -> str:
        return "here"

    async with app:
        assert await who.options(queue="a").call(timeout=30) == "here"
        await app.set_worker(app.id, queues=["c"])
        await followed(app, "queues=c")
        assert (await app.get_worker(app.id)).queues == ("c",)
        waits = await who.options(queue="a").submit()
        assert await who.options(queue="c").call(timeout=30) == "here"
        assert await status_of(app, waits.id) == Status.READY
        assert "No worker that is up serves queue a" in (await app.explain(waits.id)).text
        await app.reset_worker(app.id)
        assert await waits.result(30) == "here"


async def test_orders_of_each_kind_last(make: Make, url: str) -> None:
    app = make(url, concurrency=2)
    async with app:
        await app.drain_worker(app.id)
        await app.set_worker(app.id, concurrency=3, queues=("a", "b"))
        await followed(app, "capacity=3 drain queues=a,b")
        assert (await app.get_worker(app.id)).status == "draining"
        await app.resume_worker(app.id)
        await app.set_worker(app.id, queues=("a",))
        await followed(app, "capacity=3 queues=a")
        await app.drain_worker(app.id)
        await app.reset_worker(app.id)
        await followed(app, "drain")


async def test_an_order_of_a_later_version_changes_nothing(make: Make, url: str) -> None:
    app = make(url)

    @app.task
    async def who() -> str:
        return "here"

    async with app:
        members = (await store_of(app)).members
        assert await members.order(app.id, "jump", "high")  # type: ignore[arg-type]
        await app.set_worker(app.id, concurrency=3)
        await followed(app, "capacity=3")
        assert await who.call(timeout=30) == "here"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "nothing is to be changed"),
        ({"concurrency": 0}, "concurrency must be a whole number from 1 to 100,000, not 0"),
        ({"concurrency": 100_001}, "concurrency must be"),
        ({"concurrency": 2.0}, "concurrency must be"),
        ({"concurrency": True}, "concurrency must be"),
        ({"queues": []}, "queues must be a list of at least one name"),
        ({"queues": "a,b"}, "queues must be a list of at least one name, not 'a,b'"),
        ({"queues": ["a b"]}, "a queue's name must be"),
        ({"queues": ["a", "a"]}, "queues must hold each name once"),
        ({"queues": [f"q{number:0>100}" for number in range(20)]}, "queues have 2,039 characters in all"),
        ({"concurrency": 5, "queues": [""]}, "a queue's name must be"),
    ],
)
async def test_orders_that_cannot_be_followed(make: Make, options: dict[str, Any], told: str) -> None:
    app = make("memory://")
    async with app:
        with pytest.raises(ConfigError, match=f"^{told}"):
            await app.set_worker(app.id, **options)
        assert (await app.get_worker(app.id)).order == "", "nothing is ordered by half"


async def test_who_is_to_follow_must_be_there_and_know_how(make: Make, url: str) -> None:
    app = make(url)
    with pytest.raises(WorkerNotFound, match="nobody"):
        await app.set_worker("nobody", concurrency=5)
    with pytest.raises(WorkerNotFound, match="nobody"):
        await app.reset_worker("nobody")
    await (await store_of(app)).members.beat(Worker(id="old", node="n"))
    with pytest.raises(
        TickworkError, match="worker old runs an earlier version of Tickwork, which can only be drained"
    ):
        await app.set_worker("old", concurrency=5)
    await app.register_worker(RemoteWorker(id="outside"))
    with pytest.raises(TickworkError, match="worker outside was registered from outside: register it again"):
        await app.set_worker("outside", concurrency=5)
    await app.drain_worker("old")
    assert (await app.get_worker("old")).order == "drain"


# --- on the command line, with a real process


@pytest.fixture
def shop(tmp_path: Path, file_url: str) -> Iterator[Shop]:
    shop = Shop(tmp_path, url=file_url, options="scheduler_id='till', concurrency=1")
    yield shop
    shop.close()


def run(shop: Shop, *args: str) -> Result:
    return CliRunner().invoke(commands, ["workers", *args, "--store", shop.url])


def shown(shop: Shop) -> Any:
    (row,) = json.loads(run(shop, "--json").stdout)["workers"]
    return row


def test_a_worker_is_changed_from_the_command_line(shop: Shop) -> None:
    program = shop.start("up", "shop:app")
    shop.hold("one")
    told = run(shop, "set", "till", "--concurrency", "2", "--queues", "default, mail")
    assert (told.exit_code, told.stdout) == (0, "till  concurrency 2, queues default, mail\n")
    program.until("Worker runs so many tasks at a time worker=till running=1 concurrency=2")
    program.until("Worker takes tasks from these queues worker=till running=1 queues=default,mail")
    shop.hold("two")
    until(lambda: shown(shop)["follows"] == "capacity=2 queues=default,mail", "the list shows what it follows")
    row = shown(shop)
    assert (row["running"], row["capacity"], row["queues"], row["status"]) == (2, 2, ["default", "mail"], "busy")
    again = run(shop, "set", "till", "--reset", "--concurrency", "3", "--json")
    assert json.loads(again.stdout) == {"workers": [{"id": "till", "reset": True, "concurrency": 3, "queues": None}]}
    program.until("Worker takes tasks from these queues worker=till running=2 queues=default")
    assert run(shop, "set", "till", "--reset").stdout == "till  as it was started\n"
    program.until("Worker runs so many tasks at a time worker=till running=2 concurrency=1")


def test_what_is_to_be_changed_must_be_said(shop: Shop) -> None:
    shop.app.sync.submit("who")
    assert run(shop, "set", "--concurrency", "2").exit_code == 2
    nothing = run(shop, "set", "till")
    assert (nothing.exit_code, "say what to change" in nothing.stderr) == (2, True)
    nobody = run(shop, "set", "till", "--concurrency", "2")
    assert (nobody.exit_code, "till" in nobody.stderr) == (1, True)
    bad = run(shop, "set", "till", "--queues", "a,,b")
    assert (bad.exit_code, "a queue's name must be" in bad.stderr) == (2, True)
