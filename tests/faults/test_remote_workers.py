"""Nodes that call a hostile remote worker, and die meanwhile: nothing is lost, nothing is stuck beyond its timeout and
lease, and no answer counts for a call that was over."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.faults.nodes import PATIENCE, Nodes
from tests.support.hostile_http import ENDLESS_BODY, Request, answer, drip, hang, reset, serving, vanish
from tests.support.redis import RedisServer
from tests.support.serving import ask
from tickwork import Config, RemoteWorker, Scheduler, Status
from tickwork.client.remote_workers import WorkerKeys
from tickwork.remote import RemoteWorkerApp

pytestmark = pytest.mark.timeout(300)
TIMEOUT = 2.0  # seconds of a task
METADATA = answer(b"", "302 Found", "Location: http://169.254.169.254/latest/meta-data")
# The task is called again, and succeeds.
FAILING = ("hang", "reset", "vanish", "drip", "late", "unsigned", "redirect", "endless")
BEHAVIOURS = (*FAILING, "twice")


class Far:
    """A worker that speaks the protocol, behind a server that misbehaves by the number in the payload: with the first
    call for it, or always. Its result says to which call it belongs."""

    def __init__(self, secret: bytes) -> None:
        self.calls: Counter[int] = Counter()
        self._worker = RemoteWorkerApp("far", secret=secret, capacity=100)
        self._worker.task("remote")(self._run)

    async def _run(self, payload: int) -> list[int]:
        return [payload, self.calls[payload]]

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> None:
        method, path, _ = request.line.split()
        behave = ""
        if path == "/execute":
            number = msgspec.json.decode(request.body)["payload"]
            self.calls[number] += 1
            behave = BEHAVIOURS[number % len(BEHAVIOURS)]
            if self.calls[number] > 1:
                behave = ""
        if behave in SIMPLE:
            await SIMPLE[behave](request, writer)
            return
        answered = await ask(self._worker, method, path, request.body, dict(request.headers))
        if behave == "late":
            await asyncio.sleep(2 * TIMEOUT)
        headers = {} if behave == "unsigned" else answered.headers
        lines = [f"{name}: {value}" for name, value in headers.items() if name.lower() != "content-length"]
        writer.write(answer(answered.body, f"{answered.status} Whatever", *lines) * (2 if behave == "twice" else 1))


async def redirect(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(METADATA)


SIMPLE: dict[str, Any] = {
    "hang": hang, "reset": reset, "vanish": vanish, "drip": drip, "redirect": redirect, "endless": ENDLESS_BODY,
}  # fmt: skip


@pytest.fixture(params=["redis", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with RedisServer() if request.param == "redis" else nullcontext() as server:
        yield f"sqlite:///{tmp_path}/tick.db" if server is None else server.url


@pytest.fixture
async def crew(url: str, tmp_path: Path) -> AsyncIterator[tuple[Scheduler, Nodes, Far]]:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(64)))
    far = Far(WorkerKeys(Config(secret_file=str(secret))).secret("far"))
    async with serving(far.respond) as server:
        options: dict[str, Any] = {"allow_addresses": [server.url], "secret_file": str(secret)}
        nodes = Nodes(tmp_path, store=url, retry={"type": "fixed", "seconds": 0.05}, **options)
        app = Scheduler(url, **options)
        await app.register_worker(RemoteWorker(id="far", address=server.url, task_types=("remote",), capacity=100))
        yield app, nodes, far
        nodes.stop()
        await app.close()


async def test_a_hostile_worker_and_killed_nodes_lose_nothing(crew: tuple[Scheduler, Nodes, Far]) -> None:
    app, nodes, far = crew
    nodes.start("n1", "n2")
    numbers = range(2 * len(BEHAVIOURS))
    ids = {number: (await app.submit("remote", number, timeout=TIMEOUT, max_retry=5)).id for number in numbers}
    await nodes.until(lambda: far.calls.total() >= 10, "calls are under way")
    nodes.kill("n1")
    nodes.start("n3")
    await nodes.until(lambda: len(far.calls) == len(ids), "each task has been called")
    nodes.kill("n2")
    nodes.start("n4")
    try:
        async with asyncio.timeout(PATIENCE):
            while not all([(await app.get_task(task_id)).status.ended for task_id in ids.values()]):
                await asyncio.sleep(0.1)
    except TimeoutError:
        stuck = [await app.get_task(task_id) for task_id in ids.values()]
        pytest.fail(f"stuck: {[task for task in stuck if not task.status.ended]}\n{nodes.logs()}")
    for number, task_id in ids.items():
        task, behave = await app.get_task(task_id), BEHAVIOURS[number % len(BEHAVIOURS)]
        assert task.status is Status.SUCCESS, f"{behave} of task {number}: {task.last_error}"
        assert task.result is not None
        told, call = task.result.data
        assert told == number
        assert behave == "twice" or call >= 2, f"{behave}: the answer to the first call was too late, or none"
    assert await app.audit() == []
