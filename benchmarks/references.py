"""What the same work costs at least, without Tickwork: the units in which the guard counts.

Each does what a scenario has to do on any library, in the same form: a caller that awaits its answer meets the same
switches of an event loop, two processes that take turns the same wake-ups. So a ratio to it means the same on a fast
machine and on a slow or busy one.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import socket
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import hiredis
from msgspec import Struct
from tests.support.redis import RedisServer

from benchmarks.crew import redis_cpu
from benchmarks.peers.common import FILLER, PAUSE
from benchmarks.scenarios import LARGE

ITEMS = 20_000
AWAITED = 3_000
LARGE_ITEMS = 300
COMMITS = 1_000
TURNS = 150
BATCH = 100
NOTHING = object()


class Cost(Struct, frozen=True):
    """CPU microseconds an item, or a task; `p50` in milliseconds where it is a latency."""

    python: float = 0.0
    redis: float = 0.0
    p50: float = 0.0


class Pipe:
    """A connection that sends many commands at once, so that it is the same work every time."""

    def __init__(self, server: RedisServer) -> None:
        self._socket = socket.create_connection((server.host, server.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader(notEnoughData=NOTHING)

    def call(self, commands: Iterable[tuple[Any, ...]]) -> list[Any]:
        packed = [hiredis.pack_command(command) for command in commands]
        self._socket.sendall(b"".join(packed))
        replies: list[Any] = []
        while len(replies) < len(packed):
            while (reply := self._reader.gets()) is not NOTHING:
                replies.append(reply)
            if len(replies) < len(packed):
                self._reader.feed(self._socket.recv(1 << 20))
        return replies

    def close(self) -> None:
        self._socket.close()


@contextmanager
def _on_redis() -> Iterator[tuple[RedisServer, Callable[[int], Cost]]]:
    """A server, and what has been used since, by the number of items."""
    with RedisServer() as server:
        redis, cpu = redis_cpu(server), time.process_time()

        def used(items: int) -> Cost:
            return Cost((time.process_time() - cpu) / items * 1e6, (redis_cpu(server) - redis) / items * 1e6)

        yield server, used


def _some(usual: int, size: float) -> int:
    """Whole batches, and at least one."""
    return max(round(usual * size / BATCH), 1) * BATCH


def _payload(number: int, filler: str = FILLER) -> str:
    return json.dumps({"number": number, "filler": filler})


def pipelines(size: float = 1.0) -> Cost:
    """What every queue has to do: a payload into a list and out of it, and a result set, in pipelines."""
    return _pipelines(_some(ITEMS, size), FILLER)


def large_pipelines(size: float = 1.0) -> Cost:
    """The same with payloads of 100 KB."""
    return _pipelines(_some(LARGE_ITEMS, size), "x" * LARGE)


def _pipelines(items: int, filler: str) -> Cost:
    with _on_redis() as (server, used), closing(Pipe(server)) as pipe:
        for start in range(0, items, BATCH):
            payloads = [_payload(number, filler) for number in range(start, start + BATCH)]
            pipe.call(("RPUSH", "queue", payload) for payload in payloads)
            taken = [json.loads(reply)["number"] for reply in pipe.call([("LPOP", "queue")] * BATCH)]
            pipe.call(("SET", f"result:{number}", json.dumps(number), "EX", 600) for number in taken)
        return used(items)


def blocking(size: float = 1.0) -> Cost:
    """A payload into a list, over a socket that blocks, one after the other."""
    items = _some(AWAITED, size)
    with _on_redis() as (server, used), closing(Pipe(server)) as pipe:
        for number in range(items):
            pipe.call([("RPUSH", "queue", _payload(number))])
        return used(items)


# --- over asyncio


class Awaited(asyncio.Protocol):
    """A connection of an event loop, for one call at a time."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader(notEnoughData=NOTHING)
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not NOTHING:
            self._waiting.set_result(reply)

    def call(self, *command: Any) -> asyncio.Future[Any]:
        self._transport.write(hiredis.pack_command(command))
        self._waiting: asyncio.Future[Any] = self._loop.create_future()
        return self._waiting

    def close(self) -> None:
        self._transport.close()


