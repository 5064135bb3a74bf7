"""Webhooks while nodes die: the leader that reads the log for them, and the worker that sends."""

from __future__ import annotations

import asyncio
import functools
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.faults.nodes import PATIENCE, Nodes
from tests.support.hostile_http import Request, answer, hang, reset, serving
from tests.support.redis import RedisServer
from tickwork import Scheduler
from tickwork.webhooks.feed import mark_of

pytestmark = pytest.mark.timeout(300)
EVENTS = ["task.submitted", "task.claimed", "task.succeeded"]


@pytest.fixture(params=["redis", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with RedisServer() if request.param == "redis" else nullcontext() as server:
        yield f"sqlite:///{tmp_path}/tick.db" if server is None else server.url


class Receiver:
    """Takes what it is sent, but now and then hangs, resets the connection, or refuses."""

    def __init__(self) -> None:
        self.by_task: dict[str, list[str]] = defaultdict(list)  # kinds, in the order in which they were taken
        self.by_event: dict[str, set[bytes]] = defaultdict(set)  # bodies by webhook-id
        self._numbers = count(1)

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> None:
        number = next(self._numbers)
        if number % 20 == 0:
            await hang(request, writer)
        if number % 7 == 0:
            await reset(request, writer)
            return
        if number % 5 == 0:
            writer.write(answer(b"", "500 Internal Server Error"))
            return
        event = msgspec.json.decode(request.body)
        self.by_task[event["data"]["id"]].append(event["type"])
        self.by_event[request.header("webhook-id") or ""].add(request.body)
        writer.write(answer())

    def has_told(self, ids: list[str]) -> bool:
        return all(set(self.by_task[task_id]) == set(EVENTS) for task_id in ids)


@pytest.fixture
async def nodes_and_receiver(url: str, tmp_path: Path) -> AsyncIterator[tuple[Nodes, Receiver]]:
    (tmp_path / "secret").write_bytes(bytes(range(64)))
    receiver = Receiver()
    async with serving(receiver.respond) as server:
        hook: dict[str, Any] = {
            "name": "audit", "url": f"{server.url}/hook", "events": EVENTS, "timeout": 2, "max_retry": 1000,
            "retry": {"type": "fixed", "seconds": 0.05}, "disable_after": 100_000,
        }  # fmt: skip
        nodes = Nodes(
            tmp_path, store=url, webhooks=[hook], allow_addresses=[server.url], secret_file=f"{tmp_path}/secret"
        )
        yield nodes, receiver
        nodes.stop()


async def test_a_killed_leader_loses_and_reorders_nothing(url: str, nodes_and_receiver: tuple[Nodes, Receiver]) -> None:
    nodes, receiver = nodes_and_receiver
    app = Scheduler(url)
    nodes.start("n1", "n2")
    store = await app._access.open_store()
    async with asyncio.timeout(PATIENCE):
        while await store.marks.get(mark_of("audit")) is None:
            await asyncio.sleep(0.05)
    ids: list[str] = []
    for _ in range(3):
        ids += [(await app.submit("step", number)).id for number in range(10)]
        async with asyncio.timeout(PATIENCE):
            while (leader := (await app.status()).leader_id) not in ("n1", "n2"):
                await asyncio.sleep(0.05)
        nodes.kill(leader)
        ids += [(await app.submit("step", number)).id for number in range(10)]
        nodes.start(leader)
        await nodes.until(functools.partial(receiver.has_told, list(ids)), "the first ones are told")
    await nodes.until(lambda: receiver.has_told(ids), "all are told")
    await app.close()
    for task_id in ids:
        told = receiver.by_task[task_id]
        first = list(dict.fromkeys(told))
        assert (first[0], first[-1]) == ("task.submitted", "task.succeeded")
        assert told == sorted(told, key=EVENTS.index), "not even a repetition comes out of order"
    assert all(len(bodies) == 1 for bodies in receiver.by_event.values()), "an id stands for one event"
