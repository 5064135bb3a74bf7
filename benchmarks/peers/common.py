"""What every peer shares: the record of what ran, and the loops of a client.

This runs in the environments of the peers, so it needs nothing but the standard library. A peer says how one task is
submitted and waited for; how many, how fast and how it is timed is the same for all, and is said here.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PATIENCE = 60.0  # seconds without a result after which a task counts as lost
SMALL = 75  # with its keys and a number, about 100 bytes of JSON
CALLERS = 100
BATCH, BATCH_BYTES = 1000, 10_000_000  # tasks, and bytes of payload, in one call of a bulk submit
PAUSE = 0.01  # between two tasks of which the latency is taken: the worker has fallen idle by then
NAP = 0.1
WARM = 20  # tasks before the first that counts, where a subject does not ask for more
MARK = "> "  # how a line of a client begins that is an answer
VARIABLE = "BENCH_SETTING"  # a name that begins with TICKWORK_ would be an option
FILLER = "x" * json.loads(os.environ.get(VARIABLE, "{}")).get("filler", SMALL)


@dataclass(frozen=True)
class Setting:
    """What the harness tells a process of a peer, by an environment variable."""

    url: str
    record: str  # the file of the tally
    tasks: int
    concurrency: int
    warm: int = WARM
    scenario: str = ""
    variant: str = ""
    partitions: int = 1
    filler: int = SMALL  # bytes of a payload, without its keys and a number


@cache
def setting() -> Setting:
    return Setting(**json.loads(os.environ[VARIABLE]))


class Tally:
    """How often each task ran and when it last started, in a file that worker, client and harness all map: it costs a
    handler well under a microsecond, and outlives whoever is killed. Times of 8 bytes, then counts of one."""

    def __init__(self, path: str | Path, tasks: int, warm: int = WARM, *, create: bool = False) -> None:
        self.tasks, slots = tasks, tasks + warm
        with open(path, "w+b" if create else "r+b") as file:
            if create:
                file.truncate(slots * 9)
            self._map = mmap.mmap(file.fileno(), slots * 9)
        view = memoryview(self._map)
        self.starts = view[: slots * 8].cast("d")
        self.counts = view[slots * 8 :]

    def ran(self, number: int) -> None:
        self.starts[number] = time.time()
        self.counts[number] = min(self.counts[number] + 1, 255)

    @property
    def warm(self) -> bool:
        return 0 not in bytes(self.counts[self.tasks :])

    @property
    def lost(self) -> int:
        return bytes(self.counts[: self.tasks]).count(0)

    @property
    def duplicates(self) -> int:
        counts = bytes(self.counts[: self.tasks])  # read once, since tasks may be running on
        return sum(counts) - (len(counts) - counts.count(0))

    @property
    def ran_so_far(self) -> int:
        return self.tasks - self.lost

    @property
    def last_start(self) -> float:
        return max(self.starts[: self.tasks])


@cache
def tally() -> Tally:
    return Tally(setting().record, setting().tasks, setting().warm)


def ran(number: int) -> int:
    """The whole of a no-op handler."""
    tally().ran(number)
    return number


async def nap(number: int) -> int:
    """The whole of a handler that waits for something."""
    tally().ran(number)
    await asyncio.sleep(NAP)
    return number


# --- what a peer offers


class Peer:
    """`offers` names what the library can do; what it lacks is left out of the comparison, not imitated."""

    about = ""
    offers: frozenset[str] = frozenset()

    def work(self) -> None:
        """Be the worker until killed."""
        raise NotImplementedError


class AsyncPeer(Peer):
    offers = frozenset({"one", "many", "drain.10", "drain.100", "io.2000", "latency", "delayed", "roundtrip"})

    async def open(self) -> None: ...

    async def start(self) -> None:
        """Begin to work in the process of the client, where a subject does all in one."""
        raise NotImplementedError

    async def submit(self, number: int) -> Any:
        raise NotImplementedError

    async def submit_nap(self, number: int) -> Any:
        raise NotImplementedError

    async def submit_bulk(self, numbers: range) -> Any:
        raise NotImplementedError

    def submit_blocking(self, number: int) -> Any:
        """From a thread without an event loop, where the library has a call for that (`sync`)."""
        raise NotImplementedError

    async def submit_at(self, number: int, at: float) -> Any:
        raise NotImplementedError

    async def result(self, handle: Any) -> int:
        """Of a library that keeps none: its handle is the number, and only the start is taken."""
        number: int = handle
        while not tally().counts[number]:
            await asyncio.sleep(0.001)
        return number

    async def call(self, number: int) -> int:
        """Submit one and wait for its result; in one step, where the library has such a call."""
        return await self.result(await self.submit(number))


class SyncPeer(Peer):
    offers = frozenset({"one", "sync", "many", "drain.10", "latency", "delayed", "roundtrip"})

    def start(self) -> None:
        raise NotImplementedError

    def submit(self, number: int) -> Any:
        raise NotImplementedError

    def submit_bulk(self, numbers: range) -> Any:
        raise NotImplementedError

    def submit_at(self, number: int, at: float) -> Any:
        raise NotImplementedError

    def result(self, handle: Any) -> int:
        raise NotImplementedError


# --- the client: a line of JSON asks, a line of JSON answers


class Ask:
    """One line: what to do with which tasks. Its time runs from its making."""

    def __init__(self, line: str) -> None:
        said = json.loads(line)
        self.do: str = said["do"]
        self.numbers = range(said.get("first", 0), said.get("last", 0))
        self.due = due_times(len(self.numbers), said["spread"]) if self.do == "delayed" else []
        self._start = time.perf_counter(), time.process_time()

    def answer(self, **facts: Any) -> None:
        wall, cpu = self._start
        _answer(wall=time.perf_counter() - wall, cpu=time.process_time() - cpu, due=self.due, **facts)


class Latencies:
    """Times to the start of the handler and to the result, task by task."""

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.results: list[float] = []

    def add(self, number: int, before: float, value: Any) -> None:
        self.results.append(time.time() - before)
        if value != number:
            raise AssertionError(f"task {number} came back with {value!r}")
        self.starts.append(tally().starts[number] - before)


def due_times(tasks: int, spread: float) -> list[float]:
    """Whole milliseconds, evenly spread, with time to submit them all first."""
    start = time.time() + 0.5 + 0.5 * spread
    return [round(start + number * spread / tasks, 3) for number in range(tasks)]


def batches(numbers: range) -> Iterator[range]:
    size = min(BATCH, max(BATCH_BYTES // setting().filler, 1))
    for first in range(0, len(numbers), size):
        yield numbers[first : first + size]


def _answer(**facts: Any) -> None:
    # Some libraries print: the harness reads only lines that begin so.
    print(MARK + json.dumps(facts), flush=True)


def serve(peer: AsyncPeer | SyncPeer) -> None:
    if isinstance(peer, AsyncPeer):
        run_async(_serve_async(peer))
    else:
        _serve_sync(peer)


def run_async(work: Coroutine[Any, Any, None]) -> None:
    """On asyncio's own loop, as every peer; the variant `uvloop` of Tickwork on that."""
    if setting().variant != "uvloop":
        asyncio.run(work)
        return
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


