"""An event loop that is held up for longer than somebody may take to answer, though the answer came in time."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.apps import FAST, Make, eventually, store_of
from tests.support.redis import RedisServer
from tickwork import Scheduler
from tickwork.outbound.addresses import Allowed
from tickwork.outbound.client import Outbound
from tickwork.store.bounded import bounded
from tickwork.store.redis.net.link import Access, Address, LinkLost, connect, pack

LIMIT = 0.3
HELD = 0.5
PATIENCE = 1.5  # for what has to connect first


def hold_up(seconds: float = HELD) -> None:
    time.sleep(max(seconds, 0))


class Service:
    """A server of HTTP in a thread. It answers one request, once it may."""

    def __init__(self, listener: socket.socket) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        self._listener = listener

    def serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += connection.recv(4096)
            self.asked.set()
            assert self.may_answer.wait(60)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.recv(4096)  # until it is closed


@contextmanager
def serving() -> Iterator[Service]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        service = Service(listener)
        thread = threading.Thread(target=service.serve, daemon=True)
        thread.start()
        yield service
        thread.join(10)


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_a_store_that_answers_at_once(kind: str, tmp_path: object) -> None:
    with RedisServer() as server:
        app = Scheduler(server.url if kind == "redis" else f"sqlite:///{tmp_path}/a.db")
        handle = await app.submit("ship")
        store = bounded(await store_of(app), LIMIT)
        for _ in range(3):
            asking = asyncio.ensure_future(store.queries.get(handle.id))
            asyncio.get_running_loop().call_soon(hold_up)  # as soon as it waits for the answer
            task = await asking
            assert task is not None
            assert task.status == "ready"
        await app.close()


async def test_a_run_in_a_thread_that_ends_in_time(make: Make) -> None:
    app = make("memory://", **FAST)
    inside, may_end = threading.Event(), threading.Event()

    @app.task(timeout=PATIENCE, max_retry=0)
    def quick() -> int:
        inside.set()
        assert may_end.wait(10)
        return 7

    async with app:
        handle = await quick.submit()
        await eventually(inside.is_set)
        may_end.set()
        hold_up(PATIENCE)
        assert await handle.result(10) == 7


async def test_a_service_that_answers_at_once() -> None:
    with serving() as service:
        outbound = Outbound(Allowed([service.url]))
        began = time.monotonic()
        asking = asyncio.ensure_future(outbound.request("GET", service.url, timeout=PATIENCE))
        await eventually(service.asked.is_set)
        service.may_answer.set()
        hold_up(began + PATIENCE + 0.1 - time.monotonic())
        assert (await asking).body == b"ok"
        await outbound.close()


async def test_a_connection_is_not_cut_whose_reply_is_there() -> None:
    """The loop was held up in the pass in which the connection is looked after, and has not read since."""
    with RedisServer() as server:
        host, _, port = server.url.removeprefix("redis://").partition("/")[0].partition(":")
        link = await connect(Address(host, int(port)), Access(), LIMIT)
        reply = link.send(pack("PING"))
        hold_up()
        link._watch()
        assert await reply == b"PONG"
        assert link.lost is None
        server.pause()
        reply = link.send(pack("PING"))
        with pytest.raises(LinkLost, match="no answer for"):
            await reply
        server.resume()
        await link.close()
