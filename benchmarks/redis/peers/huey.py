"""Huey on Redis. It has no bulk submit. From 1 to 10 threads a no-op costs the same, until others want the cores."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from huey import RedisHuey

from benchmarks.redis.peers.common import FILLER, PATIENCE, SyncPeer, ran, setting


def _noop(number: int, filler: str) -> int:
    return ran(number)


class Huey(SyncPeer):
    about = (
        f"Huey {version('huey')}, RedisHuey, {setting().concurrency} worker threads, results kept until read, delayed "
        "tasks looked for every second (defaults)"
    )

    def __init__(self) -> None:
        self.huey: Any = RedisHuey("bench", url=setting().url)
        self.noop: Any = self.huey.task(name="noop")(_noop)

    def submit(self, number: int) -> Any:
        return self.noop(number, FILLER)

    def submit_at(self, number: int, at: float) -> Any:
        return self.noop.schedule(args=(number, FILLER), eta=datetime.fromtimestamp(at, UTC))

    def result(self, handle: Any) -> int:
        value: int = handle.get(blocking=True, timeout=PATIENCE)
        return value

    def work(self) -> None:
        self.huey.create_consumer(workers=setting().concurrency).run()


peer = Huey()
