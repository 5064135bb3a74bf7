"""Worker processes that drain a queue, measured from outside: by tasks queued, workers, partitions, and payloads."""

from __future__ import annotations

import signal
import time
from collections import Counter

from msgspec.structs import replace
from tests.support.redis import RedisServer

from benchmarks.crew import Crew, redis_cpu
from benchmarks.growth.points import Ask, Measured
from benchmarks.peers.common import SMALL
from benchmarks.scenarios import drain
from benchmarks.subjects import SUBJECTS

CONCURRENCY = 100
NODES = 3
TASKS = 20_000
WINDOW = 10_000  # tasks of which the cost is taken
BREATH = 0.1  # seconds for what is still being finished
BYTES = 100_000_000  # of payload that are drained
RATE, WORKER, REDIS, SUBMIT, SUBMIT_REDIS = "tasks/s", "worker us", "Redis us", "submit us", "its Redis us"
MULTIPLE = "x GET+SET"


def make_crew(tasks: int, servers: int = 1, partitions: int = 1, filler: int = SMALL) -> Crew:
    return Crew(SUBJECTS["tickwork"], tasks, CONCURRENCY, servers=servers, partitions=partitions, filler=filler)


def fills(depth: int, window: int) -> list[tuple[int, int, int]]:
    """Queues to fill, as first and last task and how many of them run in the window: few small ones make a window."""
    return [(first, first + depth, min(depth, window)) for first in range(0, max(depth, window), depth)]


def by_queued(ask: Ask) -> Measured:
    window = ask.tasks(WINDOW)
    plan = fills(ask.size, window)
    totals: Counter[str] = Counter()
    with make_crew(plan[-1][1]) as crew, crew.workers():
        for first, last, timed in plan:
            _one_fill(crew, first, last, timed, totals)
        ran, submitted = totals["ran"] / 1e6, totals["submitted"] / 1e6
        costs = {
            RATE: totals["ran"] / totals["wall"],
            WORKER: totals[WORKER] / ran,
            REDIS: totals[REDIS] / ran,
            SUBMIT: totals[SUBMIT] / submitted,
            SUBMIT_REDIS: totals[SUBMIT_REDIS] / submitted,
        }
        return Measured(costs, 0 if ask.size > window else crew.tally.lost, crew.tally.duplicates)


def _one_fill(crew: Crew, first: int, last: int, timed: int, totals: Counter[str]) -> None:
    """Fill the queue, the last tasks by the clock; let it run until `timed` tasks have; stop it where it is."""
    crew.signal(signal.SIGSTOP)
    head = max(first, last - WINDOW)
    crew.client.ask("fill", first, head)
    submitting = crew.usage()
    answer = crew.client.ask("fill", head, last)
    before, done = crew.usage(), crew.tally.ran_so_far
    crew.signal(signal.SIGCONT)
    crew.wait(lambda: crew.tally.ran_so_far >= done + timed, f"{timed} tasks to run")
    reached = time.time()
    if timed == last - first:
        time.sleep(BREATH)
    crew.signal(signal.SIGSTOP)
    after = crew.usage()
    used: dict[str, float] = {
        "ran": crew.tally.ran_so_far - done,
        "wall": reached - before.at,
        WORKER: after.workers - before.workers,
        REDIS: after.redis - before.redis,
        "submitted": last - head,
        SUBMIT: answer["cpu"],
        SUBMIT_REDIS: before.redis - submitting.redis,
    }
    totals.update(used)
    crew.signal(signal.SIGCONT)


def by_workers(ask: Ask) -> Measured:
    with make_crew(ask.tasks(TASKS)) as crew, crew.workers(ask.size):
        return _drained(crew)


def by_partitions(ask: Ask) -> Measured:
    with make_crew(ask.tasks(TASKS), NODES, ask.size) as crew, crew.workers():
        return _drained(crew)


def _drained(crew: Crew) -> Measured:
    sample = drain(crew)
    costs = {RATE: sample.rate, WORKER: sample.cpu_us, REDIS: sample.redis_us}
    return Measured(costs, sample.lost, sample.duplicates)


def by_payload(ask: Ask) -> Measured:
    """The size is that of a payload in bytes. What GET and SET of as many bytes cost is measured before and after."""
    tasks = ask.tasks(min(BYTES // ask.size, TASKS))
    before_it = cost_of_get_and_set(ask.size, tasks)
    drained = _drained_bytes(ask, tasks)
    plain = (before_it + cost_of_get_and_set(ask.size, tasks)) / 2 * 1e6
    multiple = (drained.costs[REDIS] + drained.costs[SUBMIT_REDIS]) / plain
    return replace(drained, costs=drained.costs | {"GET+SET us": plain, MULTIPLE: multiple})


def _drained_bytes(ask: Ask, tasks: int) -> Measured:
    with make_crew(tasks, filler=ask.size) as crew, crew.workers():
        crew.signal(signal.SIGSTOP)
        submitting = crew.usage()
        crew.client.ask("fill", 0, tasks)
        before = crew.usage()
        crew.signal(signal.SIGCONT)
        crew.wait_all_ran()
        wall = crew.tally.last_start - before.at
        time.sleep(BREATH)
        after, tally = crew.usage(), crew.tally
        costs = {
            "MB/s": tasks * ask.size / wall / 1e6,
            WORKER: (after.workers - before.workers) / tasks * 1e6,
            REDIS: (after.redis - before.redis) / tasks * 1e6,
            SUBMIT_REDIS: (before.redis - submitting.redis) / tasks * 1e6,
        }
        return Measured(costs, tally.lost, tally.duplicates)


def cost_of_get_and_set(size: int, count: int) -> float:
    """CPU seconds of Redis to take a value of so many bytes and to hand it out, one at a time."""
    value = b"x" * size
    with RedisServer() as server, server.connect() as client:
        before = redis_cpu(server)
        for number in range(count):
            client.call("SET", f"value:{number}", value)
        for number in range(count):
            client.call("GET", f"value:{number}")
        return (redis_cpu(server) - before) / count
