"""A server of the API that is killed in mid-request loses nothing that it has acknowledged."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from benchmarks.control import served

from tests.support.redis import RedisServer
from tests.support.waiting import wait_until
from tickwork import Scheduler
from tickwork.errors import TaskNotFound

SENDERS = 8
ENOUGH = 200  # acknowledged submits before the kill


class Sender(threading.Thread):
    """Submits until the server is gone: one by one, or in batches."""

    def __init__(self, address: str, number: int, enough: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self._address, self._number, self._enough = address, number, enough
        self.acknowledged: list[str] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=20)
        batch = self._number % 2 == 0
        for count in range(100_000):
            ids = [f"killed-{self._number}-{count}-{each}" for each in range(10 if batch else 1)]
            tasks = [{"type": "mail", "payload": each, "id": each} for each in ids]
            body = json.dumps({"tasks": tasks} if batch else tasks[0])
            try:
                path = "/api/v1/tasks/batch" if batch else "/api/v1/tasks"
                connection.request("POST", path, body, {"content-type": "application/json"})
                answer = connection.getresponse()
                said = json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                return  # it was killed: what became of this one is not known
            assert answer.status == (200 if batch else 201), said
            self.acknowledged += ids
            for _ in ids:
                self._enough.release()


def submitted_until_killed(url: str) -> list[str]:
    enough = threading.Semaphore(0)
    with served(url) as (address, pid):
        senders = [Sender(address, number, enough) for number in range(SENDERS)]
        for sender in senders:
            sender.start()
        for _ in range(ENOUGH):
            assert enough.acquire(timeout=60), "the server does not acknowledge"
        os.kill(pid, signal.SIGKILL)
        for sender in senders:
            sender.join(60)
    return [each for sender in senders for each in sender.acknowledged]


async def missing(url: str, ids: list[str]) -> list[str]:
    app = Scheduler(url)
    lost: list[str] = []
    for each in ids:
        try:
            await app.get_task(each)
        except TaskNotFound:
            lost.append(each)
    assert await app.audit() == []
    await app.close()
    return lost


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_what_was_acknowledged_is_there(kind: str, tmp_path: Path) -> None:
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path}/tick.db"
        ids = submitted_until_killed(url)
        assert len(ids) >= ENOUGH
        assert asyncio.run(missing(url, ids)) == []
        return
    with RedisServer() as server:
        ids = submitted_until_killed(server.url)
        assert len(ids) >= ENOUGH
        assert asyncio.run(missing(server.url, ids)) == []


def test_a_server_ends_soon_while_its_store_is_gone() -> None:
    """What the audit log was still to be told is lost then, and nothing else."""
    with RedisServer() as redis, served(redis.url, "--tokens", "--namespaces", "other") as (address, pid):
        connection = http.client.HTTPConnection(address, timeout=20)
        for _ in range(3):
            connection.request("GET", "/api/v1/status", headers={"authorization": "Bearer tw_no_such"})
            assert connection.getresponse().read()
        redis.kill()
        began = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        asyncio.run(wait_until(lambda: not is_running(pid), 30, "it has ended"))
        assert time.monotonic() - began < 20, "one wait for all, not one after another"


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