def awaited(size: float = 1.0) -> Cost:
    """A payload into a list, each awaited before the next."""
    items = _some(AWAITED, size)

    async def main(server: RedisServer) -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Awaited, server.host, server.port)
        for number in range(items):
            await connection.call("RPUSH", "queue", _payload(number))
        connection.close()

    with _on_redis() as (server, used):
        asyncio.run(main(server))
        return used(items)


def in_process(size: float = 1.0) -> Cost:
    """A task of the event loop that is told by a queue what to do, and tells a future of its end."""
    items = _some(ITEMS, size)

    async def main() -> None:
        queue: asyncio.Queue[tuple[bytes, asyncio.Future[int]]] = asyncio.Queue()

        async def handle(payload: bytes, ended: asyncio.Future[int]) -> None:
            ended.set_result(json.loads(payload)["number"])

        async def work() -> None:
            while True:
                await asyncio.create_task(handle(*await queue.get()))

        working = asyncio.create_task(work())
        for number in range(items):
            ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            queue.put_nowait((_payload(number).encode(), ended))
            await ended
        working.cancel()

    cpu = time.process_time()
    asyncio.run(main())
    return Cost((time.process_time() - cpu) / items * 1e6)


def commits(size: float = 1.0) -> Cost:
    """A row into an SQLite file, each in a transaction of its own, not synced."""
    items = _some(COMMITS, size)
    with (
        tempfile.TemporaryDirectory(prefix="tickwork-guard-") as folder,
        closing(sqlite3.connect(f"{folder}/rows.db", isolation_level=None)) as base,
    ):
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = NORMAL")
        base.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, payload TEXT)")
        cpu = time.process_time()
        for number in range(items):
            base.execute("INSERT INTO rows VALUES (?, ?)", (number, _payload(number)))
        return Cost((time.process_time() - cpu) / items * 1e6)


# --- two processes that take turns


def over_redis(size: float = 1.0) -> Cost:
    """There and back between two processes that wait on lists of Redis, with pauses in which both fall idle."""
    with RedisServer() as server, closing(Pipe(server)) as pipe:

        def turn() -> None:
            pipe.call([("RPUSH", "there", "1")])
            pipe.call([("BLPOP", "back", 10)])

        with _other_process(_answer_on_redis, server):
            return _timed(turn, size)


def over_pipe(size: float = 1.0) -> Cost:
    """There and back between two processes over pipes of the kernel, with the same pauses."""
    (read_here, write_there), (read_there, write_here) = os.pipe(), os.pipe()

    def turn() -> None:
        os.write(write_here, b"1")
        os.read(read_here, 1)

    with _other_process(_answer_on_pipe, read_there, write_there):
        cost = _timed(turn, size)
    for number in (read_here, write_here, read_there, write_there):
        os.close(number)
    return cost


def _timed(turn: Callable[[], None], size: float) -> Cost:
    turn()
    times = []
    for _ in range(max(round(TURNS * size), 5)):
        time.sleep(PAUSE)
        before = time.perf_counter()
        turn()
        times.append(time.perf_counter() - before)
    return Cost(p50=statistics.median(times) * 1e3)


@contextmanager
def _other_process(target: Callable[..., None], *args: Any) -> Iterator[None]:
    other = multiprocessing.get_context("fork").Process(target=target, args=args, daemon=True)
    other.start()
    try:
        yield
    finally:
        other.kill()
        other.join()


def _answer_on_redis(server: RedisServer) -> None:
    pipe = Pipe(server)
    while True:
        pipe.call([("BLPOP", "there", 10)])
        pipe.call([("RPUSH", "back", "1")])


def _answer_on_pipe(read: int, write: int) -> None:
    while os.read(read, 1):
        os.write(write, b"1")
