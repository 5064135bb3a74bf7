"""Has Tickwork become slower? `python -m benchmarks.guard` answers with its exit code.

Every figure is a ratio to a fixed loop of Python and Redis work that is measured in the same run, turn by turn, so it
means the same on a fast machine and on a slow or busy one. The bounds lie 1.6 times and more above what was
measured when they were set: they catch a cost that was added to every task, not a cache miss.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import click
import hiredis
from msgspec import Struct
from tests.support.redis import RedisServer

from benchmarks.crew import Crew, redis_cpu
from benchmarks.peers.common import FILLER
from benchmarks.report import Figure
from benchmarks.scenarios import SCENARIOS
from benchmarks.subjects import SUBJECTS

ITEMS = 20_000
BATCH = 100
NOTHING = object()


class Bound(Struct, frozen=True):
    """The most that a task may cost, in items of the reference loop."""

    scenario: str
    python: float
    redis: float


BOUNDS = (
    Bound("drain.10", 5.7, 17.5),
    Bound("drain.100", 2.8, 9.2),
    Bound("submit.one", 15, 29),
    Bound("submit.100", 2.3, 3.3),
    Bound("submit.bulk", 1.1, 2.7),
)


class Verdict(Struct, frozen=True):
    scenario: str
    side: str
    best: float  # the least of ours to the least of the reference: noise only ever adds
    median: float
    bound: float

    @property
    def good(self) -> bool:
        return self.best <= self.bound


class Cost(Struct, frozen=True):
    """CPU microseconds an item, or a task."""

    python: float
    redis: float


class Pipe:
    """A connection that sends many commands at once, so that it is the same work every time."""

    def __init__(self, server: RedisServer) -> None:
        self._socket = socket.create_connection((server.host, server.port))
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


def reference(items: int = ITEMS) -> Cost:
    """What every queue has to do at least: a payload into a list and out of it, and a result set, in pipelines."""
    with RedisServer() as server, closing(Pipe(server)) as pipe:
        redis, cpu = redis_cpu(server), time.process_time()
        for start in range(0, items, BATCH):
            payloads = [json.dumps({"number": number, "filler": FILLER}) for number in range(start, start + BATCH)]
            pipe.call(("RPUSH", "queue", payload) for payload in payloads)
            taken = [json.loads(reply)["number"] for reply in pipe.call([("LPOP", "queue")] * BATCH)]
            pipe.call(("SET", f"result:{number}", json.dumps(number), "EX", 600) for number in taken)
        return Cost((time.process_time() - cpu) / items * 1e6, (redis_cpu(server) - redis) / items * 1e6)


def measure(name: str, size: float) -> Cost:
    scenario = SCENARIOS[name]
    tasks = max(round(scenario.tasks * size), scenario.fewest)
    with Crew(SUBJECTS["tickwork"], tasks, scenario.concurrency, scenario=name, filler=scenario.filler) as crew:
        sample = scenario.play(crew)[""]
    if sample.lost or sample.duplicates:
        raise RuntimeError(f"{name}: {sample.lost} tasks were lost, {sample.duplicates} ran twice")
    return Cost(sample.cpu_us, sample.redis_us)


def judge(bound: Bound, costs: list[tuple[Cost, Cost]]) -> list[Verdict]:
    """`costs` are the reference's and ours, a pair a round."""

    def verdict(side: str, most: float, values: list[tuple[float, float]]) -> Verdict:
        base, ours = Figure.of([pair[0] for pair in values]), Figure.of([pair[1] for pair in values])
        return Verdict(bound.scenario, side, ours.low / base.low, ours.median / base.median, most)

    side = SCENARIOS[bound.scenario].side
    return [
        verdict(side, bound.python, [(base.python, ours.python) for base, ours in costs]),
        verdict("Redis", bound.redis, [(base.redis, ours.redis) for base, ours in costs]),
    ]


def text(verdicts: list[Verdict]) -> Iterator[str]:
    yield f"{'':<6}{'':<13}{'CPU of':<9}{'best':>7}{'median':>8}{'bound':>7}   in items of the reference loop"
    for verdict in verdicts:
        word = "ok" if verdict.good else "SLOW"
        figures = f"{verdict.best:>7.2f}{verdict.median:>8.2f}{verdict.bound:>7.2f}"
        yield f"{word:<6}{verdict.scenario:<13}{verdict.side:<9}{figures}"


@click.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--size", default=1.0, show_default=True, type=click.FloatRange(0.1, 10), help="Times the tasks.")
def main(rounds: int, size: float) -> None:
    """Hold what a task costs against a fixed loop of Python and Redis work, within one run."""
    costs: dict[str, list[tuple[Cost, Cost]]] = {bound.scenario: [] for bound in BOUNDS}
    for _ in range(rounds):
        for bound in BOUNDS:
            costs[bound.scenario].append((reference(), measure(bound.scenario, size)))
    verdicts = [verdict for bound in BOUNDS for verdict in judge(bound, costs[bound.scenario])]
    for line in text(verdicts):
        print(line)
    sys.exit(0 if all(verdict.good for verdict in verdicts) else 1)


if __name__ == "__main__":
    main()