async def _serve_async(peer: AsyncPeer) -> None:
    loop = asyncio.get_running_loop()
    await peer.open()
    _answer(about=peer.about, offers=sorted(peer.offers))
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        ask, timed = Ask(line), Latencies()
        if ask.do == "work":
            await peer.start()
        elif ask.do in ("latency", "roundtrip"):
            await _latency_async(peer, ask, timed)
        elif ask.do == "sync":
            await loop.run_in_executor(None, _by_one_thread, peer, ask.numbers)
        elif ask.do == "one":
            for number in ask.numbers:
                await peer.submit(number)
        elif "bulk" in peer.offers and ask.do in ("bulk", "fill"):
            for batch in batches(ask.numbers):
                await peer.submit_bulk(batch)
        else:
            await _by_many(_calls(peer, ask))
        ask.answer(starts=timed.starts, results=timed.results)


def _calls(peer: AsyncPeer, ask: Ask) -> Iterator[Coroutine[Any, Any, Any]]:
    if ask.do == "delayed":
        return (peer.submit_at(number, at) for number, at in zip(ask.numbers, ask.due, strict=True))
    return map(peer.submit_nap if ask.do == "naps" else peer.submit, ask.numbers)


async def _by_many(calls: Iterator[Coroutine[Any, Any, Any]]) -> None:
    async def caller() -> None:
        for call in calls:
            await call

    await asyncio.gather(*(caller() for _ in range(CALLERS)))


def _by_one_thread(peer: AsyncPeer, numbers: range) -> None:
    for number in numbers:
        peer.submit_blocking(number)


async def _latency_async(peer: AsyncPeer, ask: Ask, timed: Latencies) -> None:
    for number in ask.numbers:
        if ask.do == "latency":
            await asyncio.sleep(PAUSE)
        before = time.time()
        timed.add(number, before, await asyncio.wait_for(peer.call(number), PATIENCE))


def _serve_sync(peer: SyncPeer) -> None:
    _answer(about=peer.about, offers=sorted(peer.offers))
    while line := sys.stdin.readline():
        ask, timed = Ask(line), Latencies()
        if ask.do == "work":
            peer.start()
        elif ask.do in ("latency", "roundtrip"):
            _latency_sync(peer, ask, timed)
        elif ask.do == "delayed":
            for number, at in zip(ask.numbers, ask.due, strict=True):
                peer.submit_at(number, at)
        elif ask.do == "many":
            _by_threads(peer, ask.numbers)
        elif "bulk" in peer.offers and ask.do in ("bulk", "fill"):
            for batch in batches(ask.numbers):
                peer.submit_bulk(batch)
        else:
            for number in ask.numbers:
                peer.submit(number)
        ask.answer(starts=timed.starts, results=timed.results)


def _by_threads(peer: SyncPeer, numbers: range) -> None:
    shared = iter(numbers)

    def caller() -> None:
        for number in shared:
            peer.submit(number)

    threads = [threading.Thread(target=caller) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _latency_sync(peer: SyncPeer, ask: Ask, timed: Latencies) -> None:
    for number in ask.numbers:
        if ask.do == "latency":
            time.sleep(PAUSE)
        before = time.time()
        timed.add(number, before, peer.result(peer.submit(number)))
