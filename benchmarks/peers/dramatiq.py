"""Dramatiq with results. Groups are sent one by one, so there is no bulk submit. Ten threads run
more no-ops than fewer do, and no-op for no-op they cost no more CPU."""

from __future__ import annotations

import os
import sys
import time
from importlib.metadata import version
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from benchmarks.peers.common import FILLER, PATIENCE, SyncPeer, ran, setting

broker: Any = RedisBroker(url=setting().url)
broker.add_middleware(Results(backend=RedisBackend(url=setting().url)))
dramatiq.set_broker(broker)


def _noop(number: int, filler: str) -> int:
    return ran(number)


noop: Any = dramatiq.actor(store_results=True, actor_name="noop")(_noop)


class Dramatiq(SyncPeer):
    about = f"Dramatiq {version('dramatiq')}, one process of {setting().concurrency} threads, results kept 10 minutes"

    def submit(self, number: int) -> Any:
        return noop.send(number, FILLER)

    def submit_at(self, number: int, at: float) -> Any:
        return noop.send_with_options(args=(number, FILLER), delay=max(round((at - time.time()) * 1000), 0))

    def result(self, handle: Any) -> int:
        value: int = handle.get_result(block=True, timeout=round(PATIENCE * 1000))
        return value

    def work(self) -> None:
        options = ["--processes", "1", "--threads", str(setting().concurrency), "--skip-logging"]
        os.execv(sys.executable, [sys.executable, "-m", "dramatiq", __name__, *options])


peer = Dramatiq()
