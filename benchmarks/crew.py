"""One scenario's cast: a Redis server, a client process and worker processes, and what each of them has used."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from msgspec import Struct
from tests.support.redis import Cluster, RedisServer
from tests.support.redis.process import spawn

from benchmarks.environments import CACHE, command
from benchmarks.machine import tree, tree_cpu, tree_rss
from benchmarks.peers.common import MARK, PATIENCE, SMALL, VARIABLE, Tally
from benchmarks.subjects import Subject

POLL = 0.01
LIMIT = 300.0  # seconds for one answer of a client


class Usage(Struct, frozen=True):
    """A moment: the time, and the CPU seconds that were used until then."""

    at: float
    workers: float
    redis: float


class Client:
    """A process of the peer that submits; it answers every line with a line."""

    def __init__(self, command: list[str], env: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.pid = self._process.pid
        hello = self._read()
        self.about: str = hello["about"]
        self.offers = frozenset[str](hello["offers"])

    def ask(self, do: str, first: int = 0, last: int = 0, **more: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, "first": first, "last": last, **more}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        watchdog = threading.Timer(LIMIT, self._process.kill)
        watchdog.start()
        try:
            for line in self._process.stdout:
                if line.startswith(MARK):
                    answer: dict[str, Any] = json.loads(line[len(MARK) :])
                    return answer
        finally:
            watchdog.cancel()
        raise RuntimeError(f"the client ended, or was silent for {LIMIT:g} s; it said:\n{tail(self._log)}")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Crew:
    """Opened, it has a folder, a server where the store is one, and a client; `with crew.workers()` adds the workers,
    which are a part of the client where a subject does all in one process."""

    def __init__(
        self,
        subject: Subject,
        tasks: int,
        concurrency: int,
        *,
        cache: Path = CACHE,
        scenario: str = "",
        servers: int = 1,
        partitions: int = 1,
        filler: int = SMALL,
    ) -> None:
        self.subject, self.tasks, self.together, self._cache = subject, tasks, subject.together, cache
        self._told = {"tasks": tasks, "warm": subject.warm, "concurrency": concurrency, "scenario": scenario}
        self._told |= {"variant": subject.variant, "partitions": partitions, "filler": filler}
        self._servers = servers if subject.store == "redis" else 0
        self._roots: list[int] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tickwork-bench-")))
            record = self._folder / "record"
            self.tally = Tally(record, self.tasks, self.subject.warm, create=True)
            self._told |= {"url": self._open_store(stack), "record": str(record)}
            environ = {**os.environ, VARIABLE: json.dumps(self._told)}
            log = self._folder / "client.log"
            self.client = Client(command(self.subject, self._cache, "client"), environ, log)
            stack.callback(self.client.close)
            self._roots = [self.client.pid] if self.together else []
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def _open_store(self, stack: ExitStack) -> str:
        self.nodes: list[RedisServer] = []
        if not self._servers:
            return "memory://" if self.subject.store == "memory" else f"sqlite:///{self._folder}/tasks.db"
        if self._servers == 1:
            self.nodes = [stack.enter_context(RedisServer())]
            return self.nodes[0].url
        cluster = stack.enter_context(Cluster(self._servers))
        self.nodes = cluster.masters
        return cluster.url

    @contextmanager
    def workers(self, count: int = 1, *, warm: bool = True) -> Iterator[None]:
        """Workers that, if `warm`, have run some tasks and wait for more."""
        processes = self._start(count)
        try:
            if warm:
                self.client.ask("fill", self.tasks, self.tasks + self.subject.warm)
                self.wait(lambda: self.tally.warm, "the worker to run its first tasks")
                time.sleep(0.5 if count == 1 else float(count))  # the first one up may have run them all
            yield
        finally:
            self.signal(signal.SIGKILL)
            for process in processes:
                process.wait()

    def _start(self, count: int) -> list[subprocess.Popen[bytes]]:
        if self.together:
            self.client.ask("work")
            return []
        start = ["/usr/bin/env", f"{VARIABLE}={json.dumps(self._told)}", *command(self.subject, self._cache, "worker")]
        processes = [spawn(start, self._folder, self._folder / "worker.log") for _ in range(count)]
        self._roots = [process.pid for process in processes]
        return processes

    def signal(self, number: int) -> None:
        for root in self._roots:
            for pid in tree(root):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue

    def usage(self) -> Usage:
        workers = sum(map(tree_cpu, self._roots))
        return Usage(time.time(), workers, sum(map(redis_cpu, self.nodes)))

    def rss(self) -> int:
        return sum(map(tree_rss, self._roots))

    def redis_bytes(self) -> int:
        return sum(map(redis_bytes, self.nodes))

    def wait(self, condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {patience:g} s: {what}\n{tail(self._folder / 'worker.log')}")
            time.sleep(POLL)

    def wait_all_ran(self) -> None:
        """Until every task has run, or for long none has: the tally knows what was lost."""
        lost, since = self.tally.lost, time.monotonic()
        while lost and time.monotonic() < since + PATIENCE:
            time.sleep(POLL)
            if self.tally.lost != lost:
                lost, since = self.tally.lost, time.monotonic()


def redis_cpu(server: RedisServer) -> float:
    info = server.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def redis_bytes(server: RedisServer) -> int:
    """What all keys take with what they hold, asked one by one: the memory of connections comes and goes."""
    total, cursor = 0, b"0"
    with server.connect() as client:
        while True:
            cursor, keys = client.call("SCAN", cursor, "COUNT", 1000)
            for key in keys:
                client.send("MEMORY", "USAGE", key, "SAMPLES", 0)
            total += sum(client.receive() or 0 for _ in keys)  # none: it has just expired
            if cursor == b"0":
                return total


def tail(log: Path, size: int = 3000) -> str:
    return log.read_text(errors="replace")[-size:] if log.exists() else ""
