"""A cluster of which one server is dead: its own tasks wait, all others go on, and in the end everything ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.apps import eventually
from tests.support.redis import Cluster, RedisServer
from tests.support.waiting import wait_until
from tickwork import Scheduler, Status, TaskNotFound
from tickwork.ids import partition_of
from tickwork.store.redis.keys import Layout, slot_of

PARTITIONS = 6
NAMESPACE = "shop"
LAYOUT = Layout(NAMESPACE, PARTITIONS)
LEASE = 4.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    options = {"cluster-require-full-coverage": "no", "appendonly": "yes", "appendfsync": "always"}
    with Cluster(options=options) as cluster:
        yield cluster


def places_of(cluster: Cluster, node: RedisServer) -> set[int]:
    return {place for place, part in enumerate(LAYOUT.parts) if cluster.node_of(slot_of(part)) is node}


def an_id(prefix: str, places: set[int]) -> str:
    return next(
        name for name in (f"{prefix}{number}" for number in range(10_000)) if partition_of(name, PARTITIONS) in places
    )


class Held:
    """Handlers that run until they are let go, and which of them were stopped."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.started: list[str] = []
        self.stopped: list[str] = []

    async def run(self, name: str) -> str:
        self.started.append(name)
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.stopped.append(name)
            raise
        return name


def an_app(url: str, held: Held) -> Scheduler:
    app = Scheduler(
        url, namespace=NAMESPACE, partitions=PARTITIONS, concurrency=10, lease_ttl=LEASE, renew_interval=1,
        scan_interval=0.5,
    )  # fmt: skip

    @app.task
    async def hold(name: str) -> str:
        return await held.run(name)

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    return app


FAULTS: dict[str, tuple[Callable[[RedisServer], Any], Callable[[RedisServer], Any]]] = {
    "killed": (RedisServer.kill, RedisServer.start),
    "stopped": (RedisServer.pause, RedisServer.resume),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("victim", ["a partition", "the root"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_one_dead_server_costs_its_own_tasks_and_no_other(cluster: Cluster, fault: str, victim: str) -> None:
    root = cluster.node_of(slot_of(LAYOUT.root))
    node = root if victim == "the root" else next(each for each in cluster.masters if each is not root)
    dead = places_of(cluster, node)
    living = set(range(PARTITIONS)) - dead
    assert dead
    held = Held()
    app = an_app(cluster.url, held)
    hurt, heal = FAULTS[fault]
    async with app:
        safe = await app.submit("hold", "safe", id=an_id("safe", living))
        lost = await app.submit("hold", "lost", id=an_id("lost", dead))
        await wait_until(lambda: set(held.started) == {"safe", "lost"})
        hurt(node)
        await wait_until(lambda: held.stopped, what="the lease of its task is over")
        handles = [await app.submit("add", {"a": n, "b": 1}, id=an_id(f"add{n}-", living)) for n in range(30)]
        assert [await handle.result(60) for handle in handles] == list(range(1, 31))
        held.let_go.set()
        assert await safe.result(60) == "safe"
        heal(node)
        assert await lost.result(60) == "lost"
        await eventually(lambda: all_ended(app), timeout=60, what="everything has ended")
        assert held.stopped == ["lost"]
        assert (held.started.count("safe"), (await app.get_task(lost.id)).losses) == (1, 0)
        assert await app.audit() == []


async def all_ended(app: Scheduler) -> bool:
    return set((await app.status()).tasks) == {Status.SUCCESS}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seconds", [0, 4], ids=["at once", "after a while"])
async def test_a_server_that_comes_back_empty_is_noticed(caplog: pytest.LogCaptureFixture, seconds: float) -> None:
    """Its tasks are gone, which is said; what was paused is paused there again."""
    with Cluster(options={"cluster-require-full-coverage": "no"}) as cluster:
        root = cluster.node_of(slot_of(LAYOUT.root))
        node = next(each for each in cluster.masters if each is not root)
        dead = places_of(cluster, node)
        async with an_app(cluster.url, Held()) as app:
            await app.queues.pause("default", "for now")
            gone = await app.submit("add", {"a": 1, "b": 1}, id=an_id("gone", dead))
            kept = await app.submit("add", {"a": 1, "b": 1}, id=an_id("kept", set(range(PARTITIONS)) - dead))
            node.kill()
            await asyncio.sleep(seconds)  # longer than the time in which it is only waited for
            node.start()
            lost = {LAYOUT.parts[place] for place in dead}
            await wait_until(lambda: all(part in caplog.text for part in lost), what="the loss is said")
            assert "came back without its data" in caplog.text
            assert f" {LAYOUT.root}," not in caplog.text
            await eventually(lambda: is_paused(node, lost), what="the pauses are there again")
            with pytest.raises(TaskNotFound):
                await gone.info()
            await app.queues.resume("default")
            assert await kept.result(30) == 2
            assert await (await app.submit("add", {"a": 2, "b": 2}, id=gone.id)).result(30) == 4


def is_paused(node: RedisServer, parts: set[str]) -> bool:
    return all(node.command("HEXISTS", f"{part}pauses", "queue:default") for part in parts)
