"""Huey on Redis or an SQLite file. It has no bulk submit. From 1 to 10 threads a no-op costs the same, until others
want the cores. The variant `nosync` is its fastest setting on SQLite, safe against less than Tickwork's default, which
still syncs at checkpoints."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from huey import RedisHuey, SqliteHuey

from benchmarks.peers.common import FILLER, PATIENCE, SyncPeer, ran, setting

SQLITE = "sqlite:///"


def _noop(number: int, filler: str) -> int:
    return ran(number)


class Huey(SyncPeer):
    def __init__(self) -> None:
        url, sync = setting().url, setting().variant != "nosync"
        if url.startswith(SQLITE):
            self.huey: Any = SqliteHuey("bench", filename=url.removeprefix(SQLITE), fsync=sync)
            store = f"SqliteHuey (WAL, synchronous={'FULL' if sync else 'OFF'})"
            self.offers = SyncPeer.offers - {"many"}  # a hundred threads only wait for each other's locks
        else:
            self.huey, store = RedisHuey("bench", url=url), "RedisHuey"
        self.about = (
            f"Huey {version('huey')}, {store}, {setting().concurrency} worker threads, results kept until read, "
            "delayed tasks looked for every second (defaults)"
        )
        self.noop: Any = self.huey.task(name="noop")(_noop)

    def start(self) -> None:
        self.consumer = self.huey.create_consumer(workers=setting().concurrency, periodic=False)
        self.consumer.start()

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
