"""RQ: its worker runs one job at a time, each in a fork of its own. The variant `simple` runs them in the worker."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from redis import Redis
from rq import Queue, SimpleWorker, Worker

from benchmarks.peers.common import FILLER, PATIENCE, SyncPeer, ran, setting


def noop(number: int, filler: str) -> int:
    return ran(number)


class Rq(SyncPeer):
    simple = setting().variant == "simple"
    about = (
        f"RQ {version('rq')}, {'SimpleWorker (no fork)' if simple else 'Worker (a fork a job)'}, one job at a time, "
        "results kept 500 s (default)"
    )
    offers = SyncPeer.offers | {"bulk"}

    def __init__(self) -> None:
        self.redis: Any = Redis.from_url(setting().url)
        self.queue: Any = Queue(connection=self.redis)

    def submit(self, number: int) -> Any:
        return self.queue.enqueue(noop, number, FILLER)

    def submit_bulk(self, numbers: range) -> None:
        self.queue.enqueue_many([Queue.prepare_data(noop, (number, FILLER)) for number in numbers])

    def submit_at(self, number: int, at: float) -> Any:
        return self.queue.enqueue_at(datetime.fromtimestamp(at, UTC), noop, number, FILLER)

    def result(self, handle: Any) -> int:
        value: int = handle.latest_result(timeout=int(PATIENCE)).return_value
        return value

    def work(self) -> None:
        worker: Any = (SimpleWorker if self.simple else Worker)([self.queue], connection=self.redis)
        worker.work(logging_level="WARNING", with_scheduler=setting().scenario == "lateness")


peer = Rq()
