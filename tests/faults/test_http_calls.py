"""Nodes that call a hostile service by HTTP, and die meanwhile: nothing is lost, nothing is stuck, and no answer counts
for a call that was over."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from tests.faults.nodes import PATIENCE, Nodes
from tests.support.hostile_http import (
    ENDLESS_BODY,
    ENDLESS_HEADERS,
    Request,
    answer,
    drip,
    hang,
    reset,
    serving,
    vanish,
)
from tests.support.redis import RedisServer
from tickwork import Scheduler, Status

pytestmark = pytest.mark.timeout(300)
METADATA = answer(b"", "302 Found", "Location: http://169.254.169.254/latest/meta-data")
WRONG = answer(b"-1", "200 OK", "Content-Type: application/json")


async def answer_late(request: Request, writer: asyncio.StreamWriter) -> None:
    """After the call has timed out; its connection is gone by then."""
    await asyncio.sleep(3)
    writer.write(WRONG)


async def answer_twice(request: Request, writer: asyncio.StreamWriter) -> None:
    """The second answer is to no request. Whoever uses the connection again must not take it for the next one."""
    writer.write(right(request) + WRONG)


async def redirect(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(METADATA)


def right(request: Request) -> bytes:
    return answer(request.body, "200 OK", "Content-Type: application/json")


FAILING = (hang, reset, vanish, drip, answer_late)  # the task is called again, and succeeds
REFUSED = (redirect, ENDLESS_BODY, ENDLESS_HEADERS)  # another call would be answered in the same way
TWICE = (answer_twice,)
BEHAVIOURS = (*FAILING, *REFUSED, *TWICE)


class Service:
    """Misbehaves by the number in the payload, with the first call for it; then it answers with that number."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> None:
        number = msgspec.json.decode(request.body, type=int)
        self.calls[number] += 1
        behave = BEHAVIOURS[number % len(BEHAVIOURS)]
        if self.calls[number] == 1 or behave in REFUSED:
            await behave(request, writer)
        else:
            writer.write(right(request))


@pytest.fixture(params=["redis", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with RedisServer() if request.param == "redis" else nullcontext() as server:
        yield f"sqlite:///{tmp_path}/tick.db" if server is None else server.url


@pytest.fixture
async def nodes_and_service(url: str, tmp_path: Path) -> AsyncIterator[tuple[Nodes, Service]]:
    service = Service()
    async with serving(service.respond) as server:
        endpoint = {"url": f"{server.url}/run", "timeout": 2, "types": ["remote"], "response_limit": 10_000}
        nodes = Nodes(
            tmp_path, store=url, allow_addresses=[server.url], endpoints={"service": endpoint}, max_retry=5,
            retry={"type": "fixed", "seconds": 0.05},
        )  # fmt: skip
        yield nodes, service
        nodes.stop()


async def test_calls_of_killed_nodes_are_made_again_and_nothing_is_stuck(
    url: str, nodes_and_service: tuple[Nodes, Service]
) -> None:
    nodes, service = nodes_and_service
    app = Scheduler(url)
    nodes.start("n1", "n2")
    ids = {number: (await app.submit("remote", number)).id for number in range(2 * len(BEHAVIOURS))}
    await nodes.until(lambda: service.calls.total() >= 10, "calls are under way")
    nodes.kill("n1")
    nodes.start("n3")
    await nodes.until(lambda: len(service.calls) == len(ids), "each task has been called")
    nodes.kill("n2")
    nodes.start("n4")
    async with asyncio.timeout(PATIENCE):
        while not all([(await app.get_task(task_id)).status.ended for task_id in ids.values()]):
            await asyncio.sleep(0.1)
    for number, task_id in ids.items():
        task = await app.get_task(task_id)
        behave = BEHAVIOURS[number % len(BEHAVIOURS)]
        if behave in REFUSED:
            assert task.status is Status.DEAD, f"{behave} of task {number}"
            assert "169.254" not in str(task.last_error)
        else:
            assert task.status is Status.SUCCESS, f"{behave} of task {number}: {task.last_error}"
            assert task.result is not None
            assert task.result.data == number, f"{behave}: an answer counts only for the call that it is to"
    assert await app.audit() == []
    await app.close()
